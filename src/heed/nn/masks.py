"""Who may look at whom.

A mask is a bool tensor, True where a query may attend to a key, of any shape that broadcasts to
(batch, heads, queries, keys). This is the convention of torch's scaled_dot_product_attention, and
the only one in heed.

A pattern is a mask before it has a size: a function of the two positions, (q, k) -> may q see k.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heed.nn.packing import Borders, Within

Pattern = Callable[[Tensor, Tensor], Tensor]


def of_keys(
    valid: Bool[Tensor, "b k"] | Borders | None, queries: Borders | None = None
) -> Bool[Tensor, "b 1 1 k"] | Within | None:
    """Every query may attend to every key that is a token and not padding; without padding, no mask.

    Of sequences end to end, each query to the keys of its own; without `queries`, the keys are the queries too.
    """
    if isinstance(valid, Borders):
        return Within(queries or valid, valid)
    return None if valid is None else valid[:, None, None, :]


def of_lengths(lengths: Int[Tensor, " b"], size: int) -> Bool[Tensor, "b size"]:
    """True at the first `lengths[i]` places of row i."""
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def draw(pattern: Pattern, queries: int, keys: int, device=None) -> Bool[Tensor, "queries keys"]:
    """The mask of `pattern`. The last query stands at the last key: the keys before it are cached."""
    k = torch.arange(keys, device=device)
    q = torch.arange(keys - queries, keys, device=device)
    return pattern(q[:, None], k[None, :])


def causal() -> Pattern:
    """Each position sees itself and what came before."""
    return lambda q, k: k <= q


def near(window: int) -> Pattern:
    """Each position sees the `window` around it, itself in their middle."""
    return lambda q, k: (q - k).abs() <= window // 2
