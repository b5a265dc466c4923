"""Local attention over the pixels of an image (Parmar et al., 2018): blocks of queries, each with its block of memory.

Positions are numbered in generation order. A query attends to itself and those before it within the memory of its
block.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.cache import Cache

NONE = -1  # in a table of keys: none
MOST_PAIRS = 1 << 28  # of a position and one that it attends to: a mask has a byte for each


class LocalMask(NamedTuple):
    """A mask: the queries of block i, equally many in each, attend to the keys `table[i]` that `allowed[i]` marks."""

    table: Int[Tensor, "blocks seen"]
    allowed: Bool[Tensor, "blocks queries seen"]

    def dense(self) -> Bool[Tensor, "t t"]:
        """The same as a mask of every query and every key."""
        blocks, queries, _ = self.allowed.shape
        dense = torch.zeros(blocks * queries, blocks * queries, dtype=torch.uint8, device=self.table.device)
        rows = torch.arange(blocks * queries, device=self.table.device).view(blocks, queries, 1)
        keys = self.table.clamp(min=0)[:, None].expand_as(self.allowed)
        return dense.index_put_((rows.expand_as(keys), keys), self.allowed.to(torch.uint8), accumulate=True) > 0


def attend_local(
    query: Float[Tensor, "b h t d"],
    key: Float[Tensor, "b h t d"],
    value: Float[Tensor, "b h t d"],
    mask: LocalMask,
    dropout: float = 0.0,
) -> Float[Tensor, "b h t d"]:
    """softmax(query . key / sqrt(d)) . value over the memory of each block of queries, which is gathered."""
    (blocks, queries, _), heads = mask.allowed.shape, query.shape[1]
    own = query.unflatten(2, (blocks, queries)).flatten(1, 2)
    keys, values = (part[:, :, mask.table.clamp(min=0)].flatten(1, 2) for part in (key, value))
    allowed = mask.allowed.expand(heads, -1, -1, -1).flatten(0, 1)[None]
    y = F.scaled_dot_product_attention(own, keys, values, attn_mask=allowed, dropout_p=dropout)
    return y.unflatten(1, (heads, blocks)).flatten(2, 3)


class PixelOrder(nn.Module):
    """The generation order of positions, and what each attends to. `order` are raster positions by step. The mask is
    None if every position attends to all before it.
    """

    def __init__(self, order: np.ndarray, table: np.ndarray, allowed: np.ndarray):
        super().__init__()
        parts = {"order": order, "turns": np.argsort(order), "table": table, "allowed": allowed}
        for name, own in parts.items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(own)), persistent=False)
        self.whole = len(table) == 1 and (table[0] == np.arange(len(order))).all()

    @property
    def mask(self) -> LocalMask | None:
        return None if self.whole else LocalMask(self.table, self.allowed)

    def visible(self) -> list[slice | Tensor]:
        """For each step the steps that it attends to, including itself; a slice if they are consecutive."""
        found: list[slice | Tensor] = []
        table, allowed = self.table.cpu(), self.allowed.cpu()
        for keys, rows in zip(table, allowed, strict=True):
            for row in rows:
                own = keys[row]
                first, last = int(own[0]), int(own[-1])
                follow = last - first + 1 == len(own)
                found.append(slice(first, last + 1) if follow else own.to(self.table.device))
        return found


def in_lines(length: int, queries: int, memory: int) -> PixelOrder:
    """One-dimensional: raster order in blocks of `queries`, each of which attends to itself and `memory` positions
    before it.
    """
    if queries >= length:
        queries, memory = length, 0
    _check_pairs(length, queries + memory)
    starts = np.arange(0, length, queries)[:, None]
    table = starts - memory + np.arange(memory + queries)
    own = starts + np.arange(queries)
    allowed = (table[:, None] >= 0) & (table[:, None] <= own[:, :, None])
    return PixelOrder(np.arange(length), np.where(table < 0, NONE, table), allowed)


def in_squares(size: int, values: int, queries: Sequence[int], memory: Sequence[int]) -> PixelOrder:
    """Two-dimensional: blocks of `queries` (rows, columns) in raster order; each attends to itself, `memory` rows
    above it and columns on both sides. Every pixel has `values` positions.
    """
    rows, columns = queries
    seen_rows, seen_columns = min(size, rows + memory[0]), min(size, columns + 2 * memory[1])
    _check_pairs(size * size * values, seen_rows * seen_columns * values)
    pixels = np.arange(size * size).reshape(size, size)
    corners = [(top, left) for top in range(0, size, rows) for left in range(0, size, columns)]
    blocks = [pixels[top : top + rows, left : left + columns].reshape(-1) for top, left in corners]
    order = _positions(np.concatenate(blocks), values)
    turns, seen = np.argsort(order), []
    for top, left in corners:
        inside = pixels[max(0, top - memory[0]) : top + rows, max(0, left - memory[1]) : left + columns + memory[1]]
        keys = np.sort(turns[_positions(inside.reshape(-1), values)])
        last = turns[_positions(pixels[top + rows - 1, left + columns - 1 :][:1], values)][-1]
        seen.append(keys[keys <= last])
    table = np.full((len(seen), max(map(len, seen))), NONE)
    for row, keys in zip(table, seen, strict=True):
        row[: len(keys)] = keys
    own = np.arange(len(order)).reshape(len(seen), -1)
    return PixelOrder(order, table, (table[:, None] != NONE) & (table[:, None] <= own[:, :, None]))


def _check_pairs(length: int, attended: int) -> None:
    if (pairs := length * attended) > MOST_PAIRS:
        raise ValueError(
            f"the {length:,} positions of an image would attend to {pairs:,} others in all, and the limit is {MOST_PAIRS:,}: "
            "lower data.size, or make the blocks of attention smaller"
        )


class Before(NamedTuple):
    """For each step the values near its pixel that come before it. `table`: their numbers in generation order, NONE
    where there is none; `places`: rows down, columns right and channel of each, relative to the pixel.
    """

    table: Int[np.ndarray, "t n"]
    places: list[tuple[int, int, int]]


def read_before(order: np.ndarray, size: int, channels: int, values: int, reach: int) -> Before:
    """The values at most `reach` rows and columns away. Every pixel has `values` positions."""
    turns, each = np.argsort(order), channels // values  # values in a position
    rows, columns = np.divmod(order // values, size)
    found = {}
    for down, right in np.ndindex(2 * reach + 1, 2 * reach + 1):
        row, column = rows + down - reach, columns + right - reach
        inside = (row >= 0) & (row < size) & (column >= 0) & (column < size)
        pixel = np.where(inside, row * size + column, 0)
        for channel in range(channels):
            turn = turns[pixel * values + channel // each]
            seen = inside & (turn < np.arange(len(order)))
            if seen.any():
                found[down - reach, right - reach, channel] = np.where(seen, turn * each + channel % each, NONE)
    return Before(np.stack([*found.values()], axis=1), [*found])


def _positions(pixels: np.ndarray, values: int) -> np.ndarray:
    return (pixels[:, None] * values + np.arange(values)).reshape(-1)


class PixelCache(Cache):
    """Keys and values of one attention so far; `append` returns those that the newest position attends to."""

    def __init__(self, visible: Sequence[slice | Tensor]):
        super().__init__()
        self.visible, self.length = visible, 0
        self.kept: list[Tensor] = []

    def __len__(self) -> int:
        return self.length

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if not self.kept:
            self.kept = [part.new_empty(*part.shape[:2], len(self.visible), part.shape[3]) for part in (k, v)]
        for kept, part in zip(self.kept, (k, v), strict=True):
            kept[:, :, self.length] = part[:, :, 0]
        own = self.visible[self.length]
        self.length += 1
        return tuple(kept[:, :, own] for kept in self.kept)
