"""Forward and back at full speed on one GPU: passes in bfloat16 over weights in float32, each shape of batch recorded once.

A recording (a CUDA graph) holds all of a batch's work: the weights rounded to bfloat16, both passes, the gradients back
in float32. To play it takes the host no time, so the card never waits.
"""

import copy
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heed.data.packed import Packed
from heed.models import swift as models
from heed.nn import flat, swift
from heed.tasks.loss import Loss

RECORDINGS = 32  # that are kept; what they need in memory, they share


class Recording(NamedTuple):
    batch: Packed
    graph: Any
    total: Tensor
    surprise: Tensor


class Swift:
    """Called with a batch, it leaves gradients at the model's weights, as a backward pass would."""

    def __init__(
        self, model: nn.Module, objective: Callable[[nn.Module, Packed], Loss], dtype: torch.dtype = torch.bfloat16
    ):
        self.objective, self.half = objective, copy.deepcopy(model)
        exact = swift.exact(self.half)
        pairs = list(zip(model.parameters(), self.half.parameters(), strict=True))
        self.exact = [pair for pair in pairs if id(pair[1]) in exact]
        rounded = [pair for pair in pairs if id(pair[1]) not in exact]
        self.rounded = Flat(rounded, dtype)
        learned = [[pair for pair in group if pair[0].requires_grad] for group in (rounded, self.exact)]
        self.weights, self.copies = map(list, zip(*learned[0], *learned[1], strict=True))
        models.hasten(self.half)
        self.split = len(learned[0]), sum(own.numel() for own, _ in learned[0])
        self.whole = torch.zeros(sum(weight.numel() for weight in self.weights), device=self.weights[0].device)
        self.gradients = _views(self.whole, self.weights)
        self.sum = self.whole  # of the batches of a step
        self.recordings: OrderedDict[tuple, Recording] = OrderedDict()
        self.pool = None

    def __call__(self, batch: Packed) -> Loss:
        first = self.weights[0].grad is None
        if not first and self.sum is self.whole:  # of the batch before: they are about to be written over
            self.sum = self.whole.clone()
        total, surprise = self._play(batch) if batch.source.is_cuda else self._passes(batch)
        if first:
            self.sum = self.whole
        else:
            self.sum.add_(self.whole)
        for weight, gradient in zip(self.weights, _views(self.sum, self.weights), strict=True):
            weight.grad = gradient
        return Loss(total, surprise, batch.count)

    def _passes(self, batch: Packed) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            self.rounded.update()
            torch._foreach_copy_([own for _, own in self.exact], [own for own, _ in self.exact])
        self.half.train()
        loss = self.objective(self.half, batch)
        found = torch.autograd.grad(loss.total, self.copies, allow_unused=True)
        known = [torch.zeros_like(own) if new is None else new for own, new in zip(self.copies, found, strict=True)]
        number, size = self.split
        found = torch.cat([new.flatten() for new in known[:number]])
        flat.copied(found, self.whole[:size])
        torch._foreach_copy_(self.gradients[number:], known[number:])
        return loss.total.detach(), loss.surprise

    def _play(self, batch: Packed) -> tuple[Tensor, Tensor]:
        shape = batch.shape
        if shape not in self.recordings:
            self.recordings[shape] = self._record(batch)
            if len(self.recordings) > RECORDINGS:
                self.recordings.popitem(last=False)
        self.recordings.move_to_end(shape)
        kept = self.recordings[shape]
        torch._foreach_copy_(kept.batch.tensors(), batch.tensors())
        kept.graph.replay()
        return kept.total.clone(), kept.surprise.clone()

    def _record(self, batch: Packed) -> Recording:
        """Once for the kernels to be made, once for the record; chance is put back to where it was."""
        device = batch.source.device
        own, chance = batch.cloned(), torch.cuda.get_rng_state(device)
        aside = torch.cuda.Stream(device)
        aside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(aside):
            self._passes(own)
        torch.cuda.current_stream(device).wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        # by the thread alone: another one brings the next batch at this very time
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            total, surprise = self._passes(own)
        self.pool = self.pool or graph.pool()
        torch.cuda.set_rng_state(chance, device)
        return Recording(own, graph, total, surprise)


class Flat:
    """Copies of weights in another precision, end to end: one kernel makes them all."""

    def __init__(self, pairs: Sequence[tuple[nn.Parameter, nn.Parameter]], dtype: torch.dtype):
        self.own = [own.detach() for own, _ in pairs]
        self.whole = torch.cat([own.flatten() for own in self.own]).to(dtype)
        for view, (_, other) in zip(_views(self.whole, self.own), pairs, strict=True):
            other.data = view
        self.gather = None
        if self.whole.is_cuda:
            self.gather = flat.Gather(self.own, self.whole)

    def update(self) -> None:
        if self.gather is None:
            self.whole.copy_(torch.cat([own.flatten() for own in self.own]))
        else:
            self.gather()


def _views(whole: Tensor, shapes: Sequence[Tensor]) -> list[Tensor]:
    parts = whole.split([own.numel() for own in shapes])
    return [part.view(own.shape) for part, own in zip(parts, shapes, strict=True)]
