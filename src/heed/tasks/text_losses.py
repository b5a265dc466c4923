"""Losses of tasks that predict a label, a number or a choice for a text, with an optional language-modelling loss."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.data.batching import LabelledBatch
from heed.data.labelled import NO_LABEL, PackedTexts
from heed.models.abilities import ClassifiesStates, ClassifiesText, ComputesLosses, EncodesText
from heed.training.loss import Loss, Part, weighted_cross_entropy

Combine = Callable[[Float[Tensor, "n inputs k"]], Float[Tensor, "n k"]]


@dataclass(frozen=True)
class LabelLoss:
    """Cross entropy with label smoothing, of the texts that have a label."""

    smoothing: float = 0.0

    def __call__(self, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> Loss:
        exact = logits.float() if logits.dtype.itemsize < 4 else logits
        total = nll = F.cross_entropy(exact, labels, ignore_index=NO_LABEL, reduction="sum")
        if self.smoothing:
            total = F.cross_entropy(
                exact, labels, ignore_index=NO_LABEL, reduction="sum", label_smoothing=self.smoothing
            )
        return Loss(total, nll.detach(), len(labels))


def squared_error(outputs: Float[Tensor, "n 1"], numbers: Float[Tensor, " n"]) -> Loss:
    """The loss of regression, of the texts that have a number."""
    exact = torch.promote_types(outputs.dtype, torch.float32)
    total = (outputs[:, 0].to(exact) - numbers.to(exact)).where(~numbers.isnan(), 0.0).square().sum()
    return Loss(total, total.detach(), len(numbers))


@dataclass(frozen=True)
class TextLoss:
    """The loss of a task on the predictions for texts, each of which may have several `inputs`. With `lm_weight` the
    language-modelling loss is added (Radford et al., 2018): the mean over inputs of the mean -log p of their tokens.
    """

    loss: Callable[[Any, Any], Loss]
    combine: Combine
    inputs: int = 1
    lm_weight: float = 0.0

    @property
    def parts(self) -> tuple[str, ...]:
        return ("language",) if self.lm_weight else ()

    @property
    def unpacked(self) -> str:
        """Why texts cannot be packed."""
        what = "with task.lm_weight" if self.lm_weight else "of several inputs (both orders, or choices)"
        return f"texts {what} do not support packed training"

    def __call__(self, model: ClassifiesText, batch: LabelledBatch | PackedTexts) -> Loss:
        if not self.lm_weight:
            return self._task_loss(model.classify_text(*batch.inputs), batch)
        states = model.hidden_states(batch.source)
        loss = self._task_loss(model.classify_states(states, batch.valid), batch)
        language = language_loss(model, states, batch) / self.inputs
        total = loss.total + self.lm_weight * language
        return loss._replace(total=total, parts={"language": Part(language.detach(), loss.count)})

    def _task_loss(self, logits: Tensor, batch: LabelledBatch | PackedTexts) -> Loss:
        each = logits.reshape(len(logits), 1 if logits.ndim == 1 else logits.shape[1])
        loss = self.loss(self.combine(each.unflatten(0, (len(batch.labels), self.inputs))), batch.labels)
        return loss._replace(count=batch.count)


class PacksTexts:
    """A loss whose texts can be packed: encoders read them one after the other, if training.packed asks for it."""

    packed_if_asked = True
    few_shapes = True  # of packed batches
    length = 0  # the most tokens of a text, if the batches decide that

    def packs(self, model: Any, longest: int) -> bool:
        """Whether a model reads packed texts of up to this many tokens."""
        return isinstance(model, EncodesText) and model.packs(max(longest, self.length))

    def packed(self, model: Any, batch: Any) -> Loss:
        return self(model, batch)


class PacksRows(PacksTexts):
    """A loss on the rows that encoders are pre-trained on: fused layers read them where they are, with their padding."""

    few_shapes = False
    rows_of_text = True
    prefers_packing = True  # where the model has fused layers: twice as fast with BERT on an H200


@dataclass(frozen=True)
class PackedTextLoss(PacksTexts, TextLoss):
    """The same for texts with one input each and no language-modelling loss: they can be packed."""


def language_loss(model: ClassifiesStates, states: Float[Tensor, "b t dim"], batch: LabelledBatch) -> Float[Tensor, ""]:
    """The mean -log p of the tokens after the first of each input, summed over the inputs."""
    following, exact = batch.valid[:, 1:], torch.promote_types(states.dtype, torch.float32)
    weights = (following.to(exact) / following.sum(dim=1, keepdim=True))[following]
    states, expected = states[:, :-1][following], batch.source[:, 1:][following]
    if isinstance(model, ComputesLosses):
        return (model.token_losses(states, expected) * weights).sum()
    return weighted_cross_entropy(states, *model.output_weights(), expected, weights)
