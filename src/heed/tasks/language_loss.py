"""Losses of language modelling: over a stream with carried state, and over independent texts."""

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor

from heed.data.documents import PackedDocuments
from heed.data.streams import Window
from heed.models.abilities import ComputesLosses, ContinuesText
from heed.training.loss import Loss, chunked_cross_entropy


def token_loss(
    model: ContinuesText, states: Float[Tensor, "b t dim"], batch: Window | PackedDocuments, smoothing: float
) -> Loss:
    """Cross entropy of the tokens that a batch expects."""
    expected = batch.expected.flatten()
    if isinstance(model, ComputesLosses):
        if smoothing:
            raise ValueError("task.label_smoothing is for models with a plain softmax: leave it out")
        total = model.token_losses(states.flatten(0, 1), expected).sum()
        return Loss(total, total.detach(), batch.count)
    total, nll = chunked_cross_entropy(states.flatten(0, 1), *model.output_weights(), expected, smoothing)
    return Loss(total, nll, batch.count)


class IndependentLoss:
    """Cross entropy of independent texts: padded, one per row, or packed into one row."""

    prefers_packing = True  # where the model can

    def __init__(self, smoothing: float = 0.0):
        self.smoothing = smoothing

    def __call__(self, model: ContinuesText, batch: Window | PackedDocuments) -> Loss:
        if isinstance(batch, PackedDocuments):
            return self.packed(model, batch)
        return token_loss(model, model.hidden_states(batch.tokens), batch, self.smoothing)

    def packed(self, model: ContinuesText, batch: PackedDocuments) -> Loss:
        return token_loss(model, model.packed_hidden_states(batch.tokens, batch.offsets), batch, self.smoothing)


class LanguageLoss:
    """Cross entropy, window by window. The state is carried over; gradients are not.

    (Truncated backpropagation through time: Williams and Peng, 1990.)
    """

    windows = True  # of equal length: a model that carries no state while it trains needs nothing but their tokens

    def __init__(self, smoothing: float = 0.0):
        self.smoothing = smoothing
        self.state: Any = None
        self.kept: list[tuple[Tensor, ...]] | None = None

    def __call__(self, model: ContinuesText, batch: Window) -> Loss:
        state = self._state(model, batch)
        states = model.hidden_states(batch.tokens, state)
        self.state = state.detach()
        return token_loss(model, states, batch, self.smoothing)

    def _state(self, model: ContinuesText, batch: Window) -> Any:
        """The state from which the text continues."""
        kept, self.kept = self.kept, None
        if self.state is not None and not batch.begins:
            return self.state
        state = model.start(len(batch.tokens))
        if kept is not None and not batch.begins:
            state.layers = kept
        return state

    def recurrent_state(self) -> dict[str, Tensor]:
        """The state as tensors of a checkpoint, by layer and part."""
        layers = self.kept or [] if self.state is None else self.state.layers
        return {f"{i}.{j}": part for i, layer in enumerate(layers) for j, part in enumerate(layer)}

    def restore_recurrent_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from what `recurrent_state` returned."""
        layers: dict[int, dict[int, Tensor]] = {}
        for name, part in tensors.items():
            layer, number = map(int, name.split("."))
            layers.setdefault(layer, {})[number] = part
        found = [tuple(layer[j] for j in sorted(layer)) for _, layer in sorted(layers.items())]
        self.state, self.kept = None, found or None
