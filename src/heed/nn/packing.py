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

    def twice(self) -> "Borders":
        """The same sequences, and once more after them."""
        starts = torch.cat([self.starts, self.starts[1:] + self.starts[-1]])
        return Borders(starts, self.longest, self.places.repeat(2))


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
    """softmax(query . key / sqrt(d)) . value, sequence by sequence: by torch's kernel for such, or side by side."""
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and not dropout:
        from torch.nn.attention.varlen import varlen_attn

        parts = [part[0].transpose(0, 1) for part in (query, key, value)]
        borders = (mask.queries.starts, mask.keys.starts, mask.queries.longest, mask.keys.longest)
        return varlen_attn(*parts, *borders, window_size=(-1, 0) if causal else (-1, -1)).transpose(0, 1)[None]
    slots, lengths = [_slots(borders) for borders in mask], mask.keys.starts.diff()
    shapes = [(len(lengths), borders.longest) for borders in mask]
    q, k, v = (
        part[0].new_zeros(part.shape[1], shape[0] * shape[1], part.shape[3]).index_copy(1, own, part[0])
        .unflatten(1, shape).transpose(0, 1)
        for part, shape, own in zip((query, key, value), (shapes[0], shapes[1], shapes[1]),
                                    (slots[0], slots[1], slots[1]), strict=True)
    )  # fmt: skip
    place = torch.arange(mask.keys.longest, device=query.device)
    allowed = (place < lengths.clamp(min=1)[:, None])[:, None, None]  # a sequence of nothing sees one zero
    if causal:
        allowed = allowed & (place <= torch.arange(mask.queries.longest, device=query.device)[:, None])
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout)
    return mixed.transpose(0, 1).flatten(1, 2).index_select(1, slots[0])[None]


def _slots(borders: Borders) -> Int[Tensor, " t"]:
    """Where each token stands when the sequences stand side by side."""
    token = torch.arange(borders.places.numel(), device=borders.places.device)
    number = torch.bucketize(token, borders.starts[1:], right=True)
    return number * borders.longest + borders.places
