"""The training loop. There is one; what differs from task to task is handed to it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from heed.tasks.loss import Loss
from heed.training.schedule import Schedule


class Progress(NamedTuple):
    """One update. The tensors are still on the device: to look at one is to wait for it."""

    step: int
    place: Any
    surprise: Tensor
    count: int
    gradient: Tensor
    rate: float


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
    context: Callable[[], AbstractContextManager] = nullcontext,
    after_step: Sequence[Callable[[Progress], bool | None]] = (),
) -> None:
    """An update for each of `steps`, from `accumulate` batches; `batches` gives each with the place after it.

    The gradient is that of the mean over all tokens of the step, however they fall into batches. Chance
    (dropout) is drawn from the seed and the step alone, so a step is the same whenever it is run. After
    each step whoever asked is told, in order; the loop ends when one of them says so.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    for step in steps:
        model.train()
        torch.manual_seed(seed * 1_000_003 + step)
        rate = set_rate(optimizer, schedule(step))
        surprise, count, place = 0.0, 0, None
        for _ in range(accumulate):
            place, batch = next(batches)
            with context():
                loss = objective(model, batch)
            loss.total.backward()
            surprise, count = surprise + loss.surprise, count + loss.count
        torch._foreach_div_([weight.grad for weight in weights if weight.grad is not None], float(count))
        gradient = clip_grad_norm_(weights, clip or float("inf"))
        optimizer.step()
        optimizer.zero_grad()
        progress = Progress(step, place, surprise, count, gradient, rate)
        if any([tell(progress) for tell in after_step]):  # a list: everyone is told
            return


def set_rate(optimizer: Optimizer, rate: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = rate
    return rate
