"""Packed sequences: many sequences in one row without padding, and attention that stays within each."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

SHORT = 128  # tokens: a sequence of at most this length fits into one tile of an attention kernel


class SequenceOffsets(NamedTuple):
    """The start of each sequence in a row of t tokens, and the end of the last; an upper bound of their lengths; the
    position of each token within its sequence.
    """

    starts: Int[Tensor, " n"]
    longest: int
    positions: Int[Tensor, " t"]

    def twice(self) -> "SequenceOffsets":
        """The same sequences, and once more after them."""
        starts = torch.cat([self.starts, self.starts[1:] + self.starts[-1]])
        return SequenceOffsets(starts, self.longest, self.positions.repeat(2))


class PackedMask(NamedTuple):
    """A mask: the queries of sequence i see the keys of sequence i."""

    queries: SequenceOffsets
    keys: SequenceOffsets


def attend_packed(
    query: Float[Tensor, "1 h q d"],
    key: Float[Tensor, "1 h k d"],
    value: Float[Tensor, "1 h k d"],
    mask: PackedMask,
    causal: bool,
    dropout: float = 0.0,
) -> Float[Tensor, "1 h q d"]:
    """softmax(query . key / sqrt(d)) . value within each sequence: by torch's varlen kernel, or padded."""
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and not dropout:
        from torch.nn.attention.varlen import varlen_attn

        parts = [part[0].transpose(0, 1) for part in (query, key, value)]
        bounds = (mask.queries.starts, mask.keys.starts, mask.queries.longest, mask.keys.longest)
        return varlen_attn(*parts, *bounds, window_size=(-1, 0) if causal else (-1, -1)).transpose(0, 1)[None]
    slots, lengths = [_padded_slots(offsets) for offsets in mask], mask.keys.starts.diff()
    shapes = [(len(lengths), offsets.longest) for offsets in mask]
    q, k, v = (
        part[0].new_zeros(part.shape[1], shape[0] * shape[1], part.shape[3]).index_copy(1, slot, part[0])
        .unflatten(1, shape).transpose(0, 1)
        for part, shape, slot in zip((query, key, value), (shapes[0], shapes[1], shapes[1]),
                                     (slots[0], slots[1], slots[1]), strict=True)
    )  # fmt: skip
    position = torch.arange(mask.keys.longest, device=query.device)
    allowed = (position < lengths.clamp(min=1)[:, None])[:, None, None]  # an empty sequence sees one zero, not nothing
    if causal:
        allowed = allowed & (position <= torch.arange(mask.queries.longest, device=query.device)[:, None])
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, dropout_p=dropout)
    return y.transpose(0, 1).flatten(1, 2).index_select(1, slots[0])[None]


def _padded_slots(offsets: SequenceOffsets) -> Int[Tensor, " t"]:
    """The index of each token in the flattened, padded batch."""
    token = torch.arange(offsets.positions.numel(), device=offsets.positions.device)
    sequence = torch.bucketize(token, offsets.starts[1:], right=True)
    return sequence * offsets.longest + offsets.positions
