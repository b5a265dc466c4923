"""The plain forward and backward passes as CUDA graphs, captured once per shape: the same kernels without launch
overhead. For models without fused kernels whose batches have few shapes, such as Transformer-XL, or BigBird in
pre-training.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from heed.training.accelerated.cuda_graph_step import MAX_GRAPHS, Batch
from heed.training.loss import Loss, Part, unit_gradient
from heed.training.recurrent_state import HasRecurrentState

State = Mapping[str, Tensor]


class Passes(NamedTuple):
    total: Tensor
    nll: Tensor
    parts: Mapping[str, Tensor]  # of the loss, if the objective has some
    gradients: Sequence[Tensor | None]
    state: State  # what the objective carries to the next batch


class Captured(NamedTuple):
    batch: Batch
    state: State
    graph: Any
    passes: Passes


class CapturedPasses:
    """Called with a batch, it adds the gradients of a backward pass to those of the weights."""

    def __init__(
        self,
        model: nn.Module,
        objective: Callable[[nn.Module, Batch], Loss],
        context: Callable[[], AbstractContextManager] = nullcontext,
    ):
        self.model, self.objective, self.context = model, objective, context
        self.weights = [weight for weight in model.parameters() if weight.requires_grad]
        self.graphs: OrderedDict[tuple, Captured] = OrderedDict()
        self.pool = None

    def __call__(self, batch: Batch) -> Loss:
        # The gradients of the batch before are in the memory of a graph, which may be about to run again.
        before = [None if weight.grad is None else weight.grad.clone() for weight in self.weights]
        state = self._state()
        found = self._replay(batch, state) if batch.tensors()[0].is_cuda else self._passes(batch, state)
        if isinstance(self.objective, HasRecurrentState):
            self.objective.restore_recurrent_state(found.state)
        for weight, old, new in zip(self.weights, before, found.gradients, strict=True):
            weight.grad = new if old is None else old if new is None else old.add_(new)
        counts = self.objective.part_counts(batch) if found.parts else {}
        parts = {name: Part(own.clone(), counts[name]) for name, own in found.parts.items()}
        return Loss(found.total.clone(), found.nll.clone(), batch.count, parts)

    def step(self, optimizer: Optimizer, count: int, clip: float) -> None:
        """None: the optimizer must step."""

    def _state(self) -> State:
        return self.objective.recurrent_state() if isinstance(self.objective, HasRecurrentState) else {}

    def _passes(self, batch: Batch, state: State) -> Passes:
        self.model.train()
        if isinstance(self.objective, HasRecurrentState):
            self.objective.restore_recurrent_state(state)
        with self.context():
            loss = self.objective(self.model, batch)
        gradients = torch.autograd.grad(loss.total, self.weights, unit_gradient(loss.total), allow_unused=True)
        parts = {name: part.total.detach() for name, part in (loss.parts or {}).items()}
        return Passes(loss.total.detach(), loss.nll.detach(), parts, gradients, self._state())

    def _replay(self, batch: Batch, state: State) -> Passes:
        begins = getattr(batch, "begins", False)
        key = (batch.shape, begins, *((name, own.shape) for name, own in state.items()))
        if key not in self.graphs:
            self.graphs[key] = self._capture(batch, state)
            if len(self.graphs) > MAX_GRAPHS:
                self.graphs.popitem(last=False)
        self.graphs.move_to_end(key)
        captured = self.graphs[key]
        torch._foreach_copy_(captured.batch.tensors(), batch.tensors())
        if state:
            torch._foreach_copy_([captured.state[name] for name in state], list(state.values()))
        captured.graph.replay()
        return captured.passes

    def _capture(self, batch: Batch, state: State) -> Captured:
        """Run once, so that libraries choose their kernels, and once for the graph; then restore the random state."""
        device = batch.tensors()[0].device
        static_batch, static_state = batch.clone(), {name: own.clone() for name, own in state.items()}
        rng_state = torch.cuda.get_rng_state(device)
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            self._passes(static_batch, static_state)
        torch.cuda.current_stream(device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # thread_local: another thread may copy the next batch to the GPU meanwhile
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            passes = self._passes(static_batch, static_state)
        self.pool = self.pool or graph.pool()
        torch.cuda.set_rng_state(rng_state, device)
        return Captured(static_batch, static_state, graph, passes)
