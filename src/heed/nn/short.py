"""Attention within short sequences, each wholly in one tile of the chip: written in Triton, for training on a GPU.

A general kernel cuts sequences into tiles of 128, keeps running sums, and needs a second pass for gradients. A sentence
fits into one tile: softmax at once, gradients at once, nothing kept but the inputs.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from heed.nn.fused import chance, kept


@triton.jit
def _tile(base, start, length, head, stride, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The addresses of one head of one sequence, and which of them exist."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    places = base + (start + rows)[:, None] * stride + head * WIDTH + columns[None, :]
    return places, (rows < length)[:, None]


@triton.jit
def _drawn(seed_at, share, tile, row, column, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """Which weights of a tile dropout keeps."""
    return kept(seed_at, (tile * QUERIES + row) * KEYS + column, share)


@triton.jit
def _weights(q, k, keys, scale, CAUSAL: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """softmax(q . k / sqrt(d)) over the keys that are there, and the logarithm of what it is divided by."""
    scores = tl.dot(q, tl.trans(k)) * scale
    row, column = tl.arange(0, QUERIES)[:, None], tl.arange(0, KEYS)[None, :]
    seen = column < keys
    if CAUSAL:
        seen = seen & (column <= row)
    scores = tl.where(seen, scores, float("-inf"))
    top = tl.max(scores, axis=1)
    raised = tl.exp(scores - top[:, None])
    total = tl.sum(raised, axis=1)
    return raised / total[:, None], top + tl.log(total)


@triton.jit
def _forward(
    q_at, k_at, v_at, out_at, size_at, q_starts, k_starts, q_stride, k_stride, v_stride, out_stride, scale, seed_at, share,
    grown, CAUSAL: tl.constexpr, DROP: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    HEADS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Some heads of a sequence, one after another: while one is computed, the next is fetched."""
    number, first, heads = tl.program_id(0), tl.program_id(1) * HEADS, tl.num_programs(1) * HEADS
    q_start, k_start = tl.load(q_starts + number), tl.load(k_starts + number)
    queries, keys = tl.load(q_starts + number + 1) - q_start, tl.load(k_starts + number + 1) - k_start
    row, column = tl.arange(0, QUERIES), tl.arange(0, KEYS)
    if (queries > 0) & (keys > 0):
        for head in tl.range(first, first + HEADS, num_stages=STAGES):
            q_places, q_there = _tile(q_at, q_start, queries, head, q_stride, QUERIES, WIDTH)
            k_places, k_there = _tile(k_at, k_start, keys, head, k_stride, KEYS, WIDTH)
            v_places, v_there = _tile(v_at, k_start, keys, head, v_stride, KEYS, WIDTH)
            q, k = tl.load(q_places, mask=q_there, other=0.0), tl.load(k_places, mask=k_there, other=0.0)
            v = tl.load(v_places, mask=v_there, other=0.0)
            p, size = _weights(q, k, keys, scale, CAUSAL, QUERIES, KEYS)
            tl.store(size_at + (q_start + row) * heads + head, size, mask=row < queries)
            if DROP:
                stay = _drawn(seed_at, share, number * heads + head, row[:, None], column[None, :], QUERIES, KEYS)
                p = tl.where(stay, p * grown, 0.0)
            out_places, out_there = _tile(out_at, q_start, queries, head, out_stride, QUERIES, WIDTH)
            tl.store(out_places, tl.dot(p.to(v.dtype), v).to(out_at.dtype.element_ty), mask=out_there)
    elif queries > 0:  # who has nothing to attend to gets zeros
        for head in range(first, first + HEADS):
            out_places, out_there = _tile(out_at, q_start, queries, head, out_stride, QUERIES, WIDTH)
            tl.store(out_places, tl.zeros((QUERIES, WIDTH), out_at.dtype.element_ty), mask=out_there)


