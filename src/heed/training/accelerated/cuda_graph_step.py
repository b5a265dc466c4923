"""Forward and back at full speed on one GPU: passes in bfloat16 over weights in float32, each shape of batch recorded once.

A recording (a CUDA graph) holds all of a batch's work: the weights rounded to bfloat16, both passes, the gradients each in
its place. To play it takes the host no time, so the card never waits.
"""

import copy
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from heed.data.packing import Packed
from heed.kernels import fused_model as models
from heed.kernels import fused_stack, gradient_buffers, multi_tensor, residual_norm
from heed.training.accelerated.fused_adamw import Step, supports
from heed.training.loss import Loss, unit_gradient

RECORDINGS = 32  # that are kept; what they need in memory, they share


class Recording(NamedTuple):
    batch: Packed
    graph: Any
    total: Tensor
    nll: Tensor
    squares: Tensor


class CudaGraphStep:
    """Called with a batch, it finds the gradients that a backward pass would; `step` uses them as they are, rounded.

    In float32, and at the model's weights, they are for those alone who ask for `sum`. What batches find adds up until
    `step`, or until `sum` was asked and the weights' gradients are None again.
    """

    def __init__(
        self, model: nn.Module, objective: Callable[[nn.Module, Packed], Loss], dtype: torch.dtype = torch.bfloat16
    ):
        self.objective, self.half = objective, copy.deepcopy(model)
        exact = fused_stack.exact(self.half)
        pairs = list(zip(model.parameters(), self.half.parameters(), strict=True))
        self.exact = [pair for pair in pairs if id(pair[1]) in exact]
        rounded = [pair for pair in pairs if id(pair[1]) not in exact]
        # matrices first: so queries, keys and values of one attention are neighbours, and so are their biases
        rounded.sort(key=lambda pair: -pair[1].ndim)
        self.rounded = Flat(rounded, dtype)
        learned = [[pair for pair in group if pair[0].requires_grad] for group in (rounded, self.exact)]
        self.weights, self.copies = map(list, zip(*learned[0], *learned[1], strict=True))
        models.use_fused_layers(self.half)
        self.split = len(learned[0]), sum(own.numel() for own, _ in learned[0])
        self.whole = torch.zeros(sum(weight.numel() for weight in self.weights), device=self.weights[0].device)
        self.found, self.places = self._placed(dtype)
        self.squares = self.whole.new_zeros(())  # of what was found last, their sum
        self.waiting = False  # what was found last is not at the weights: none has asked for it in float32
        self.alone = False  # what was found last is all that this step has
        self.own: Step | None = None
        self._sum = self.whole
        self.recordings: OrderedDict[tuple, Recording] = OrderedDict()
        self.pool = None

    def _placed(self, dtype: torch.dtype) -> tuple[Tensor, list[gradient_buffers.GradientBuffer]]:
        """Memory for the gradients of what is rounded, end to end; and the place of each weight, of the exact ones in float32."""
        number, size = self.split
        found = torch.zeros(size, dtype=dtype, device=self.whole.device)
        memory = [*_views(found, self.weights[:number]), *_views(self.whole[size:], self.weights[number:])]
        return found, [gradient_buffers.give(own, part) for own, part in zip(self.copies, memory, strict=True)]

    def __call__(self, batch: Packed) -> Loss:
        self._settle()
        first = self.weights[0].grad is None
        if not first and self._sum is self.whole:  # of the batch before: they are about to be written over
            self._sum = self.whole.clone()
        total, nll, self.squares = self._play(batch) if batch.source.is_cuda else self._passes(batch)
        self.waiting, self.alone = True, first
        return Loss(total, nll, batch.count)

    @property
    def sum(self) -> Tensor:
        """All gradients of the step so far, end to end; those at the weights are parts of it."""
        self._settle()
        return self._sum

    def _settle(self) -> None:
        """Leave what was found last at the weights, with what batches before it in this step have left there."""
        if not self.waiting:
            return
        multi_tensor.copied(self.found, self.whole[: self.split[1]])
        if self.alone:
            self._sum = self.whole
        else:
            self._sum.add_(self.whole)
        for weight, gradient in zip(self.weights, _views(self._sum, self.weights), strict=True):
            weight.grad = gradient
        self.waiting = False

    def step(self, optimizer: Optimizer, count: int, clip: float) -> Tensor | None:
        """Update the weights by rounded gradients, and tell how large their mean was; where that is the optimizer's work, nothing."""
        if not self.alone or not supports(optimizer, self.weights):
            self._settle()
            return None
        number, size = self.split
        if self.own is None or not self.own.current(optimizer):
            self.own = Step(optimizer, self.weights, (self.found, self.whole[size:]), number)
        self.waiting = self.alone = False
        return self.own(self.squares, count, clip)

    def _passes(self, batch: Packed) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            self.rounded.update()
            torch._foreach_copy_([own for _, own in self.exact], [own for own, _ in self.exact])
        self.half.train()
        for place in self.places:
            place.clear()
        with residual_norm.one_draw(batch.source.device):
            loss = self.objective(self.half, batch)
            found = torch.autograd.grad(loss.total, self.copies, unit_gradient(loss.total), allow_unused=True)
        _bring([place.memory for place in self.places], found)
        squares = multi_tensor.squares(self.found) + multi_tensor.squares(self.whole[self.split[1] :])
        return loss.total.detach(), loss.nll, squares

    def _play(self, batch: Packed) -> tuple[Tensor, Tensor, Tensor]:
        shape = batch.shape
        if shape not in self.recordings:
            self.recordings[shape] = self._record(batch)
            if len(self.recordings) > RECORDINGS:
                self.recordings.popitem(last=False)
        self.recordings.move_to_end(shape)
        kept = self.recordings[shape]
        torch._foreach_copy_(kept.batch.tensors(), batch.tensors())
        kept.graph.replay()
        return kept.total.clone(), kept.nll.clone(), kept.squares.clone()

    def _record(self, batch: Packed) -> Recording:
        """Once for the kernels to be made, once for the record; chance is put back to where it was."""
        device = batch.source.device
        own, chance = batch.clone(), torch.cuda.get_rng_state(device)
        aside = torch.cuda.Stream(device)
        aside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(aside):
            self._passes(own)
        torch.cuda.current_stream(device).wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        # by the thread alone: another one brings the next batch at this very time
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            results = self._passes(own)
        self.pool = self.pool or graph.pool()
        torch.cuda.set_rng_state(chance, device)
        return Recording(own, graph, *results)


