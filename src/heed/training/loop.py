"""The training loop. There is one; what differs from task to task is handed to it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.nn.utils import get_total_norm
from torch.optim import Optimizer

from heed.training.distributed import SingleProcess
from heed.training.loss import Loss
from heed.training.schedule import Schedule
from heed.training.shards import is_shared, local, whole

APART = 2_654_435_761  # its multiples are far from each other, also in the 32 bits of a seed that the CPU minds


class Progress(NamedTuple):
    """One update, of all processes. The tensors are still on the device: to look at one is to wait for it."""

    step: int
    place: Any
    nll: Tensor
    count: int | Tensor
    gradient: Tensor
    rate: float


@runtime_checkable
class Passes(Protocol):
    """Who goes forward and back in the objective's stead, one batch after another.

    Whoever asks for `sum` has all gradients of the step end to end, and parts of it at the weights. One process needs
    none of that: `step` may do the optimizer's work too and tell how large the gradient was. If it does not, gradients
    are at the weights after it.
    """

    @property
    def sum(self) -> Tensor: ...

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
    passes: Passes | None = None,
    after_step: Sequence[Callable[[Progress], bool | None]] = (),
) -> None:
    """An update for each of `steps`, from `accumulate` batches; `batches` gives each with the place after it.

    The gradient is that of the mean over all tokens of the step, however they fall into batches and to
    workers. Chance (dropout) is drawn from the seed, the step and the worker's number alone, so a step is
    the same whenever it is run. `passes`, where given, goes forward and back in the objective's stead. After
    each step whoever asked is told, in order; the loop ends when one of them says so.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    for step in steps:
        model.train()
        torch.manual_seed(seed * 1_000_003 + step + workers.rank * APART)
        rate = set_rate(optimizer, schedule(step))
        nll, count, place = 0.0, 0, None
        for done in range(1, accumulate + 1):
            place, batch = next(batches)
            with workers.more(coming=done < accumulate):
                if passes is None:
                    with context():
                        loss = objective(model, batch)
                    loss.total.backward()
                else:
                    loss = passes(batch)
            nll, count = nll + loss.nll, count + loss.count
        nll, count = workers.sum(nll, count)
        gradient = _update(weights, optimizer, count, clip, passes, workers)
        optimizer.zero_grad()
        progress = Progress(step, place, nll, count, gradient, rate)
        if any([tell(progress) for tell in after_step]):  # a list: everyone is told
            return


def set_rate(optimizer: Optimizer, rate: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = rate
    return rate


def _update(
    weights: Sequence[Tensor],
    optimizer: Optimizer,
    count: int | Tensor,
    clip: float,
    passes: Passes | None,
    workers: SingleProcess,
) -> Tensor:
    """A step by gradients that are sums over `count`; how large their mean was."""
    if passes is not None and workers.world > 1:
        workers.add(passes.gradients)
    elif passes is not None:
        size = passes.step(optimizer, count, clip)
        if size is not None:
            return size
    size = settle([weight.grad for weight in weights if weight.grad is not None], count, clip)
    optimizer.step()
    increment_version(
        [weight for weight in weights if not is_shared(weight)]
    )  # torch's fused steps do not say what they write
    return size


def settle(gradients: Sequence[Tensor], count: int | Tensor, clip: float) -> Tensor:
    """Of sums make means, and of those no more than `clip` (0: as they are); how large they were.

    In one pass over them, and without waiting for a count that is still on the device.
    """
    size = whole(get_total_norm(gradients)) / count
    factor = (clip / (size + 1e-6)).clamp(max=1) / count if clip else torch.ones_like(size) / count
    torch._foreach_mul_([local(gradient) for gradient in gradients], factor)
    return size
