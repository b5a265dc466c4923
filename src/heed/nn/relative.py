"""Relative positions in attention: a term of the scores with its own weights (Transformer-XL)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class RelativePositions(nn.Module):
    """(u·k + (q + v)·W r(i - j)) / √d, where r is the sinusoid of the distance from query i back to key j (Dai et al., 2019).

    With q·k / √d these are the four terms of the paper's equation. Distances are clamped to `farthest`, if it is not 0.
    """

    def __init__(self, dim: int, heads: int, *, farthest: int = 0, dropout: float = 0.0):
        super().__init__()
        self.farthest, self.width = farthest, dim // heads
        self.positions = nn.Linear(dim, dim, bias=False)
        self.u, self.v = (nn.Parameter(torch.zeros(heads, 1, self.width)) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: Float[Tensor, "b h q d"], key: Float[Tensor, "b h k d"]) -> Float[Tensor, "b h q k"]:
        waves = distance_waves(key.shape[2], self.positions.in_features, self.farthest, query.device)
        distances = self.positions(self.dropout(waves.to(query.dtype))).unflatten(-1, (-1, self.width)).transpose(0, 1)
        by_distance = (query + self.v) @ distances.mT
        return (self.u @ key.mT + shift(by_distance)) / math.sqrt(self.width)


def distance_waves(keys: int, dim: int, farthest: int, device: torch.device) -> Float[Tensor, "keys dim"]:
    """The sinusoids of the distances keys - 1, …, 1, 0: all sines, then all cosines."""
    distance = torch.arange(keys - 1, -1, -1, dtype=torch.float64, device=device)
    distance = distance.clamp(max=farthest) if farthest else distance
    rate = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64, device=device) / dim)
    angle = distance[:, None] * rate
    return torch.cat([angle.sin(), angle.cos()], dim=1)[:, :dim]


def shift(x: Float[Tensor, "b h q k"]) -> Float[Tensor, "b h q k"]:
    """From scores by distance, the farthest first, to scores by key. Keys after a query are meaningless: mask them."""
    b, h, queries, keys = x.shape
    return F.pad(x, (1, 0)).reshape(b, h, keys + 1, queries)[:, :, 1:].reshape(b, h, queries, keys)