@triton.jit
def _backward(
    q_at, k_at, v_at, out_at, d_at, size_at, dq_at, dk_at, dv_at, q_starts, k_starts, q_stride, k_stride, v_stride,
    out_stride, d_stride, dq_stride, dk_stride, dv_stride, scale, seed_at, share, grown,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
    HEADS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Keys down, queries across: so that of three products only one needs a matrix turned, and no sum crosses warps."""
    number, first, heads = tl.program_id(0), tl.program_id(1) * HEADS, tl.num_programs(1) * HEADS
    q_start, k_start = tl.load(q_starts + number), tl.load(k_starts + number)
    queries, keys = tl.load(q_starts + number + 1) - q_start, tl.load(k_starts + number + 1) - k_start
    row, column = tl.arange(0, KEYS), tl.arange(0, QUERIES)
    if keys > 0:
        for head in tl.range(first, first + HEADS, num_stages=STAGES):
            q_places, q_there = _tile(q_at, q_start, queries, head, q_stride, QUERIES, WIDTH)
            k_places, k_there = _tile(k_at, k_start, keys, head, k_stride, KEYS, WIDTH)
            v_places, v_there = _tile(v_at, k_start, keys, head, v_stride, KEYS, WIDTH)
            d_places, d_there = _tile(d_at, q_start, queries, head, d_stride, QUERIES, WIDTH)
            out_places, out_there = _tile(out_at, q_start, queries, head, out_stride, QUERIES, WIDTH)
            q, k = tl.load(q_places, mask=q_there, other=0.0), tl.load(k_places, mask=k_there, other=0.0)
            v, d = tl.load(v_places, mask=v_there, other=0.0), tl.load(d_places, mask=d_there, other=0.0)
            out = tl.load(out_places, mask=out_there, other=0.0)
            size = tl.load(size_at + (q_start + column) * heads + head, mask=column < queries, other=0.0)
            along = tl.sum(out.to(tl.float32) * d.to(tl.float32), axis=1)
            seen = (row[:, None] < keys) & (column[None, :] < queries)
            if CAUSAL:
                seen = seen & (row[:, None] <= column[None, :])
            p = tl.where(seen, tl.exp(tl.dot(k, tl.trans(q)) * scale - size[None, :]), 0.0)
            dp, used = tl.dot(v, tl.trans(d)), p
            if DROP:
                stay = _drawn(seed_at, share, number * heads + head, column[None, :], row[:, None], QUERIES, KEYS)
                dp, used = tl.where(stay, dp * grown, 0.0), tl.where(stay, p * grown, 0.0)
            dv_places, dv_there = _tile(dv_at, k_start, keys, head, dv_stride, KEYS, WIDTH)
            tl.store(dv_places, tl.dot(used.to(d.dtype), d).to(dv_at.dtype.element_ty), mask=dv_there)
            ds = (p * (dp - along[None, :]) * scale).to(q.dtype)
            dk_places, dk_there = _tile(dk_at, k_start, keys, head, dk_stride, KEYS, WIDTH)
            tl.store(dk_places, tl.dot(ds, q).to(dk_at.dtype.element_ty), mask=dk_there)
            dq_places, dq_there = _tile(dq_at, q_start, queries, head, dq_stride, QUERIES, WIDTH)
            tl.store(dq_places, tl.dot(tl.trans(ds), k).to(dq_at.dtype.element_ty), mask=dq_there)
    elif queries > 0:
        for head in range(first, first + HEADS):
            dq_places, dq_there = _tile(dq_at, q_start, queries, head, dq_stride, QUERIES, WIDTH)
            tl.store(dq_places, tl.zeros((QUERIES, WIDTH), dq_at.dtype.element_ty), mask=dq_there)


def _launch(width: int, dim: int, starts: Tensor, longest: tuple[int, int]) -> tuple[tuple[int, int], dict[str, int]]:
    """The grid, and tiles of a power of two, 16 at least: what the chip's matrix units take. Small ones by two."""
    queries, keys = (max(16, triton.next_power_of_2(n)) for n in longest)
    heads, small = dim // width, queries * keys <= 64 * 64
    each = 2 if small and heads % 2 == 0 else 1
    sizes = {"QUERIES": queries, "KEYS": keys, "WIDTH": width, "HEADS": each, "STAGES": each}
    return (len(starts) - 1, heads // each), {**sizes, "num_warps": 4 if small else 8}


class _Short(torch.autograd.Function):
    """Queries, keys and values stand side by side in `one`, or queries in `one` and keys and values in `other`."""

    @staticmethod
    def forward(ctx: Any, one, other, starts, longest, width: int, causal: bool, dropout: float):
        parts = _apart(one, other)
        dim = parts[0].shape[1]
        seed, share, grown = chance(dropout, one.device)
        out = torch.empty(len(one), dim, dtype=one.dtype, device=one.device)
        size = torch.empty(len(one), dim // width, device=one.device)
        grid, sizes = _launch(width, dim, starts[0], longest)
        _forward[grid](
            *parts, out, size, *starts, *(part.stride(0) for part in (*parts, out)), width**-0.5,
            starts[0] if seed is None else seed, share, grown, CAUSAL=causal, DROP=seed is not None, **sizes,
        )  # fmt: skip
        ctx.save_for_backward(one, other, out, size, *starts, seed)
        ctx.rest = (longest, width, causal, share, grown)
        return out

    @staticmethod
    def backward(ctx: Any, d):
        one, other, out, size, *starts, seed = ctx.saved_tensors
        longest, width, causal, share, grown = ctx.rest
        d = d.contiguous()
        to_one, to_other = torch.empty_like(one), None if other is None else torch.empty_like(other)
        parts, slopes = (*_apart(one, other), out, d), _apart(to_one, to_other)
        grid, sizes = _launch(width, d.shape[1], starts[0], longest)
        _backward[grid](
            *parts, size, *slopes, *starts, *(part.stride(0) for part in (*parts, *slopes)), width**-0.5,
            starts[0] if seed is None else seed, share, grown, CAUSAL=causal, DROP=seed is not None, **sizes,
        )  # fmt: skip
        return to_one, to_other, None, None, None, None, None


def _apart(one: Tensor, other: Tensor | None) -> tuple[Tensor, ...]:
    """Queries, keys, values: columns of one matrix, or of two."""
    return one.chunk(3, dim=1) if other is None else (one, *other.chunk(2, dim=1))


def attend_short(
    one: Tensor,
    other: Tensor | None,
    starts: tuple[Tensor, Tensor],
    longest: tuple[int, int],
    *,
    width: int,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Attention of heads of `width`, (tokens, columns) in and out; sequence i is the tokens starts[i] to starts[i + 1].

    `one` holds queries, keys and values side by side; with `other`, that one keys and values, and `one` the queries.
    Every token stands in a sequence, none of which is longer than said.
    """
    return _Short.apply(one, other, starts, longest, width, causal, dropout)
