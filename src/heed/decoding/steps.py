"""What a search asks of a model, and what it gives back."""

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class State(Protocol):
    """What a model keeps between steps, a row for each sequence."""

    def reorder(self, rows: Tensor) -> None: ...


@runtime_checkable
class Steps(Protocol):
    """A model that decodes one token at a time. Recurrent or not, a search asks nothing more of it."""

    def step(self, tokens: Int[Tensor, " b"], state: State) -> Float[Tensor, "b vocab"]: ...


class Hypothesis(NamedTuple):
    """Tokens with the end mark, where it was reached; `scores` the log probability of each, None where nobody kept them."""

    tokens: list[int]
    score: float
    scores: list[float] | None
