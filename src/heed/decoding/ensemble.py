"""An ensemble: at each step, the mean of the probabilities of several models."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class States(list):
    """The states of all members."""

    def reorder(self, rows: Tensor) -> None:
        for state in self:
            state.reorder(rows)


class Ensemble:
    """Models with the same vocabularies."""

    def __init__(self, models: Sequence[nn.Module]):
        self.models = list(models)

    def start(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"]) -> States:
        return States(model.start(source, valid) for model in self.models)

    def step(self, tokens: Int[Tensor, " b"], state: States) -> Float[Tensor, "b vocab"]:
        members = zip(self.models, state, strict=True)
        logp = [model.step(tokens, own).log_softmax(dim=-1) for model, own in members]
        return torch.stack(logp).logsumexp(dim=0) - math.log(len(logp))
