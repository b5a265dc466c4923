"""Token and position embeddings with dropout in Triton, for training on a GPU.

The backward pass adds to a gradient table in place, in one pass and deterministically. Tokens are sorted, so that equal
tokens form a run. Runs are cut at every multiple of SPAN, or a frequent token would keep one program busy for long.
Each row of the table is written by a single program: no atomics.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from heed.kernels.residual_norm import draw_seed, keep_mask

SPAN, ROWS, PIECES = 32, 4, 16  # tokens per block, rows loaded at once, partial sums loaded at once


@triton.jit
def _load_tokens(sorted_ptr, index, size):
    """The sorted tokens at these indices, -1 outside."""
    mask = (index >= 0) & (index < size)
    tokens = tl.load(sorted_ptr + index, mask=mask, other=0).to(tl.int32)
    if sorted_ptr.dtype.element_ty == tl.int16:
        tokens = tokens & 0xFFFF
    return tl.where(mask, tokens, -1)


@triton.jit
def _sum_rows(order_ptr, d_ptr, seed_ptr, threshold, DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
              ROWS: tl.constexpr):  # fmt: skip
    """The sum of the next ROWS rows after dropout, all loaded at the same time."""
    row, column = tl.load(order_ptr + tl.arange(0, ROWS))[:, None], tl.arange(0, BLOCK)[None, :]
    d = tl.load(d_ptr + row * WIDTH + column, mask=column < WIDTH, other=0.0).to(tl.float32)
    if DROP:
        d = tl.where(keep_mask(seed_ptr, row.to(tl.int32) * WIDTH + column, threshold), d, 0.0)
    return tl.sum(d, axis=0)


@triton.jit
def _accumulate_runs(
    sorted_ptr, order_ptr, d_ptr, table_ptr, partials_ptr, scale, seed_ptr, threshold, size,
    DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Sum a run within one block of SPAN tokens: into the table if it is a whole run, else into the partial sums."""
    first, column = tl.program_id(0), tl.arange(0, BLOCK)
    block, inside = first // SPAN, first % SPAN
    index, border = first + tl.arange(0, SPAN), (block + 1) * SPAN
    token, before = _load_tokens(sorted_ptr, first, size), _load_tokens(sorted_ptr, first - 1, size)
    begins = token != before
    if begins | (inside == 0):
        mask = column < WIDTH
        last = first + tl.sum(((_load_tokens(sorted_ptr, index, size) == token) & (index < border)).to(tl.int32))
        whole = begins & ((last < border) | (_load_tokens(sorted_ptr, border, size) != token))
        row_ptr = table_ptr + token.to(tl.int64) * WIDTH + column
        needed = column < tl.where(whole, WIDTH, 0)
        old = tl.load(row_ptr, mask=needed, other=0.0).to(tl.float32)  # early, to hide its latency
        total, single = tl.zeros((BLOCK,), tl.float32), last - (last - first) % ROWS
        for i in range(first, single, ROWS):
            total += _sum_rows(order_ptr + i, d_ptr, seed_ptr, threshold, DROP, WIDTH, BLOCK, ROWS)
        for i in range(single, last):
            total += _sum_rows(order_ptr + i, d_ptr, seed_ptr, threshold, DROP, WIDTH, BLOCK, 1)
        if whole:
            tl.store(row_ptr, (old + total * scale).to(table_ptr.dtype.element_ty), mask=mask)
        else:
            slot = 2 * block + (inside > 0).to(tl.int32)
            tl.store(partials_ptr + slot.to(tl.int64) * WIDTH + column, total, mask=mask)


