"""Where a token stands: what is added to its embedding."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def sinusoids(length: int, dim: int) -> Float[Tensor, "length dim"]:
    """Equations (7) and (8): sine and cosine of position / 10000^(2i/dim), in turn."""
    rate = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.arange(length)[:, None] * rate  # in float64: a far position times a float32 rate is off
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :dim].float()


class Sinusoidal(nn.Module):
    """Fixed waves, nothing to learn (Vaswani et al., 2017)."""

    def __init__(self, length: int, dim: int):
        super().__init__()
        self.register_buffer("waves", sinusoids(length, dim), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length dim"]:
        return self.waves[start : start + length]


class Learned(nn.Module):
    """A vector for each place, learned (Gehring et al., 2017)."""

    def __init__(self, length: int, dim: int):
        super().__init__()
        self.places = nn.Embedding(length, dim)

    def forward(self, start: int, length: int) -> Float[Tensor, "length dim"]:
        return self.places.weight[start : start + length]
