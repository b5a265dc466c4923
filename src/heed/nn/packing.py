"""Sequences end to end, without padding: where each begins, and attention that stays within them."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

SHORT = 128  # tokens: a sequence that fits into one tile


class Borders(NamedTuple):
    """Sequences in a row of t tokens: the first token of each and the end of the last, the length that none exceeds,
    and for each token its place within its own.
    """

    starts: Int[Tensor, " n"]
    longest: int
    places: Int[Tensor, " t"]


class Within(NamedTuple):
    """A mask: each query sees the keys of the sequence with the number of its own."""

    queries: Borders
    keys: Borders


def attend_within(
    query: Float[Tensor, "1 h q d"],
    key: Float[Tensor, "1 h k d"],
    value: Float[Tensor, "1 h k d"],
    mask: Within,
    causal: bool,
    dropout: float = 0.0,
) -> Float[Tensor, "1 h q d"]:
    """softmax(query . key / sqrt(d)) . value, sequence by sequence."""
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and not dropout:
        return _on_gpu(query, key, value, mask, causal)
    numbers = [
        torch.bucketize(torch.arange(b.places.numel(), device=query.device), b.starts[1:], right=True) for b in mask
    ]
    allowed = numbers[0][:, None] == numbers[1][None, :]
    if causal:
        allowed = allowed & (mask.keys.places[None, :] <= mask.queries.places[:, None])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout)


def _on_gpu(query: Tensor, key: Tensor, value: Tensor, mask: Within, causal: bool) -> Tensor:
    """By a kernel for short sequences, or by torch's for any."""
    parts = [part[0].transpose(0, 1) for part in (query, key, value)]
    borders = (mask.queries.starts, mask.keys.starts, mask.queries.longest, mask.keys.longest)
    if max(borders[2:]) <= SHORT and query.shape[-1] in (16, 32, 64, 128):
        from heed.nn.short import attend_short

        return attend_short(*parts, *borders, causal).transpose(0, 1)[None]
    from torch.nn.attention.varlen import varlen_attn

    return varlen_attn(*parts, *borders, window_size=(-1, 0) if causal else (-1, -1)).transpose(0, 1)[None]
