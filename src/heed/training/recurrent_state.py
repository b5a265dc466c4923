"""The hidden state that an objective carries between batches (truncated backpropagation), for checkpoints."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor

from heed.training.distributed import SingleProcess

PREFIX = "carried."  # of the names in training.safetensors


@runtime_checkable
class HasRecurrentState(Protocol):
    """An objective with a hidden state: tensors with one row for each row of its batches."""

    def recurrent_state(self) -> dict[str, Tensor]: ...

    def restore_recurrent_state(self, tensors: Mapping[str, Tensor]) -> None: ...


class RecurrentState:
    """Saves and restores the hidden state of an objective, over all processes; empty if the objective has none."""

    def __init__(self, objective: object, workers: SingleProcess):
        self.objective = objective if isinstance(objective, HasRecurrentState) else None
        self.workers = workers

    def tensors(self) -> dict[str, Tensor]:
        """The rows of all processes. A collective call: every process must make it."""
        state = self.objective.recurrent_state() if self.objective else {}
        return {PREFIX + name: self.workers.gather_rows(rows) for name, rows in state.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Give this process its share of the saved rows."""
        if self.objective:
            state = {name.removeprefix(PREFIX): rows for name, rows in tensors.items() if name.startswith(PREFIX)}
            rank, world = self.workers.rank, self.workers.world
            self.objective.restore_recurrent_state(
                {name: rows.chunk(world)[rank].to(self.workers.device) for name, rows in state.items()}
            )
