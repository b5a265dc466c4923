"""Encoder layers with local context: windowed self-attention, and convolution.

A table in the lecture notes compares their costs with self-attention and recurrence (Vaswani et al., 2017, table 1):
for n positions of size d, O(r n d) with a window of r positions, and O(k n d²) with a kernel of k.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn import masks
from heed.nn.attention import Attention, Kernel, attend
from heed.nn.packing import PackedMask, SequenceOffsets

Mask = Bool[Tensor, "..."] | PackedMask | None


class WindowedAttention(nn.Module):
    """Self-attention in which a position attends to the `window` positions centred on it."""

    def __init__(self, dim: int, heads: int, window: int, *, dropout: float = 0.0):
        super().__init__()
        self.window = window
        self.attention = Attention(dim, heads, dropout=dropout, kernel=windowed_kernel(window))

    def forward(
        self, x: Float[Tensor, "b t dim"], *, mask: Mask = None, causal: bool = False, cache: None = None
    ) -> Float[Tensor, "b t dim"]:
        assert not causal and cache is None, "windowed attention is for encoders"
        if not isinstance(mask, PackedMask):
            near = masks.build(masks.windowed(self.window), x.shape[1], x.shape[1], x.device)
            itself = masks.build(masks.windowed(1), x.shape[1], x.shape[1], x.device)  # padding may see no token
            mask = near if mask is None else near & mask | itself
        return self.attention(x, mask=mask)


def windowed_kernel(window: int) -> Kernel:
    """Attention that computes `window` scores per query; equal to `attend` under a mask that allows no others."""

    def kernel(
        query: Tensor, key: Tensor, value: Tensor, *, mask: Mask = None, causal: bool = False, dropout: float = 0.0
    ):
        assert not causal
        if not isinstance(mask, PackedMask) and key.shape[2] <= 4 * window:
            return attend(query, key, value, mask=mask, dropout=dropout)  # short sequences save little
        allowed = _same_sequence(mask.keys, window) if isinstance(mask, PackedMask) else _window_mask(mask, window)
        scores = (query[..., None, :] @ sliding_windows(key, window).mT)[..., 0, :] / math.sqrt(query.shape[-1])
        weights = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)
        return (F.dropout(weights, dropout)[..., None, :] @ sliding_windows(value, window))[..., 0, :]

    return kernel


class Convolution(nn.Module):
    """A gated convolution: the `kernel` positions around each through one matrix, then GLU (Gehring et al., 2017)."""

    def __init__(self, dim: int, kernel: int):
        super().__init__()
        self.kernel = kernel
        self.through = nn.Linear(kernel * dim, 2 * dim)

    def forward(
        self, x: Float[Tensor, "b t dim"], *, mask: Mask = None, causal: bool = False, cache: None = None
    ) -> Float[Tensor, "b t dim"]:
        assert not causal and cache is None, "this convolution is for encoders"
        if isinstance(mask, PackedMask):
            near = sliding_windows(x, self.kernel) * _same_sequence(mask.keys, self.kernel)[..., None]
        else:
            near = sliding_windows(x if mask is None else x * mask[:, 0, 0, :, None], self.kernel)
        return F.glu(self.through(near.flatten(2)), dim=-1)


def sliding_windows(x: Float[Tensor, "*b t d"], window: int) -> Float[Tensor, "*b t window d"]:
    """The `window` positions centred on each position, zeros beyond the ends."""
    return F.pad(x, (0, 0, window // 2, window // 2)).unfold(-2, window, 1).mT


def _window_mask(mask: Bool[Tensor, "... t t"], window: int) -> Bool[Tensor, "... t window"]:
    """The entries of a mask for the window of each query."""
    position, near, inside = _window_positions(mask.shape[-1], window, mask.device)
    return mask[..., position[:, None], near] & inside


def _same_sequence(offsets: SequenceOffsets, window: int) -> Bool[Tensor, "t window"]:
    """Which positions of each window belong to the sequence of its centre."""
    position, near, inside = _window_positions(len(offsets.positions), window, offsets.positions.device)
    sequence = torch.bucketize(position, offsets.starts[1:], right=True)
    return (sequence[near] == sequence[:, None]) & inside


def _window_positions(
    length: int, window: int, device: torch.device
) -> tuple[Int[Tensor, " t"], Int[Tensor, "t window"], Bool[Tensor, "t window"]]:
    """Every position, the positions of its window, and which of these are inside the sequence."""
    position = torch.arange(length, device=device)
    near = position[:, None] + torch.arange(window, device=device) - window // 2
    return position, near.clamp(0, length - 1), (near >= 0) & (near < length)
