"""The fast training step on one GPU: passes in bfloat16 over float32 weights, captured once per batch shape.

A CUDA graph contains all work of a batch: the cast of the weights to bfloat16, both passes, each gradient in its
buffer. Replaying it takes almost no host time, so the GPU never waits.
"""

import copy
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from heed.kernels import fused_model, fused_stack, gradient_buffers, multi_tensor, residual_norm
from heed.training.accelerated.fused_adamw import FusedAdamW, supports
from heed.training.loss import Loss, Part, unit_gradient

MAX_GRAPHS = 32  # they share their memory


@runtime_checkable
class Batch(Protocol):
    """A batch of any task: batches of equal `shape` run the same kernels on their `tensors`; `clone` has new memory."""

    count: int

    @property
    def shape(self) -> tuple[int, ...]: ...

    def tensors(self) -> list[Tensor]: ...

    def clone(self) -> "Batch": ...


class CapturedStep(NamedTuple):
    batch: Batch
    graph: Any
    passes: "Passes"


class Passes(NamedTuple):
    total: Tensor
    nll: Tensor
    squares: Tensor  # the squared norm of the gradient
    parts: Mapping[str, Tensor]  # of the loss, if it has some


class CudaGraphStep:
    """Called with a batch, it computes the gradients of a backward pass; `step` updates the weights with these
    rounded gradients. Only `gradients` converts them to float32 and assigns them to the weights. They accumulate over
    batches until `step`, or once `gradients` was read, until the gradients of the weights are None again.
    """

    def __init__(
        self, model: nn.Module, objective: Callable[[nn.Module, Batch], Loss], dtype: torch.dtype = torch.bfloat16
    ):
        self.objective, self.half = objective, copy.deepcopy(model)
        float32_ids = fused_stack.float32_weights(self.half)
        pairs = list(zip(model.parameters(), self.half.parameters(), strict=True))
        self.float32_pairs = [pair for pair in pairs if id(pair[1]) in float32_ids]
        half_pairs = [pair for pair in pairs if id(pair[1]) not in float32_ids]
        # matrices first: so q, k and v of one attention are adjacent, and so are their biases; last, what would leave
        # the weights after it unaligned, such as ELECTRA's bias of one number before those of its generator
        half_pairs.sort(key=lambda pair: (pair[1].numel() % 8 > 0, -pair[1].ndim))
        self.half_weights = FlatCopy(half_pairs, dtype)
        trained = [[pair for pair in group if pair[0].requires_grad] for group in (half_pairs, self.float32_pairs)]
        self.weights, self.copies = map(list, zip(*trained[0], *trained[1], strict=True))
        fused_model.use_fused_layers(self.half)
        self.split = len(trained[0]), sum(weight.numel() for weight, _ in trained[0])
        self.float32 = torch.zeros(sum(weight.numel() for weight in self.weights), device=self.weights[0].device)
        self.half_grads, self.buffers = self._allocate(dtype)
        self.squares = self.float32.new_zeros(())  # the squared norm of the last batch's gradient
        self.pending = False  # the last batch's gradient is not at the weights yet
        self.single = False  # the last batch's gradient is all that this step has
        self.optimizer_step: FusedAdamW | None = None
        self._gradients = self.float32
        self.graphs: OrderedDict[tuple, CapturedStep] = OrderedDict()
        self.pool = None

    def _allocate(self, dtype: torch.dtype) -> tuple[Tensor, list[gradient_buffers.GradientBuffer]]:
        """One tensor for all rounded gradients; and the buffer of each weight, in it or in `self.float32`."""
        number, size = self.split
        half = torch.zeros(size, dtype=dtype, device=self.float32.device)
        memory = [*_views(half, self.weights[:number]), *_views(self.float32[size:], self.weights[number:])]
        return half, [gradient_buffers.attach_buffer(*pair) for pair in zip(self.copies, memory, strict=True)]

    def __call__(self, batch: Batch) -> Loss:
        self._settle()
        first = self.weights[0].grad is None
        if not first and self._gradients is self.float32:  # those of the previous batch would be overwritten
            self._gradients = self.float32.clone()
        total, nll, self.squares, parts = self._replay(batch) if batch.tensors()[0].is_cuda else self._passes(batch)
        self.pending, self.single = True, first
        counted = getattr(self.objective, "part_counts", lambda batch: dict.fromkeys(parts, batch.count))
        counts = counted(batch) if parts else {}
        return Loss(total, nll, batch.count, {name: Part(own, counts[name]) for name, own in parts.items()})

    @property
    def gradients(self) -> Tensor:
        """All gradients of the step so far, concatenated, in float32; those of the weights are views of it."""
        self._settle()
        return self._gradients

    def _settle(self) -> None:
        """Add the last batch's gradient, in float32, to the gradients of the weights."""
        if not self.pending:
            return
        multi_tensor.cast_copy(self.half_grads, self.float32[: self.split[1]])
        if self.single:
            self._gradients = self.float32
        else:
            self._gradients.add_(self.float32)
        for weight, gradient in zip(self.weights, _views(self._gradients, self.weights), strict=True):
            weight.grad = gradient
        self.pending = False

    def step(self, optimizer: Optimizer, count: int, clip: float) -> Tensor | None:
        """Update the weights with rounded gradients; returns the norm of the mean gradient, None if the optimizer
        must step.
        """
        if not self.single or not supports(optimizer, self.weights):
            self._settle()
            return None
        number, size = self.split
        if self.optimizer_step is None or not self.optimizer_step.current(optimizer):
            self.optimizer_step = FusedAdamW(optimizer, self.weights, (self.half_grads, self.float32[size:]), number)
        self.pending = self.single = False
        return self.optimizer_step(self.squares, count, clip)

    def _passes(self, batch: Batch) -> Passes:
        with torch.no_grad():
            self.half_weights.update()
            torch._foreach_copy_([half for _, half in self.float32_pairs], [weight for weight, _ in self.float32_pairs])
        self.half.train()
        for buffer in self.buffers:
            buffer.clear()
        with residual_norm.draw_seeds_at_once(batch.tensors()[0].device):
            loss = self.objective(self.half, batch)
            gradients = torch.autograd.grad(loss.total, self.copies, unit_gradient(loss.total), allow_unused=True)
        _fill_buffers([buffer.memory for buffer in self.buffers], gradients)
        squares = multi_tensor.squared_norm(self.half_grads) + multi_tensor.squared_norm(self.float32[self.split[1] :])
        parts = {name: part.total.detach() for name, part in (loss.parts or {}).items()}
        return Passes(loss.total.detach(), loss.nll, squares, parts)

    def _replay(self, batch: Batch) -> Passes:
        shape = batch.shape
        if shape not in self.graphs:
            self.graphs[shape] = self._capture(batch)
            if len(self.graphs) > MAX_GRAPHS:
                self.graphs.popitem(last=False)
        self.graphs.move_to_end(shape)
        captured = self.graphs[shape]
        torch._foreach_copy_(captured.batch.tensors(), batch.tensors())
        captured.graph.replay()
        *sums, parts = captured.passes
        return Passes(*(own.clone() for own in sums), {name: own.clone() for name, own in parts.items()})

    def _capture(self, batch: Batch) -> CapturedStep:
        """Run once to compile the kernels and once for the graph; then restore the random state."""
        device = batch.tensors()[0].device
        static_batch, rng_state = batch.clone(), torch.cuda.get_rng_state(device)
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            self._passes(static_batch)
        torch.cuda.current_stream(device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # thread_local: another thread may copy the next batch to the GPU meanwhile
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            passes = self._passes(static_batch)
        self.pool = self.pool or graph.pool()
        torch.cuda.set_rng_state(rng_state, device)
        return CapturedStep(static_batch, graph, passes)


class FlatCopy:
    """Copies of weights in another precision, concatenated: one kernel updates all."""

    def __init__(self, pairs: Sequence[tuple[nn.Parameter, nn.Parameter]], dtype: torch.dtype):
        self.weights = [weight.detach() for weight, _ in pairs]
        self.flat = torch.cat([weight.flatten() for weight in self.weights]).to(dtype)
        for view, (_, half) in zip(_views(self.flat, self.weights), pairs, strict=True):
            half.data = view
        self.gather = multi_tensor.Gather(self.weights, self.flat) if self.flat.is_cuda else None

    def update(self) -> None:
        if self.gather is None:
            self.flat.copy_(torch.cat([weight.flatten() for weight in self.weights]))
        else:
            self.gather()


def _views(flat: Tensor, shapes: Sequence[Tensor]) -> list[Tensor]:
    parts = flat.split([shape.numel() for shape in shapes])
    return [part.view(shape.shape) for part, shape in zip(parts, shapes, strict=True)]


def _fill_buffers(memory: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
    """Copy gradients that were not written to their buffers; zero where there is none."""
    pairs = [(own, torch.zeros_like(own) if new is None else new) for own, new in zip(memory, gradients, strict=True)]
    away = [(own, new) for own, new in pairs if (own.data_ptr(), own.stride()) != (new.data_ptr(), new.stride())]
    if away:
        torch._foreach_copy_(*map(list, zip(*away, strict=True)))
