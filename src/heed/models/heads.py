"""Heads of models that do not generate text."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Classification(nn.Module):
    """The vector of a text in, the logits of its labels out."""

    def __init__(self, dim: int, labels: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, labels)

    def forward(self, x: Float[Tensor, "b dim"]) -> Float[Tensor, "b labels"]:
        return self.out(self.dropout(torch.tanh(self.dense(self.dropout(x)))))


class Labels(nn.Module):
    """The vector of a text in, the logits of its labels out: one matrix (Radford et al., 2018)."""

    def __init__(self, dim: int, labels: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(dim, labels, bias=False)

    def forward(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows labels"]:
        return self.out(self.dropout(x))


class Choices(nn.Module):
    """The vector of each choice in, its score out (Radford et al., 2018)."""

    def __init__(self, dim: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(dim, 1)

    def forward(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows"]:
        return self.out(self.dropout(x))[..., 0]
