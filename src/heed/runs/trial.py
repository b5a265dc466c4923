"""How long a validation takes, measured on a part of it: a short time budget has to reserve that before the first one."""

import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from heed.tasks.base import Validation

Run = Any  # that of run.py, which calls this

FEW, MORE = 32, 128  # texts of the two parts


@runtime_checkable
class HasParts(Protocol):
    """A validation of which a part can be done, because it takes long."""

    size: int

    def part(self, count: int) -> Validation: ...


def measure(run: Run) -> None:
    """Tell the end of a run how long a validation takes, if its budget is short and it does not know."""
    if not run.ending.is_short or run.ending.validation or not isinstance(run.validation, HasParts):
        return
    began = time.monotonic()
    with run.workers.full_model(run.model, run.validated_weights()) as model:
        found = run.workers.broadcast(lambda: seconds(run.validation, lambda part: run.validate(model, part)))
    run.ending.validation = found
    run.meter.pause(time.monotonic() - began)


def seconds(
    validation: HasParts, validate: Callable[[Validation], object], clock: Callable[[], float] = time.monotonic
) -> float:
    """The seconds of a validation, from those of two parts of it: a batch takes some time however few texts it has."""

    def timed(count: int) -> float:
        began = clock()
        validate(validation.part(count))
        return clock() - began

    few, more = min(FEW, validation.size), min(MORE, validation.size)
    timed(few)  # on a GPU, this may compile kernels
    first = timed(few)
    if few == more:
        return first
    both = timed(more)
    each = min(max(both - first, 0.0) / (more - few), both / more)
    return both + each * (validation.size - more)
