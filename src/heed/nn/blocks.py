"""Block-sparse attention (BigBird, Zaheer et al., 2020): a position attends to the first and last block, its own and
the two adjacent ones, and a few random ones. Time and memory are linear in the number of positions. External global
tokens, after the text, attend to all positions, and all attend to them.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

GLOBAL, WINDOW = 2, 3  # blocks that all positions see, and blocks around a position
DRAWN_FOR_ALL = (1024, 3072, 4096)  # lengths whose random blocks are drawn as in the paper's code
NEAR = 1024  # positions: in that drawing, random blocks lie before it
NONE = -1  # in a table of blocks: none

External = tuple[Float[Tensor, "b h g d"], Float[Tensor, "b h g d"]] | None  # keys and values of external tokens


class BlockMask(NamedTuple):
    """A mask: the queries of block i attend to the blocks `table[head, i - 1]`, those of the first and last block to
    all. A block listed twice in a row counts twice. Only the first and last row of `table` may have an empty entry.
    `valid` are the keys that are not padding. The last `external` positions are global tokens outside of the blocks.
    """

    table: Int[Tensor, "h middle seen"]
    size: int
    valid: Bool[Tensor, "b 1 1 k"] | None = None
    external: int = 0

    def counts(self) -> Float[Tensor, "h blocks blocks"]:
        """How often the keys of each block count for the queries of each block; 0: not attended to."""
        heads, middle, _ = self.table.shape
        counts = torch.zeros(heads, middle + 2, middle + 2, dtype=torch.float64, device=self.table.device)
        seen = (self.table != NONE).to(counts.dtype)
        counts[:, 1:-1].scatter_add_(2, self.table.clamp(min=0), seen)
        counts[:, 0] = counts[:, -1] = 1
        return counts

    def bias(self, length: int) -> Float[Tensor, "1 h q k"]:
        """The same as a term of the scores: log of how often a key counts, -inf if it is not attended to."""
        counts, text = self.counts(), length - self.external
        for axis in (1, 2):
            counts = counts.repeat_interleave(self.size, dim=axis)
        return F.pad(counts[None, :, :text, :text], (0, self.external) * 2, value=1.0).log()


@dataclass(frozen=True)
class BlockPattern:
    """Which blocks attend to which. Texts of up to `full` positions are too short for it and use full attention."""

    size: int  # positions of a block
    random: int  # random blocks that a block sees
    heads: int
    longest: int  # the most positions of the model

    @property
    def full(self) -> int:
        return (GLOBAL + WINDOW + 2 * self.random) * self.size

    def table(self, length: int, random: Int[np.ndarray, "h middle r"]) -> Int[Tensor, "h middle seen"]:
        """The blocks that each block but the first and the last attends to, given these random ones."""
        blocks = -(-length // self.size)
        own = np.arange(1, blocks - 1)[:, None]
        window = own + np.arange(-1, 2)
        window = np.where((window == 0) | (window == blocks - 1), NONE, window)  # those count as global
        fixed = np.concatenate([np.zeros_like(own), window, np.full_like(own, blocks - 1)], axis=1)
        fixed = np.broadcast_to(fixed, (self.heads, *fixed.shape))
        return torch.from_numpy(np.concatenate([fixed, random], axis=2).astype(np.int64))

    def first_again(self, length: int) -> Int[np.ndarray, "h middle r"]:
        """The first block instead of every random one: what transformers does outside of training."""
        return np.zeros((self.heads, -(-length // self.size) - 2, self.random), dtype=np.int64)

    def drawn(self, length: int, seed: int) -> Int[np.ndarray, "h middle r"]:
        """Random blocks drawn from a seed, as transformers does in training."""
        blocks = -(-length // self.size)
        if blocks * self.size in DRAWN_FOR_ALL:
            return _drawn_for_all(self.longest // self.size, self.size, self.random, self.heads, seed)[:, : blocks - 2]
        return _drawn(blocks, self.random, self.heads, seed)


@lru_cache(maxsize=256)
def _drawn(blocks: int, count: int, heads: int, seed: int) -> Int[np.ndarray, "h middle r"]:
    """For each block and head, the first blocks that are neither global nor in its window."""
    draw, last = np.random.RandomState(seed), GLOBAL + WINDOW + 2 * count
    found = np.zeros((heads, blocks, count), dtype=np.int64)
    for block in range(1, blocks):
        never = {0, last - 1, block - 1, block, block + 1}
        never |= {last - 2} if block == 1 else {1} if block == last - 2 else set()
        for head in range(heads):
            order = draw.permutation(np.arange(last, dtype=np.int32))
            found[head, block] = [one for one in order if one not in never][:count]
    return found[:, 1:-1]


@lru_cache(maxsize=256)
def _drawn_for_all(blocks: int, size: int, count: int, heads: int, seed: int) -> Int[np.ndarray, "h middle r"]:
    """The random blocks of the paper's code, for the longest text; shorter ones use a prefix."""
    draw, last = np.random.RandomState(seed), NEAR // size - 1 if 2 * size < NEAR else blocks - 1
    between = np.arange(1, blocks - 1, dtype=np.int32)
    found = np.zeros((heads, blocks - 2, count), dtype=np.int64)
    for head in range(heads):
        for block in range(1, blocks - 1):
            found[head, block - 1] = draw.permutation(_candidates(between, block, blocks, last))[:count]
    return found


