"""The training loop. There is only one; task-specific parts are passed in."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer

from heed.training.distributed import SingleProcess
from heed.training.loss import Loss
from heed.training.schedule import Schedule
from heed.training.shards import full, is_sharded, local

RANK_STRIDE = 2_654_435_761  # keeps seeds of ranks far apart, also in the low 32 bits, which are all the CPU uses


class Progress(NamedTuple):
    """One update, summed over all processes. The tensors are still on the device: reading one waits for it."""

    step: int
    position: Any
    nll: Tensor
    count: int | Tensor
    gradient_norm: Tensor
    rate: float
    parts: Mapping[str, tuple[Any, Any]] = MappingProxyType({})  # of the loss: sum and count


@runtime_checkable
class ForwardBackward(Protocol):
    """Runs the forward and backward passes of one batch, instead of the objective and autograd. `gradients` returns
    all gradients of the step as one flat tensor, of which those of the weights are views. A single process does not
    need that: `step` may also do the optimizer's step, and return the gradient norm. If it returns None, it has left
    the gradients on the weights.
    """

    @property
    def gradients(self) -> Tensor: ...

    def __call__(self, batch: Any) -> Loss: ...

    def step(self, optimizer: Optimizer, count: int, clip: float) -> Tensor | None: ...


def train(  # noqa: PLR0913 (the parts of a loop, each by its name)
    model: nn.Module,
    batches: Iterator[tuple[Any, Any]],
    objective: Callable[[nn.Module, Any], Loss],
    optimizer: Optimizer,
    schedule: Schedule,
    *,
    steps: Iterable[int],
    accumulate: int = 1,
    clip: float = 0.0,
    seed: int = 0,
    workers: SingleProcess = SingleProcess(),  # noqa: B008 (it keeps nothing)
    context: Callable[[], AbstractContextManager] = nullcontext,
    forward_backward: ForwardBackward | None = None,
    parts: Sequence[str] = (),
    after_step: Sequence[Callable[[Progress], bool | None]] = (),
) -> None:
    """One update for each of `steps`, from `accumulate` batches; `batches` yields (position after the batch, batch).

    The gradient is that of the mean over all tokens of the step, however they are split into batches and among
    workers. Dropout is seeded only by the seed, the step and the rank, so a step is reproducible. `forward_backward`,
    if given, replaces the objective and its backward pass. `parts` names those of the loss. After each step the
    callbacks `after_step` are called in order; the loop ends when one returns True.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    for step in steps:
        model.train()
        torch.manual_seed(seed * 1_000_003 + step + workers.rank * RANK_STRIDE)
        rate = set_learning_rate(optimizer, schedule(step))
        nll, count, position = 0.0, 0, None
        sums = {name: (0.0, 0) for name in parts}
        for done in range(1, accumulate + 1):
            position, batch = next(batches)
            with workers.accumulating(more=done < accumulate):
                if forward_backward is None:
                    with context():
                        loss = objective(model, batch)
                    loss.total.backward()
                else:
                    loss = forward_backward(batch)
            nll, count = nll + loss.nll, count + loss.count
            for name, part in (loss.parts or {}).items():
                total, number = sums.get(name, (0.0, 0))
                sums[name] = total + part.total, number + part.count
        nll, count = workers.sum(nll, count)
        gradient_norm = _update(weights, optimizer, count, clip, forward_backward, workers)
        optimizer.zero_grad()
        progress = Progress(step, position, nll, count, gradient_norm, rate, workers.sum_parts(sums))
        if any([callback(progress) for callback in after_step]):  # a list, so that every callback is called
            return


def set_learning_rate(optimizer: Optimizer, rate: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = rate
    return rate


def _update(
    weights: Sequence[Tensor],
    optimizer: Optimizer,
    count: int | Tensor,
    clip: float,
    forward_backward: ForwardBackward | None,
    workers: SingleProcess,
) -> Tensor:
    """An optimizer step from gradients that are sums over `count` tokens; returns the norm of their mean."""
    if forward_backward is not None and workers.world > 1:
        workers.sum_gradients(forward_backward.gradients)
    elif forward_backward is not None:
        norm = forward_backward.step(optimizer, count, clip)
        if norm is not None:
            return norm
    norm = average_and_clip([weight.grad for weight in weights if weight.grad is not None], count, clip)
    optimizer.step()
    increment_version([w for w in weights if not is_sharded(w)])  # torch's fused optimizers do not do it themselves
    return norm


def average_and_clip(gradients: Sequence[Tensor], count: int | Tensor, clip: float) -> Tensor:
    """Divide sums by `count` and clip their norm to `clip` (0: no clipping), in place; the norm before clipping.

    One pass over the gradients, without waiting for a count that is still on the device.
    """
    norm = full(get_total_norm(gradients)) / count
    factor = (clip / (norm + 1e-6)).clamp(max=1) / count if clip else torch.ones_like(norm) / count
    torch._foreach_mul_([local(gradient) for gradient in gradients], factor)
    return norm
