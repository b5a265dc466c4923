"""The interface between a search and a model."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class State(Protocol):
    """What a model keeps between steps, one row per sequence."""

    def reorder(self, rows: Tensor) -> None: ...


@runtime_checkable
class StepModel(Protocol):
    """A model that decodes one token at a time, recurrent or not."""

    def step(self, tokens: Int[Tensor, " b"], state: State) -> Float[Tensor, "b vocab"]: ...


Stops = Callable[[Tensor, Tensor], Tensor]  # (tokens of each row, the sentence of each row) -> the rows that end here
