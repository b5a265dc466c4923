"""Layers of an encoder in which a place sees its neighbours alone: restricted self-attention, and convolution.

The two that the table of costs in the lecture notes sets beside self-attention and recurrence (Vaswani et al., 2017, table 1):
of n places of width d, O(r n d) with a neighbourhood of r places, and O(k n d²) with a kernel of k.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn import masks
from heed.nn.attention import Attention, Kernel, attend
from heed.nn.packing import Borders, Within

Mask = Bool[Tensor, "..."] | Within | None


class Restricted(nn.Module):
    """Self-attention in which a place sees the `window` places around it, itself in their middle."""

    def __init__(self, dim: int, heads: int, window: int, *, dropout: float = 0.0):
        super().__init__()
        self.window = window
        self.attention = Attention(dim, heads, dropout=dropout, kernel=attend_near(window))

    def forward(
        self, x: Float[Tensor, "b t dim"], *, mask: Mask = None, causal: bool = False, cache: None = None
    ) -> Float[Tensor, "b t dim"]:
        assert not causal and cache is None, "a decoder looks at all that it has said"
        if not isinstance(mask, Within):
            near = masks.draw(masks.near(self.window), x.shape[1], x.shape[1], x.device)
            itself = masks.draw(masks.near(1), x.shape[1], x.shape[1], x.device)  # at padding there may be nothing else
            mask = near if mask is None else near & mask | itself
        return self.attention(x, mask=mask)


def attend_near(window: int) -> Kernel:
    """A kernel that computes no more than `window` scores a query; under a mask that allows no others, it is `attend`."""

    def kernel(
        query: Tensor, key: Tensor, value: Tensor, *, mask: Mask = None, causal: bool = False, dropout: float = 0.0
    ):
        assert not causal
        if not isinstance(mask, Within) and key.shape[2] <= 4 * window:
            return attend(query, key, value, mask=mask, dropout=dropout)  # of a short text little is saved
        allowed = _within(mask.keys, window) if isinstance(mask, Within) else _diagonals(mask, window)
        scores = (query[..., None, :] @ around(key, window).mT)[..., 0, :] / math.sqrt(query.shape[-1])
        weights = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)
        return (F.dropout(weights, dropout)[..., None, :] @ around(value, window))[..., 0, :]

    return kernel


class Convolution(nn.Module):
    """What stands at the `kernel` places around each, through one matrix; one half of the result gates the other.

    (Gehring et al., 2017.)
    """

    def __init__(self, dim: int, kernel: int):
        super().__init__()
        self.kernel = kernel
        self.through = nn.Linear(kernel * dim, 2 * dim)

    def forward(
        self, x: Float[Tensor, "b t dim"], *, mask: Mask = None, causal: bool = False, cache: None = None
    ) -> Float[Tensor, "b t dim"]:
        assert not causal and cache is None, "a decoder looks at all that it has said"
        if isinstance(mask, Within):
            near = around(x, self.kernel) * _within(mask.keys, self.kernel)[..., None]
        else:
            near = around(x if mask is None else x * mask[:, 0, 0, :, None], self.kernel)
        return F.glu(self.through(near.flatten(2)), dim=-1)


def around(x: Float[Tensor, "*b t d"], window: int) -> Float[Tensor, "*b t window d"]:
    """At each place the `window` places around it; beyond the ends stand zeros."""
    return F.pad(x, (0, 0, window // 2, window // 2)).unfold(-2, window, 1).mT


def _diagonals(mask: Bool[Tensor, "... t t"], window: int) -> Bool[Tensor, "... t window"]:
    """What a mask says of the places around each."""
    place, near, inside = _places(mask.shape[-1], window, mask.device)
    return mask[..., place[:, None], near] & inside


def _within(borders: Borders, window: int) -> Bool[Tensor, "t window"]:
    """Which of the places around each are of its own sequence."""
    place, near, inside = _places(len(borders.places), window, borders.places.device)
    number = torch.bucketize(place, borders.starts[1:], right=True)
    return (number[near] == number[:, None]) & inside


def _places(
    length: int, window: int, device: torch.device
) -> tuple[Int[Tensor, " t"], Int[Tensor, "t window"], Bool[Tensor, "t window"]]:
    """Every place, those around it, and which of these there are."""
    place = torch.arange(length, device=device)
    near = place[:, None] + torch.arange(window, device=device) - window // 2
    return place, near.clamp(0, length - 1), (near >= 0) & (near < length)
