"""The interface between a search and a model."""

from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.hypothesis import Hypothesis


@runtime_checkable
class State(Protocol):
    """What a model keeps between steps, one row per sequence."""

    def reorder(self, rows: Tensor) -> None: ...


@runtime_checkable
class StepModel(Protocol):
    """A model that decodes one token at a time, recurrent or not."""

    def step(self, tokens: Int[Tensor, " b"], state: State) -> Float[Tensor, "b vocab"]: ...


Stops = Callable[[Tensor, Tensor], Tensor]  # (tokens of each row, the sentence of each row) -> the rows that end here


class NextStep(NamedTuple):
    """What a search needs next: the logits after these tokens. Of its state it keeps `rows`, in this order, or all."""

    tokens: Int[Tensor, " b"]
    rows: Int[Tensor, " b"] | None


Search = Generator[NextStep, Tensor, list[list[Hypothesis]]]  # is sent the logits of each step


class RunningSearch:
    """A search that has begun: `next_step` is what it needs, None when it has its `result`."""

    def __init__(self, search: Search):
        self.search, self.next_step, self.result = search, None, None
        self._advance(lambda: next(search))

    def send(self, logits: Float[Tensor, "b vocab"]) -> None:
        self._advance(lambda: self.search.send(logits))

    def step(self, model: StepModel, state: State) -> None:
        """Take the next step with a state of its own."""
        tokens, rows = self.next_step
        if rows is not None:
            state.reorder(rows)
        self.send(model.step(tokens, state))

    def _advance(self, resume: Callable[[], NextStep]) -> None:
        try:
            self.next_step = resume()
        except StopIteration as end:
            self.next_step, self.result = None, end.value


@torch.inference_mode()
def run(search: Search, model: StepModel, state: State) -> list[list[Hypothesis]]:
    """The result of a search."""
    running = RunningSearch(search)
    while running.next_step is not None:
        running.step(model, state)
    return running.result
