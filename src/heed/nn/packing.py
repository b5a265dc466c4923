"""Sequences end to end, without padding: where each begins, and attention that stays within them."""

import inspect
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


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
        return _flash(query, key, value, mask, causal)
    numbers = [
        torch.bucketize(torch.arange(b.places.numel(), device=query.device), b.starts[1:], right=True) for b in mask
    ]
    allowed = numbers[0][:, None] == numbers[1][None, :]
    if causal:
        allowed = allowed & (mask.keys.places[None, :] <= mask.queries.places[:, None])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout)


def _flash(query: Tensor, key: Tensor, value: Tensor, mask: Within, causal: bool) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    parts = [part[0].transpose(0, 1) for part in (query, key, value)]
    borders = (mask.queries.starts, mask.keys.starts, mask.queries.longest, mask.keys.longest)
    return varlen_attn(*parts, *borders, **_looking_back(causal)).transpose(0, 1)[None]


@cache
def _looking_back(causal: bool) -> dict:
    """How torch is told not to look ahead: 2.10 and later ones have different words for it."""
    from torch.nn.attention.varlen import varlen_attn

    if "is_causal" in inspect.signature(varlen_attn).parameters:
        return {"is_causal": causal}
    return {"window_size": (-1, 0) if causal else (-1, -1)}
