"""Embeddings with their places and their dropout, and the way back: written in Triton, for training on a GPU.

The gradient is added to a table in place, in one pass over it and with the same bits each time. Tokens are sorted, so
that all rows of one are neighbours: a run. A run is cut at every multiple of SPAN, or a frequent token would keep one
program busy for long. Each row of the table is written by one program alone: no atomics.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from heed.kernels.residual_norm import chance, kept

SPAN, ROWS, PIECES = 32, 4, 16


@triton.jit
def _tokens(found_at, at, size):
    """The sorted tokens at these places, -1 where there is no such place."""
    there = (at >= 0) & (at < size)
    found = tl.load(found_at + at, mask=there, other=0).to(tl.int32)
    if found_at.dtype.element_ty == tl.int16:
        found = found & 0xFFFF
    return tl.where(there, found, -1)


@triton.jit
def _sum(
    order_at, d_at, seed_at, share, DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    """The sum of the next ROWS rows, of what dropout keeps: all on their way from memory at the same time."""
    row, column = tl.load(order_at + tl.arange(0, ROWS))[:, None], tl.arange(0, BLOCK)[None, :]
    d = tl.load(d_at + row * WIDTH + column, mask=column < WIDTH, other=0.0).to(tl.float32)
    if DROP:
        d = tl.where(kept(seed_at, row.to(tl.int32) * WIDTH + column, share), d, 0.0)
    return tl.sum(d, axis=0)


@triton.jit
def _gathered(
    found_at, order_at, d_at, table_at, parts_at, scale, seed_at, share, size,
    DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """From the place where a run or a block begins, to where either ends: to the table if that is a whole run."""
    first, column = tl.program_id(0), tl.arange(0, BLOCK)
    block, inside = first // SPAN, first % SPAN
    at, border = first + tl.arange(0, SPAN), (block + 1) * SPAN
    token, before = _tokens(found_at, first, size), _tokens(found_at, first - 1, size)
    begins = token != before
    if begins | (inside == 0):
        there = column < WIDTH
        last = first + tl.sum(((_tokens(found_at, at, size) == token) & (at < border)).to(tl.int32))
        whole = begins & ((last < border) | (_tokens(found_at, border, size) != token))
        row_at = table_at + token.to(tl.int64) * WIDTH + column
        needed = column < tl.where(whole, WIDTH, 0)
        old = tl.load(row_at, mask=needed, other=0.0).to(tl.float32)  # asked for early: it is long on its way
        total, single = tl.zeros((BLOCK,), tl.float32), last - (last - first) % ROWS
        for i in range(first, single, ROWS):
            total += _sum(order_at + i, d_at, seed_at, share, DROP, WIDTH, BLOCK, ROWS)
        for i in range(single, last):
            total += _sum(order_at + i, d_at, seed_at, share, DROP, WIDTH, BLOCK, 1)
        if whole:
            tl.store(row_at, (old + total * scale).to(table_at.dtype.element_ty), mask=there)
        else:
            slot = 2 * block + (inside > 0).to(tl.int32)
            tl.store(parts_at + slot.to(tl.int64) * WIDTH + column, total, mask=there)


@triton.jit
def _joined(
    found_at, parts_at, table_at, scale, size,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    """The run that begins in a block and goes on in the next: its pieces, to the table."""
    block, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    border = (block + 1) * SPAN
    token, after = _tokens(found_at, border - 1, size), _tokens(found_at, border, size)
    head, before = _tokens(found_at, border - SPAN, size), _tokens(found_at, border - SPAN - 1, size)
    if (token == after) & (token != before):
        there = column < WIDTH
        row_at = table_at + token.to(tl.int64) * WIDTH + column
        old = tl.load(row_at, mask=there, other=0.0).to(tl.float32)
        slot = 2 * block + (token != head).to(tl.int32)
        total = tl.load(parts_at + slot.to(tl.int64) * WIDTH + column, mask=there, other=0.0)
        piece = block + 1 + tl.arange(0, PIECES)
        same = _tokens(found_at, piece * SPAN, size) == token
        while tl.max(same.to(tl.int32), axis=0) > 0:
            later = _tokens(found_at, (piece + PIECES) * SPAN, size) == token  # with these pieces, not after them
            places = (2 * piece).to(tl.int64)[:, None] * WIDTH + column[None, :]
            total += tl.sum(tl.load(parts_at + places, mask=same[:, None] & there[None, :], other=0.0), axis=0)
            piece, same = piece + PIECES, later
        tl.store(row_at, (old + total * scale).to(table_at.dtype.element_ty), mask=there)


def add_rows(
    table: Float[Tensor, "vocab dim"],
    tokens: Int[Tensor, " t"],
    d: Float[Tensor, "t dim"],
    scale: float = 1.0,
    seed: Tensor | None = None,
    share: int = 0,
) -> None:
    """To the table's row of each token, add `scale` times what dropout (`chance`) keeps of that token's rows of `d`."""
    if not table.is_contiguous():
        raise ValueError(f"The table's rows must follow one another in memory, but its strides are {table.stride()}.")
    # Only equal must meet equal. Up to 65536 tokens fit in 16 bits, sign or no sign: half the passes of a radix sort.
    found, order = torch.sort(tokens.to(torch.int16 if len(table) <= 2**16 else torch.int32), stable=True)
    size, width, blocks = len(tokens), table.shape[1], triton.cdiv(len(tokens), SPAN)
    parts = torch.empty(2 * blocks, width, dtype=torch.float32, device=table.device)
    d, wide = d.contiguous(), triton.next_power_of_2(width)
    _gathered[(size,)](
        found, order, d, table, parts, scale, d if seed is None else seed, share, size,
        DROP=seed is not None, WIDTH=width, BLOCK=wide, SPAN=SPAN, ROWS=ROWS, num_warps=min(8, max(1, wide // 256)),
    )  # fmt: skip
    if blocks > 1:
        wide = min(512, wide)
        _joined[(blocks - 1, triton.cdiv(width, wide))](
            found, parts, table, scale, size,
            WIDTH=width, BLOCK=wide, SPAN=SPAN, PIECES=PIECES, num_warps=max(1, wide // 128),
        )  # fmt: skip


@triton.jit
def _embed_forward(
    tokens_at, places_at, table_at, waves_at, out_at, scale, seed_at, share, grown,
    DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    there = column < WIDTH
    token, place = tl.load(tokens_at + row), tl.load(places_at + row)
    x = tl.load(table_at + token * WIDTH + column, mask=there, other=0.0).to(tl.float32) * scale
    x += tl.load(waves_at + place * WIDTH + column, mask=there, other=0.0).to(tl.float32)
    if DROP:
        x = tl.where(kept(seed_at, row * WIDTH + column, share), x * grown, 0.0)
    tl.store(out_at + row * WIDTH + column, x.to(out_at.dtype.element_ty), mask=there)


class _Embed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table, tokens, places, waves, scale: float, dropout: float):
        seed, share, grown = chance(dropout, table.device)
        width = table.shape[1]
        out = torch.empty(len(tokens), width, dtype=table.dtype, device=table.device)
        _embed_forward[(len(tokens),)](
            tokens, places, table, waves, out, scale, out if seed is None else seed, share, grown,
            DROP=seed is not None, WIDTH=width, BLOCK=triton.next_power_of_2(width), num_warps=4,
        )  # fmt: skip
        ctx.save_for_backward(tokens, seed)
        ctx.rest, ctx.place, ctx.table = (scale * grown, share), getattr(table, "place", None), table.detach()
        return out

    @staticmethod
    def backward(ctx: Any, d):
        """Where the output layer has the same table and its gradient is there already, to that one."""
        tokens, seed = ctx.saved_tensors
        scale, share = ctx.rest
        there = ctx.place is not None and ctx.place.whole
        to_table = ctx.place.memory if there else torch.zeros_like(ctx.table)
        add_rows(to_table, tokens, d, scale, seed, share)
        return None if there else to_table, None, None, None, None, None


def embed(table: Tensor, tokens: Tensor, places: Tensor, waves: Tensor, scale: float, dropout: float = 0.0) -> Tensor:
    """Dropout of the rows of `table` for tokens, times `scale`, and the rows of `waves` for their places."""
    return _Embed.apply(table, tokens, places, waves, scale, dropout)
