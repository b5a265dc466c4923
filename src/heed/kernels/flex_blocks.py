"""Block-sparse attention by torch's FlexAttention: one compiled kernel that reads blocks where they are and gathers none.

Gathered blocks (nn/blocks.py) are what models use; `python -m bench.bigbird` measures both. Compiling tries tiles of several sizes: those
that torch takes by default on an H200 have 128 keys, and the backward pass refuses blocks of 64 with them.
"""

from copy import copy
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.attention import flex_attention as flex
from torch.utils.weak import WeakTensorKeyDictionary

from heed.nn.attention import Kernel, attend
from heed.nn.blocks import BlockMask, valid_keys
from heed.nn.packing import PackedMask


class FlexBlocks(NamedTuple):
    """A table of blocks as FlexAttention takes it: for texts without padding and with it; which blocks are seen; log of how often
    each counts, if one counts more than once.
    """

    full: flex.BlockMask
    partial: flex.BlockMask
    seen: Bool[Tensor, "h blocks blocks"]
    log_counts: Float[Tensor, "h blocks blocks"] | None


_kept: WeakTensorKeyDictionary = (
    WeakTensorKeyDictionary()
)  # as long as its table is: a mask is made of many small kernels


@cache
def _compiled() -> Kernel:
    # fullgraph: where nothing can be compiled it is an error, since uncompiled attention would be full
    return torch.compile(flex.flex_attention, mode="max-autotune-no-cudagraphs", fullgraph=True)


def attend_flex(
    query: Float[Tensor, "b h q d"],
    key: Float[Tensor, "b h k d"],
    value: Float[Tensor, "b h k d"],
    *,
    mask: Bool[Tensor, "... #q #k"] | PackedMask | BlockMask | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "b h q d"]:
    """Like `attend`, with FlexAttention blocks, compiled on a GPU. With dropout or external tokens, which it does not
    support, blocks are gathered.
    """
    if not isinstance(mask, BlockMask) or dropout or mask.external:
        return attend(query, key, value, mask=mask, causal=causal, dropout=dropout)
    length, size = query.shape[2], mask.size
    rest = (mask.table.shape[1] + 2) * size - length
    q, k, v = (F.pad(part, (0, 0, 0, rest)) if rest else part for part in (query, key, value))
    blocks, valid = _flex_blocks(mask), valid_keys(mask, query, rest)
    valid = None if valid is None else valid.expand(len(query), -1).contiguous()
    seen, counts = blocks.seen, blocks.log_counts

    # lambdas, since the type checks of tests wrap functions, and those cannot be compiled; indices: text, head, query, key
    own = copy(blocks.full if valid is None else blocks.partial)
    if valid is None:
        own.mask_mod = lambda b, h, i, j: seen[h, i // size, j // size]
    else:
        own.mask_mod = lambda b, h, i, j: seen[h, i // size, j // size] & valid[b, j]
    again = None if counts is None else lambda score, b, h, i, j: score + counts[h, i // size, j // size]
    run = _compiled() if query.is_cuda else flex.flex_attention
    y = run(q, k, v, score_mod=again, block_mask=own)
    y = y if valid is None else y * valid[:, None, :, None]
    return y[:, :, :length]


def _flex_blocks(mask: BlockMask) -> FlexBlocks:
    if mask.table not in _kept:
        with torch.inference_mode(False):  # what is made in that mode could not be used in training afterwards
            counts = mask.counts()
            seen, again = counts > 0, bool(counts.max() > 1)
            number = seen.sum(dim=-1)[None].int()
            order = seen.int().argsort(dim=-1, descending=True, stable=True)[None].int()
            make = flex.BlockMask.from_kv_blocks
            full = make(torch.zeros_like(number), order, number, order, BLOCK_SIZE=mask.size)
            partial = make(number, order, BLOCK_SIZE=mask.size)
            _kept[mask.table] = FlexBlocks(full, partial, seen, counts.float().log() if again else None)
    return _kept[mask.table]
