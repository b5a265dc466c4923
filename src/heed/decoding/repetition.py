"""The repetition penalty of CTRL (Keskar et al., 2019): tokens that occurred before become less likely."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.steps import State, StepModel


def penalize(
    logits: Float[Tensor, "r vocab"], seen: Bool[Tensor, "r vocab"], penalty: float
) -> Float[Tensor, "r vocab"]:
    """Positive logits of seen tokens are divided by the penalty, negative ones multiplied: both become less likely."""
    return torch.where(seen, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


@dataclass
class SeenTokens:
    """The state of a model, and the tokens that each row has read; until the first step, those `before`."""

    state: State
    before: list[Sequence[int]] | None
    seen: Tensor | None = None

    def reorder(self, rows: Tensor) -> None:
        self.state.reorder(rows)
        if self.before is not None:
            self.before = [self.before[i] for i in rows.tolist()]
        if self.seen is not None:
            self.seen = self.seen.index_select(0, rows)


class RepetitionPenalty:
    """A model whose logits are penalized, for any search."""

    def __init__(self, model: StepModel, penalty: float):
        self.model, self.penalty = model, penalty

    def step(self, tokens: Int[Tensor, " b"], state: SeenTokens) -> Float[Tensor, "b vocab"]:
        logits = self.model.step(tokens, state.state)
        if state.seen is None:
            state.seen = torch.zeros_like(logits, dtype=torch.bool)
            for row, before in enumerate(state.before or ()):
                state.seen[row, list(before)] = True
            state.before = None
        state.seen = state.seen.scatter(1, tokens[:, None], True)
        return penalize(logits, state.seen, self.penalty)


def with_repetition_penalty(
    model: StepModel, state: State, penalty: float, before: Sequence[Sequence[int]]
) -> tuple[StepModel, State]:
    """The model and its state with the penalty; row i has read the tokens `before[i]`."""
    if penalty == 1:
        return model, state
    return RepetitionPenalty(model, penalty), SeenTokens(state, list(before) or None)
