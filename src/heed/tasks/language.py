"""Learning to go on: say each token of a text after all that stand before it."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from heed.data.streams import Window
from heed.training.loss import Loss, chunked_cross_entropy


@runtime_checkable
class Carried(Protocol):
    """What a model remembers of a text, layer by layer, a row for each of the rows that are read at once."""

    layers: list[tuple[Tensor, ...]]

    def detach(self) -> "Carried": ...


class LanguageModelling:
    """Cross entropy with label smoothing, window after window; what was read before is remembered, and is not learned from.

    (Truncated backpropagation through time: Williams and Peng, 1990.) The model offers `start(rows)`, `read(tokens, state)`
    and `last_layer()`.
    """

    def __init__(self, smoothing: float = 0.0):
        self.smoothing = smoothing
        self.state: Carried | None = None
        self.kept: list[tuple[Tensor, ...]] | None = None

    def __call__(self, model: nn.Module, batch: Window) -> Loss:
        state = self._state(model, batch)
        states = model.hidden_states(batch.tokens, state)
        self.state = state.detach()
        expected = batch.expected.flatten()
        total, nll = chunked_cross_entropy(states.flatten(0, 1), *model.output_weights(), expected, self.smoothing)
        return Loss(total, nll, batch.count)

    def _state(self, model: nn.Module, batch: Window) -> Any:
        """From where the text goes on."""
        kept, self.kept = self.kept, None
        if self.state is not None and not batch.begins:
            return self.state
        state = model.start(len(batch.tokens))
        if kept is not None and not batch.begins:
            state.layers = kept
        return state

    def recurrent_state(self) -> dict[str, Tensor]:
        """The hidden state, by layer and part."""
        layers = [] if self.state is None else self.state.layers
        return {f"{i}.{j}": part for i, own in enumerate(layers) for j, part in enumerate(own)}

    def restore_recurrent_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from a `recurrent_state` that was saved."""
        layers: dict[int, dict[int, Tensor]] = {}
        for name, part in tensors.items():
            layer, number = map(int, name.split("."))
            layers.setdefault(layer, {})[number] = part
        found = [tuple(own[j] for j in sorted(own)) for _, own in sorted(layers.items())]
        self.state, self.kept = None, found or None