def _candidates(between: np.ndarray, block: int, blocks: int, last: int) -> np.ndarray:
    """The blocks that a block may draw from; near the end of the text these include its own window, as in that code."""
    if block <= 2:
        return between[block + 1 : last]
    if block >= blocks - 3:
        return between[:last]
    before = min(block - 2, last)
    if block - 2 > last or block + 1 == last:
        return between[:before]
    return np.concatenate([between[:before], between[block + 1 : last]])


def attend_blocks(
    query: Float[Tensor, "b h t d"],
    key: Float[Tensor, "b h t d"],
    value: Float[Tensor, "b h t d"],
    mask: BlockMask,
    dropout: float = 0.0,
) -> Float[Tensor, "b h t d"]:
    """softmax(query . key / sqrt(d)) . value over the blocks that each block attends to, which are gathered, and over
    external global tokens; 0 at padding.
    """
    if not mask.external:
        return _attend_text(query, key, value, mask, None, dropout)
    text = [query.shape[2] - mask.external, mask.external]
    (q, outer), *keys = (part.split(text, dim=2) for part in (query, key, value))
    own = mask._replace(valid=None if mask.valid is None else mask.valid[..., : text[0]])
    inner = _attend_text(q, keys[0][0], keys[1][0], own, (keys[0][1], keys[1][1]), dropout)
    outer = F.scaled_dot_product_attention(outer, key, value, attn_mask=mask.valid, dropout_p=dropout)
    return torch.cat([inner, outer], dim=2)


def _attend_text(
    query: Float[Tensor, "b h t d"],
    key: Float[Tensor, "b h t d"],
    value: Float[Tensor, "b h t d"],
    mask: BlockMask,
    external: External,
    dropout: float,
) -> Float[Tensor, "b h t d"]:
    """The same for the positions in blocks; `external` are the keys and values of the others."""
    length, middle = query.shape[2], mask.table.shape[1]
    rest, table = (middle + 2) * mask.size - length, mask.table.to(query.device)
    q, k, v = (F.pad(part, (0, 0, 0, rest)) if rest else part for part in (query, key, value))
    valid = valid_keys(mask, query, rest)
    ends = torch.cat([q[:, :, : mask.size], q[:, :, -mask.size :]], dim=2)
    count = 0 if external is None else external[0].shape[2]
    seen = None if valid is None else F.pad(valid, (0, count), value=True)[:, None, None]
    every = (k, v) if external is None else [torch.cat(both, dim=2) for both in zip((k, v), external, strict=True)]
    ends = F.scaled_dot_product_attention(ends, *every, attn_mask=seen, dropout_p=dropout)
    q, k, v = (part.unflatten(2, (-1, mask.size)) for part in (q, k, v))
    # Without padding the rows between the first and the last need no mask, and without one kernels are faster.
    rows = [slice(0, middle)] if valid is not None else [slice(0, 1), slice(1, middle - 1), slice(middle - 1, middle)]
    inner = []
    for own in rows:
        part, queries = table[:, own], q[:, :, 1:-1][:, :, own]
        allowed = _allowed(part, valid, mask.size) if len(rows) == 1 or part.shape[1] == 1 else None
        inner.append(_attend_gathered(queries, k, v, part, allowed, external, dropout))
    y = torch.cat([ends[:, :, : mask.size], *inner, ends[:, :, mask.size :]], dim=2)
    return y if valid is None else (y * valid[:, None, :, None])[:, :, :length]


def _attend_gathered(
    query: Float[Tensor, "b h rows size d"],
    key: Float[Tensor, "b h blocks size d"],
    value: Float[Tensor, "b h blocks size d"],
    table: Int[Tensor, "h rows seen"],
    allowed: Bool[Tensor, "#b h rows keys"] | None,
    external: External,
    dropout: float,
) -> Float[Tensor, "b h positions d"]:
    """Attention of the queries of each row to its blocks."""
    head = torch.arange(len(table), device=table.device)[:, None, None]
    gathered = [part[:, head, table.clamp(min=0)].flatten(3, 4) for part in (key, value)]
    if external is not None:
        own = [part[:, :, None].expand(-1, -1, table.shape[1], -1, -1) for part in external]
        gathered = [torch.cat(both, dim=3) for both in zip(gathered, own, strict=True)]
        allowed = None if allowed is None else F.pad(allowed, (0, external[0].shape[2]), value=True)
    keys, values = (part.flatten(1, 2) for part in gathered)
    allowed = None if allowed is None else allowed.flatten(1, 2)[:, :, None]
    y = F.scaled_dot_product_attention(query.flatten(1, 2), keys, values, attn_mask=allowed, dropout_p=dropout)
    return y.unflatten(1, query.shape[1:3]).flatten(2, 3)


def _allowed(
    table: Int[Tensor, "h rows seen"], valid: Bool[Tensor, "b k"] | None, size: int
) -> Bool[Tensor, "b h rows keys"]:
    """Which of the gathered keys are valid."""
    named = (table != NONE)[None, ..., None]
    if valid is None:
        return named.expand(-1, -1, -1, -1, size).flatten(3, 4)
    return (valid.unflatten(1, (-1, size))[:, table.clamp(min=0)] & named).flatten(3, 4)


def valid_keys(mask: BlockMask, query: Tensor, rest: int) -> Bool[Tensor, "b k"] | None:
    """The keys that are not padding, extended by `rest` to the end of the last block; None if all are valid."""
    if mask.valid is None and not rest:
        return None
    valid = query.new_ones(1, query.shape[2], dtype=torch.bool) if mask.valid is None else mask.valid[:, 0, 0]
    return F.pad(valid, (0, rest))