class Flat:
    """Copies of weights in another precision, end to end: one kernel makes them all."""

    def __init__(self, pairs: Sequence[tuple[nn.Parameter, nn.Parameter]], dtype: torch.dtype):
        self.own = [own.detach() for own, _ in pairs]
        self.whole = torch.cat([own.flatten() for own in self.own]).to(dtype)
        for view, (_, other) in zip(_views(self.whole, self.own), pairs, strict=True):
            other.data = view
        self.gather = multi_tensor.Gather(self.own, self.whole) if self.whole.is_cuda else None

    def update(self) -> None:
        if self.gather is None:
            self.whole.copy_(torch.cat([own.flatten() for own in self.own]))
        else:
            self.gather()


def _views(whole: Tensor, shapes: Sequence[Tensor]) -> list[Tensor]:
    parts = whole.split([own.numel() for own in shapes])
    return [part.view(own.shape) for part, own in zip(parts, shapes, strict=True)]


def _bring(memory: Sequence[Tensor], found: Sequence[Tensor | None]) -> None:
    """Gradients that are not in their places yet; where there is none, zero."""
    pairs = [(own, torch.zeros_like(own) if new is None else new) for own, new in zip(memory, found, strict=True)]
    away = [(own, new) for own, new in pairs if (own.data_ptr(), own.stride()) != (new.data_ptr(), new.stride())]
    if away:
        torch._foreach_copy_(*map(list, zip(*away, strict=True)))
