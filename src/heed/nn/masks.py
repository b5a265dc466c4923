"""Attention masks.

A mask is a bool tensor, True where a query may attend to a key, of any shape that broadcasts to
(batch, heads, queries, keys). This is the convention of torch's scaled_dot_product_attention, and
the only one in heed.

A pattern is a mask without a size: a function of two positions, (q, k) -> whether q may attend to k.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heed.nn.packing import PackedMask, SequenceOffsets

Pattern = Callable[[Tensor, Tensor], Tensor]


def key_padding(
    valid: Bool[Tensor, "b k"] | SequenceOffsets | None, queries: SequenceOffsets | None = None
) -> Bool[Tensor, "b 1 1 k"] | PackedMask | None:
    """Every query may attend to every key that is a token and not padding; without padding, no mask.

    In packed sequences each query attends to the keys of its own sequence; `queries` defaults to the keys.
    """
    if isinstance(valid, SequenceOffsets):
        return PackedMask(queries or valid, valid)
    return None if valid is None else valid[:, None, None, :]


def from_lengths(lengths: Int[Tensor, " b"], size: int) -> Bool[Tensor, "b size"]:
    """True at the first `lengths[i]` positions of row i."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def build(pattern: Pattern, queries: int, keys: int, device=None) -> Bool[Tensor, "queries keys"]:
    """The mask of `pattern`. The queries are the last of the keys: those before them are cached."""
    k = torch.arange(keys, device=device)
    q = torch.arange(keys - queries, keys, device=device)
    return pattern(q[:, None], k[None, :])


def causal() -> Pattern:
    """Each position attends to itself and those before it."""
    return lambda q, k: k <= q


def reach(positions: int) -> Pattern:
    """No position attends to those `positions` or more before it."""
    return lambda q, k: q - k < positions


def windowed(window: int) -> Pattern:
    """Each position attends to a window of `window` positions centred on it."""
    return lambda q, k: (q - k).abs() <= window // 2
