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
        states = _states_at_targets(model, batch)
        if _with_own_gradient(states):
            total, nll = chunked_cross_entropy(states, *model.output_weights(), batch.expected, self.smoothing)
            return Loss(total, nll, len(batch.expected))
        return smoothed_cross_entropy(model.project(states), batch.expected, self.smoothing)[0]

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
        states = _states_at_targets(model, _twice(batch))
        if _with_own_gradient(states):
            both, matrix = states.unflatten(0, (2, -1)), model.output_weights()
            total, nll = chunked_cross_entropy(both, *matrix, batch.expected, self.smoothing, self.weight)
            return _with_rest(Loss(total, nll, n), "regularization")
        both, logp = smoothed_cross_entropy(model.project(states), batch.expected.repeat(2), self.smoothing)
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
        states = _states_at_targets(model, batch)
        if _with_own_gradient(states):
            with torch.no_grad():
                outputs = [TeacherOutput(_states_at_targets(t, batch), *t.output_weights()) for t in self.teachers]
            own, teaching = model.output_weights(), Distillation(outputs, self.share)
            total, nll = chunked_cross_entropy(states, *own, batch.expected, self.smoothing, distillation=teaching)
            return _with_rest(Loss(total, nll, len(batch.expected)), "distillation")
        with torch.no_grad():
            target = ensemble_logits([_logits(teacher, batch) for teacher in self.teachers])
        loss = distillation_loss(model.project(states), target, batch.expected, self.smoothing, self.share)
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


def _with_own_gradient(states: torch.Tensor) -> bool:
    """Whether the loss computes its gradient itself. On a CPU, autograd would pass over the logits several times."""
    return states.device.type == "cpu" and torch.is_grad_enabled()


def _states_at_targets(model: EncodesAndDecodes, batch: Batch) -> torch.Tensor:
    states = model.decode(batch.target, model.encode(batch.source, batch.valid), batch.valid)
    return states.flatten(0, 1).index_select(0, batch.positions)


def _logits(model: EncodesAndDecodes, batch: Batch) -> torch.Tensor:
    return model.project(_states_at_targets(model, batch))


def _states(model: EncodesAndDecodes, batch: Packed) -> torch.Tensor:
    return model.decode(batch.target, model.encode(batch.source, batch.valid), batch.valid, offsets=batch.offsets)


def _twice(batch: Batch) -> Batch:
    source, valid, target = (part.repeat(2, 1) for part in (batch.source, batch.valid, batch.target))
    positions = torch.cat([batch.positions, batch.positions + batch.target.numel()])
    return Batch(source, valid, target, positions, batch.expected)