@triton.jit
def _accumulate_split_runs(
    sorted_ptr, partials_ptr, table_ptr, scale, size,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    """Add the partial sums of a run that starts in this block and continues in the next to the table."""
    block, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    border = (block + 1) * SPAN
    token, after = _load_tokens(sorted_ptr, border - 1, size), _load_tokens(sorted_ptr, border, size)
    head, before = _load_tokens(sorted_ptr, border - SPAN, size), _load_tokens(sorted_ptr, border - SPAN - 1, size)
    if (token == after) & (token != before):
        mask = column < WIDTH
        row_ptr = table_ptr + token.to(tl.int64) * WIDTH + column
        old = tl.load(row_ptr, mask=mask, other=0.0).to(tl.float32)
        slot = 2 * block + (token != head).to(tl.int32)
        total = tl.load(partials_ptr + slot.to(tl.int64) * WIDTH + column, mask=mask, other=0.0)
        piece = block + 1 + tl.arange(0, PIECES)
        same = _load_tokens(sorted_ptr, piece * SPAN, size) == token
        while tl.max(same.to(tl.int32), axis=0) > 0:
            later = _load_tokens(sorted_ptr, (piece + PIECES) * SPAN, size) == token  # prefetched with these pieces
            offsets = (2 * piece).to(tl.int64)[:, None] * WIDTH + column[None, :]
            total += tl.sum(tl.load(partials_ptr + offsets, mask=same[:, None] & mask[None, :], other=0.0), axis=0)
            piece, same = piece + PIECES, later
        tl.store(row_ptr, (old + total * scale).to(table_ptr.dtype.element_ty), mask=mask)


def add_rows(
    table: Float[Tensor, "vocab dim"], tokens: Int[Tensor, " t"], d: Float[Tensor, "t dim"], scale: float = 1.0,
    seed: Tensor | None = None, threshold: int = 0,
) -> None:  # fmt: skip
    """Add `scale` times the rows of `d`, after dropout with this seed, to the table rows of their tokens, in place."""
    if not table.is_contiguous():
        raise ValueError(f"The rows of the table must be contiguous in memory, but its strides are {table.stride()}.")
    # Any order that groups equal tokens will do. 65536 tokens fit in 16 bits: half the passes of a radix sort.
    ordered, order = torch.sort(tokens.to(torch.int16 if len(table) <= 2**16 else torch.int32), stable=True)
    size, width, blocks = len(tokens), table.shape[1], triton.cdiv(len(tokens), SPAN)
    partials = torch.empty(2 * blocks, width, dtype=torch.float32, device=table.device)
    d, block = d.contiguous(), triton.next_power_of_2(width)
    _accumulate_runs[(size,)](
        ordered, order, d, table, partials, scale, d if seed is None else seed, threshold, size,
        DROP=seed is not None, WIDTH=width, BLOCK=block, SPAN=SPAN, ROWS=ROWS, num_warps=min(8, max(1, block // 256)),
    )  # fmt: skip
    if blocks > 1:
        block = min(512, block)
        _accumulate_split_runs[(blocks - 1, triton.cdiv(width, block))](
            ordered, partials, table, scale, size,
            WIDTH=width, BLOCK=block, SPAN=SPAN, PIECES=PIECES, num_warps=max(1, block // 128),
        )  # fmt: skip


@triton.jit
def _embed_forward(
    tokens_ptr, positions_ptr, table_ptr, waves_ptr, out_ptr, scale, seed_ptr, threshold, keep_scale,
    DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < WIDTH
    token, position = tl.load(tokens_ptr + row), tl.load(positions_ptr + row)
    x = tl.load(table_ptr + token * WIDTH + column, mask=mask, other=0.0).to(tl.float32) * scale
    x += tl.load(waves_ptr + position * WIDTH + column, mask=mask, other=0.0).to(tl.float32)
    if DROP:
        x = tl.where(keep_mask(seed_ptr, row * WIDTH + column, threshold), x * keep_scale, 0.0)
    tl.store(out_ptr + row * WIDTH + column, x.to(out_ptr.dtype.element_ty), mask=mask)


class _Embed(torch.autograd.Function):
    """`waves` are vectors of positions, fixed or trained."""

    @staticmethod
    def forward(ctx: Any, table, tokens, positions, waves, scale: float, dropout: float):
        seed, threshold, keep_scale = draw_seed(dropout, table.device)
        width = table.shape[1]
        out = torch.empty(len(tokens), width, dtype=table.dtype, device=table.device)
        _embed_forward[(len(tokens),)](
            tokens, positions, table, waves, out, scale, out if seed is None else seed, threshold, keep_scale,
            DROP=seed is not None, WIDTH=width, BLOCK=triton.next_power_of_2(width), num_warps=4,
        )  # fmt: skip
        ctx.save_for_backward(tokens, positions, seed)
        ctx.constants, ctx.table, ctx.waves = (scale, keep_scale, threshold), table.detach(), waves.detach()
        ctx.buffer = getattr(table, "gradient_buffer", None)
        return out

    @staticmethod
    def backward(ctx: Any, d):
        """If a tied output layer has already written the gradient of the table, add to it in place."""
        tokens, positions, seed = ctx.saved_tensors
        scale, keep_scale, threshold = ctx.constants
        tied = ctx.buffer is not None and ctx.buffer.complete
        table_grad = ctx.buffer.memory if tied else torch.zeros_like(ctx.table)
        add_rows(table_grad, tokens, d, scale * keep_scale, seed, threshold)
        waves_grad = None
        if ctx.needs_input_grad[3]:
            waves_grad = torch.zeros_like(ctx.waves)
            add_rows(waves_grad, positions, d, keep_scale, seed, threshold)
        return None if tied else table_grad, None, None, waves_grad, None, None


def embed(
    table: Tensor, tokens: Tensor, positions: Tensor, waves: Tensor, scale: float, dropout: float = 0.0
) -> Tensor:
    """dropout(table[tokens] * scale + waves[positions])."""
    return _Embed.apply(table, tokens, positions, waves, scale, dropout)
