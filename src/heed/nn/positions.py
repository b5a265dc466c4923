"""Position encodings, which are added to token embeddings."""

import math
from collections.abc import Callable
from functools import wraps

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


def _shape_on_meta(table: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A table that has only its shape on the meta device: computing there would make torch import its compiler, for
    two seconds.
    """

    @wraps(table)
    def shaped(length: int, dim: int, **more: int) -> Tensor:
        return torch.empty(length, dim) if torch.get_default_device().type == "meta" else table(length, dim, **more)

    return shaped


@_shape_on_meta
def sinusoids(length: int, dim: int) -> Float[Tensor, "length dim"]:
    """Equations (7) and (8): alternating sine and cosine of position / 10000^(2i/dim)."""
    rate = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.arange(length)[:, None] * rate  # float32 would be inexact at far positions
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :dim].float()


@_shape_on_meta
def sinusoids_in_halves(length: int, dim: int) -> Float[Tensor, "length dim"]:
    """All sines, then all cosines: bit for bit those of Hugging Face's Marian and Pegasus."""
    period = torch.tensor([10000.0 ** (i / dim) for i in range(0, dim, 2)], dtype=torch.float64)
    angle = torch.arange(length)[:, None] / period
    return torch.cat([angle.sin(), angle.cos()], dim=1)[:, :dim].float()


@_shape_on_meta
def sinusoids_of_fairseq(length: int, dim: int, offset: int = 2) -> Float[Tensor, "length dim"]:
    """Positions from `offset` on, and periods up to 10000 itself: bit for bit those of Hugging Face's M2M100, in float32 as there."""
    half = dim // 2
    rate = torch.exp(torch.arange(half).float() * -(math.log(10000) / max(half - 1, 1)))
    angle = torch.arange(offset, offset + length).float()[:, None] * rate
    return F.pad(torch.cat([angle.sin(), angle.cos()], dim=1), (0, dim % 2))


@_shape_on_meta
def sinusoids_in_single_precision(length: int, dim: int) -> Float[Tensor, "length dim"]:
    """All sines, then all cosines, of angles rounded to float32: bit for bit those of CTRL in Hugging Face."""
    places = torch.arange(dim, dtype=torch.float32)
    angle = torch.arange(length, dtype=torch.float32)[:, None] * (1 / torch.pow(10000, (2 * (places // 2)) / dim))
    return torch.cat([angle[:, 0::2].sin(), angle[:, 1::2].cos()], dim=1)


class Sinusoidal(nn.Module):
    """Fixed sinusoids (Vaswani et al., 2017)."""

    def __init__(self, length: int, dim: int):
        super().__init__()
        self.register_buffer("waves", sinusoids(length, dim), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length dim"]:
        return self.waves[start : start + length]

    def at(self, positions: Int[Tensor, " t"]) -> Float[Tensor, "t dim"]:
        return self.waves[positions]


class SinusoidalHalves(Sinusoidal):
    """Fixed sinusoids, sines in the first half and cosines in the second (Marian, Pegasus)."""

    def __init__(self, length: int, dim: int):
        super().__init__(length, dim)
        self.waves = sinusoids_in_halves(length, dim)


class SinusoidalFairseq(Sinusoidal):
    """Fixed sinusoids in halves that begin at position 2, as in fairseq (M2M-100, NLLB)."""

    def __init__(self, length: int, dim: int):
        super().__init__(length, dim)
        self.waves = sinusoids_of_fairseq(length, dim)


class SinusoidalSingle(Sinusoidal):
    """Fixed sinusoids in halves, computed in single precision (CTRL)."""

    def __init__(self, length: int, dim: int):
        super().__init__(length, dim)
        self.waves = sinusoids_in_single_precision(length, dim)


class NoPositions(nn.Module):
    """Zeros: no positions. An encoder then sees a bag of tokens without order."""

    def __init__(self, length: int, dim: int):
        super().__init__()
        self.register_buffer("zeros", torch.zeros(dim), persistent=False)

    def forward(self, start: int, length: int) -> Float[Tensor, "length dim"]:
        return self.zeros.expand(length, -1)

    def at(self, positions: Int[Tensor, " t"]) -> Float[Tensor, "t dim"]:
        return self.zeros.expand(len(positions), -1)


class Learned(nn.Module):
    """A learned vector for each position (Gehring et al., 2017). The first `offset` rows are unused, as in BART."""

    def __init__(self, length: int, dim: int, offset: int = 0):
        super().__init__()
        self.offset = offset
        self.places = nn.Embedding(offset + length, dim)

    def forward(self, start: int, length: int) -> Float[Tensor, "length dim"]:
        start += self.offset
        return self.places.weight[start : start + length]

    def at(self, positions: Int[Tensor, " t"]) -> Float[Tensor, "t dim"]:
        return self.places(positions + self.offset)

    def repeated(self, length: int) -> Float[Tensor, "rows dim"]:
        """The vectors of more positions: after the last one, the first follows again."""
        unused, own = self.places.weight[: self.offset], self.places.weight[self.offset :]
        return torch.cat([unused, own.repeat(-(-length // len(own)), 1)[:length]])
