"""Losses of models that predict each next target token from a source: cross entropy, R-Drop, distillation."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from heed.data.batching import Batch
from heed.data.packing import Packed
from heed.models.abilities import EncodesAndDecodes
from heed.training.loss import (
    Distillation,
    Loss,
    Part,
    TeacherOutput,
    chunked_cross_entropy,
    distillation_loss,
    ensemble_logits,
    smoothed_cross_entropy,
)


@dataclass(frozen=True)
class CrossEntropy:
    """Cross entropy with label smoothing. Padding is removed before the output layer."""

    smoothing: float = 0.1

    def __call__(self, model: EncodesAndDecodes, batch: Batch | Packed) -> Loss:
        if isinstance(batch, Packed):
            return self.packed(model, batch)
        return smoothed_cross_entropy(_logits(model, batch), batch.expected, self.smoothing)[0]

    def packed(self, model: EncodesAndDecodes, batch: Packed) -> Loss:
        """The same for sequences packed end to end."""
        total, nll = chunked_cross_entropy(
            _states(model, batch).squeeze(0), *model.output_weights(), batch.expected, self.smoothing
        )
        return Loss(total, nll, batch.count)


@dataclass(frozen=True)
class RDrop:
    """Two passes with different dropout that should agree (Liang et al., 2021).

    The mean of their losses plus `weight` / 2 times the symmetric KL divergence: half of the paper's sum.
    """

    smoothing: float = 0.1
    weight: float = 5.0
    parts: ClassVar = ("regularization",)

    def __call__(self, model: EncodesAndDecodes, batch: Batch | Packed) -> Loss:
        if isinstance(batch, Packed):
            return self.packed(model, batch)
        n = len(batch.expected)
        both, logp = smoothed_cross_entropy(_logits(model, _twice(batch)), batch.expected.repeat(2), self.smoothing)
        one, other = logp[:n], logp[n:]
        divergence = ((one.exp() - other.exp()) * (one - other)).sum() / 2
        return _with_rest(Loss(both.total / 2 + self.weight / 2 * divergence, both.nll / 2, n), "regularization")

    def packed(self, model: EncodesAndDecodes, batch: Packed) -> Loss:
        """The same for sequences packed end to end."""
        states = _states(model, batch.twice()).squeeze(0).unflatten(0, (2, -1))
        total, nll = chunked_cross_entropy(states, *model.output_weights(), batch.expected, self.smoothing, self.weight)
        return _with_rest(Loss(total, nll, batch.count), "regularization")


@dataclass(frozen=True, eq=False)
class Distilled:
    """Word-level distillation (Kim and Rush, 2016): for a `share` of the loss the teachers' distribution is the
    target. Teachers have the student's vocabulary. Several form an ensemble: their probabilities are averaged.
    """

    teachers: tuple[nn.Module, ...]
    smoothing: float = 0.1
    share: float = 0.5
    parts: ClassVar = ("distillation",)

    def __call__(self, model: EncodesAndDecodes, batch: Batch | Packed) -> Loss:
        if isinstance(batch, Packed):
            return self.packed(model, batch)
        with torch.no_grad():
            target = ensemble_logits([_logits(teacher, batch) for teacher in self.teachers])
        loss = distillation_loss(_logits(model, batch), target, batch.expected, self.smoothing, self.share)
        return _with_rest(loss, "distillation")

    def packed(self, model: EncodesAndDecodes, batch: Packed) -> Loss:
        """The same for sequences packed end to end."""
        with torch.no_grad():
            outputs = [TeacherOutput(_states(t, batch).squeeze(0), *t.output_weights()) for t in self.teachers]
        total, nll = chunked_cross_entropy(
            _states(model, batch).squeeze(0),
            *model.output_weights(),
            batch.expected,
            self.smoothing,
            distillation=Distillation(outputs, self.share),
        )
        return _with_rest(Loss(total, nll, batch.count), "distillation")


def _with_rest(loss: Loss, name: str) -> Loss:
    """A loss with one named part: what it has beyond the nll."""
    return loss._replace(parts={name: Part(loss.total.detach() - loss.nll, loss.count)})


def _logits(model: EncodesAndDecodes, batch: Batch) -> torch.Tensor:
    states = model.decode(batch.target, model.encode(batch.source, batch.valid), batch.valid)
    return model.project(states.flatten(0, 1).index_select(0, batch.positions))


def _states(model: EncodesAndDecodes, batch: Packed) -> torch.Tensor:
    return model.decode(batch.target, model.encode(batch.source, batch.valid), batch.valid, offsets=batch.offsets)


def _twice(batch: Batch) -> Batch:
    source, valid, target = (part.repeat(2, 1) for part in (batch.source, batch.valid, batch.target))
    positions = torch.cat([batch.positions, batch.positions + batch.target.numel()])
    return Batch(source, valid, target, positions, batch.expected)
