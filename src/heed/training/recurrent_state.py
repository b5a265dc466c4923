"""What an objective carries from one batch to the next, as a checkpoint keeps it: the rows of all processes together."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor

from heed.training.distributed import SingleProcess

PREFIX = "carried."


@runtime_checkable
class Carries(Protocol):
    """An objective with a memory, a row for each of the rows of its batches."""

    def carried(self) -> dict[str, Tensor]: ...

    def carry_on(self, tensors: Mapping[str, Tensor]) -> None: ...


class Carried:
    """The memory of an objective, if it has one."""

    def __init__(self, objective: object, workers: SingleProcess):
        self.objective = objective if isinstance(objective, Carries) else None
        self.workers = workers

    def tensors(self) -> dict[str, Tensor]:
        """All of it; every process must ask."""
        own = self.objective.carried() if self.objective else {}
        return {PREFIX + name: self.workers.rows(part) for name, part in own.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """To each process the rows that it goes on with."""
        if self.objective:
            own = {name.removeprefix(PREFIX): part for name, part in tensors.items() if name.startswith(PREFIX)}
            rank, world = self.workers.rank, self.workers.world
            self.objective.carry_on(
                {name: part.chunk(world)[rank].to(self.workers.device) for name, part in own.items()}
            )
