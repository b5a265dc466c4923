"""Where a token stands: what is added to its embedding."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sinusoids(length: int, dim: int) -> Float[Tensor, "length dim"]:
    """Equations (7) and (8): sine and cosine of position / 10000^(2i/dim), in turn."""
    rate = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.arange(length)[:, None] * rate  # in float64: a far position times a float32 rate is off
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :dim].float()


def sinusoids_in_halves(length: int, dim: int) -> Float[Tensor, "length dim"]:
    """The same waves, all sines before all cosines; to the last bit what Hugging Face's Marian and Pegasus hold."""
    period = torch.tensor([10000.0 ** (i / dim) for i in range(0, dim, 2)], dtype=torch.float64)
    angle = torch.arange(length)[:, None] / period
    return torch.cat([angle.sin(), angle.cos()], dim=1)[:, :dim].float()


class Sinusoidal(nn.Module):
    """Fixed waves, nothing to learn (Vaswani et al., 2017)."""

    def __init__(self, length: int, dim: int):
        super().__init__()
        self.register_buffer("waves", sinusoids(length, dim), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length dim"]:
        return self.waves[start : start + length]

    def at(self, places: Int[Tensor, " t"]) -> Float[Tensor, "t dim"]:
        return self.waves[places]


class SinusoidalHalves(Sinusoidal):
    """Fixed waves with the sines in one half and the cosines in the other (Marian, Pegasus)."""

    def __init__(self, length: int, dim: int):
        super().__init__(length, dim)
        self.waves = sinusoids_in_halves(length, dim)


class Learned(nn.Module):
    """A vector for each place, learned (Gehring et al., 2017); `before` the first stand rows that are never read."""

    def __init__(self, length: int, dim: int, before: int = 0):
        super().__init__()
        self.before = before
        self.places = nn.Embedding(before + length, dim)

    def forward(self, start: int, length: int) -> Float[Tensor, "length dim"]:
        start += self.before
        return self.places.weight[start : start + length]

    def at(self, places: Int[Tensor, " t"]) -> Float[Tensor, "t dim"]:
        return self.places(places + self.before)
