"""Attention within short sequences, each wholly in one tile of the chip: written in Triton, for training on a GPU.

A general kernel cuts sequences into tiles of 128, keeps running sums, and needs a second pass for gradients. A sentence
fits into one tile: softmax at once, gradients at once, nothing kept but the inputs and a number a query.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from heed.kernels.feed_forward import engine, multiprocessors
from heed.kernels.residual_norm import chance, kept

LOG2E = tl.constexpr(1.4426950408889634)  # the chip raises 2, not e


@dataclass(frozen=True)
class Setting:
    """How a kernel is launched: `each` tiles a program, or, where said, so many `programs` a multiprocessor for all.

    `stages` 2: the next tile is fetched while one is computed. `turned`: a sentence's heads are neighbours, else sentences.
    `part`: queries at a time (forward). `most`: registers a thread. `engine`: loads by the chip's copy engine (back).
    """

    warps: int
    each: int = 1
    programs: int = 0
    stages: int = 1
    turned: bool = False
    part: int = 128
    most: int | None = None
    engine: bool = False


SETTINGS = {
    ("forward", "small"): Setting(warps=1, each=4, stages=2, turned=True),
    ("forward", "middle"): Setting(warps=4, turned=True),
    ("forward", "large"): Setting(warps=4, part=64, most=128),
    ("back", "small"): Setting(warps=1, each=4, stages=2, turned=True),
    ("back", "middle"): Setting(warps=4, turned=True),
    ("back", "large"): Setting(warps=8, programs=1, stages=2, engine=True),
    ("forward", "elsewhere"): Setting(warps=8),
    ("back", "elsewhere"): Setting(warps=8),
}


@triton.jit
def _ends(count, HEADS: tl.constexpr, ONCE: tl.constexpr):
    """A program's first tile, the end, how far they are apart; where ONCE it is plain that there is one: no loop."""
    first = tl.program_id(0)
    if ONCE:
        return first, first + 1, 1
    else:
        return first, count * HEADS, tl.num_programs(0)


@triton.jit
def _which(tile, q_starts, k_starts, count, HEADS: tl.constexpr, TURNED: tl.constexpr):
    """A tile's number for dropout, its head, where its queries begin and how many they are, and its keys."""
    if TURNED:
        number, head = tile // HEADS, tile % HEADS
    else:
        number, head = tile % count, tile // count
    q_start, k_start = tl.load(q_starts + number), tl.load(k_starts + number)
    queries, keys = tl.load(q_starts + number + 1) - q_start, tl.load(k_starts + number + 1) - k_start
    return number * HEADS + head, head, q_start, queries, k_start, keys


@triton.jit
def _places(base, start, head, STRIDE: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The addresses of one head of the rows from `start` on: a number and constants, which fill no registers."""
    first = base + start.to(tl.int64) * STRIDE + head * WIDTH
    return first + tl.arange(0, ROWS)[:, None] * STRIDE + tl.arange(0, WIDTH)[None, :]


@triton.jit
def _got(
    base, start, length, head, STRIDE: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, ENGINE: tl.constexpr
):
    """One head of `length` rows; then zeros, or by the copy engine what stands there: whoever uses it leaves it out."""
    if ENGINE:
        return base.load([start, head * WIDTH])
    else:
        there = (tl.arange(0, ROWS) < length)[:, None]
        return tl.load(_places(base, start, head, STRIDE, ROWS, WIDTH), mask=there, other=0.0)


@triton.jit
def _put(x, base, start, length, head, STRIDE: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    there = (tl.arange(0, ROWS) < length)[:, None]
    tl.store(_places(base, start, head, STRIDE, ROWS, WIDTH), x.to(base.dtype.element_ty), mask=there)


@triton.jit
def _sizes(base, start, head, HEADS: tl.constexpr, ROWS: tl.constexpr):
    return base + start.to(tl.int64) * HEADS + head + tl.arange(0, ROWS) * HEADS


@triton.jit
def _seen(row, column, keys, CAUSAL: tl.constexpr):
    if CAUSAL:
        return (column < keys) & (column <= row)
    else:
        return column < keys


@triton.jit(do_not_specialize=["count"])
def _forward(
    q_at, k_at, v_at, out_at, size_at, q_starts, k_starts, count, scale, seed_at, share, grown,
    Q: tl.constexpr, K: tl.constexpr, V: tl.constexpr, OUT: tl.constexpr, CAUSAL: tl.constexpr, DROP: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr, HEADS: tl.constexpr, TURNED: tl.constexpr,
    STAGES: tl.constexpr, ONCE: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """softmax(q . k / sqrt(d)) . v, tile after tile, PART queries at a time; Q, K, ... are how far rows are apart.

    `size`: the logarithm of what the softmax is divided by, as q . k would have to be to come to it.
    """
    column = tl.arange(0, KEYS)[None, :]
    begin, end, step = _ends(count, HEADS, ONCE)
    for tile in tl.range(begin, end, step, num_stages=STAGES):
        drawn, head, q_start, queries, k_start, keys = _which(tile, q_starts, k_starts, count, HEADS, TURNED)
        k = _got(k_at, k_start, keys, head, K, KEYS, WIDTH, False)
        v = _got(v_at, k_start, keys, head, V, KEYS, WIDTH, False)
        for first in tl.static_range(0, QUERIES, PART):
            start, left, row = q_start + first, queries - first, first + tl.arange(0, PART)[:, None]
            scores = tl.dot(_got(q_at, start, left, head, Q, PART, WIDTH, False), tl.trans(k)) * (scale * LOG2E)
            scores = tl.where(_seen(row, column, keys, CAUSAL), scores, float("-inf"))
            top = tl.maximum(tl.max(scores, axis=1), -1e30)  # where no key is there: a number all the same
            raised = tl.exp2(scores - top[:, None])
            total = tl.maximum(tl.sum(raised, axis=1), 1.0)  # the top alone is 1; who has no keys gets zeros
            size = (top + tl.log2(total)) / (scale * LOG2E)
            tl.store(_sizes(size_at, start, head, HEADS, PART), size, mask=tl.arange(0, PART) < left)
            if DROP:
                raised = tl.where(kept(seed_at, (drawn * QUERIES + row) * KEYS + column, share), raised, 0.0)
            out = tl.dot(raised.to(v.dtype), v) * (grown / total)[:, None]
            _put(out, out_at, start, left, head, OUT, PART, WIDTH)


@triton.jit(do_not_specialize=["count"])
def _backward(
    q_at, k_at, v_at, d_at, size_at, dq_at, dk_at, dv_at, q_starts, k_starts, count, scale, seed_at, share, grown,
    Q: tl.constexpr, K: tl.constexpr, V: tl.constexpr, D: tl.constexpr, DQ: tl.constexpr, DK: tl.constexpr,
    DV: tl.constexpr, CAUSAL: tl.constexpr, DROP: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, TURNED: tl.constexpr, STAGES: tl.constexpr, ONCE: tl.constexpr,
    ENGINE: tl.constexpr,
):  # fmt: skip
    """Slopes of queries, keys and values, tile after tile, queries down: a query's own numbers are one a row.

    What comes back along the output is told by weights and their slopes, so the output is neither kept nor read.
    """
    row, column = tl.arange(0, QUERIES), tl.arange(0, KEYS)[None, :]
    begin, end, step = _ends(count, HEADS, ONCE)
    for tile in tl.range(begin, end, step, num_stages=STAGES):
        drawn, head, q_start, queries, k_start, keys = _which(tile, q_starts, k_starts, count, HEADS, TURNED)
        q = _got(q_at, q_start, queries, head, Q, QUERIES, WIDTH, ENGINE)
        k = _got(k_at, k_start, keys, head, K, KEYS, WIDTH, ENGINE)
        v = _got(v_at, k_start, keys, head, V, KEYS, WIDTH, ENGINE)
        d = _got(d_at, q_start, queries, head, D, QUERIES, WIDTH, ENGINE)
        # of queries that are not there infinite, so that their weights are 0
        size = tl.load(_sizes(size_at, q_start, head, HEADS, QUERIES), mask=row < queries, other=float("inf"))
        scores = tl.dot(q, tl.trans(k), tl.zeros((QUERIES, KEYS), tl.float32) - size[:, None])
        p = tl.where(_seen(row[:, None], column, keys, CAUSAL), tl.exp2(scores * (scale * LOG2E)), 0.0)
        dp, used = tl.dot(d, tl.trans(v)), p
        if DROP:
            stay = kept(seed_at, (drawn * QUERIES + row[:, None]) * KEYS + column, share)
            dp, used = tl.where(stay, dp * grown, 0.0), tl.where(stay, p * grown, 0.0)
        # before ds is there: two such tiles at a time, turned, would be too many for smaller chips
        _put(tl.dot(tl.trans(used.to(d.dtype)), d), dv_at, k_start, keys, head, DV, KEYS, WIDTH)
        ds = (p * (dp - tl.sum(p * dp, axis=1)[:, None])).to(q.dtype)
        _put(tl.dot(tl.trans(ds), q) * scale, dk_at, k_start, keys, head, DK, KEYS, WIDTH)
        _put(tl.dot(ds, k) * scale, dq_at, q_start, queries, head, DQ, QUERIES, WIDTH)


def _sides(longest: tuple[int, int]) -> tuple[int, int]:
    """Tiles of a power of two, 16 at least: what the chip's matrix units take."""
    queries, keys = (max(16, triton.next_power_of_2(length)) for length in longest)
    return queries, keys


def _setting(way: str, parts: tuple[Tensor, ...], longest: tuple[int, int], width: int) -> Setting:
    """By the size of a tile; for large ones another where the copy engine is not, or cannot be used: "elsewhere"."""
    queries, keys = _sides(longest)
    area = queries * keys * max(1, width // 64)
    kind = "small" if area <= 32 * 32 else "middle" if area <= 64 * 64 else "large"
    setting = SETTINGS[way, kind]
    wanted = kind == "large" or setting.engine
    return SETTINGS[way, "elsewhere"] if wanted and not _suits(parts, width) else setting


def _suits(parts: tuple[Tensor, ...], width: int) -> bool:
    """Whether the copy engine brings these: rows begin at multiples of 16 bytes, and there is room for two tiles."""
    size = parts[0].itemsize
    placed = all(len(own) and own.data_ptr() % 16 == 0 and own.stride(0) * size % 16 == 0 for own in parts)
    return placed and width * size <= 128 and engine(parts[0])


def _launch(
    setting: Setting, longest: tuple[int, int], width: int, dim: int, starts: Tensor
) -> tuple[int, dict[str, Any]]:
    """How many programs, and the constants of both ways."""
    (queries, keys), count = _sides(longest), len(starts) - 1
    tiles = count * dim // width
    programs = setting.programs * multiprocessors(starts.device) or triton.cdiv(tiles, setting.each)
    constants = {
        "QUERIES": queries, "KEYS": keys, "WIDTH": width, "HEADS": dim // width, "TURNED": setting.turned,
        "STAGES": setting.stages, "ONCE": setting.each == 1 and not setting.programs, "num_warps": setting.warps,
    }  # fmt: skip
    return min(programs, tiles), constants if setting.most is None else {**constants, "maxnreg": setting.most}


class _Short(torch.autograd.Function):
    """Queries, keys and values stand side by side in `one`, or queries in `one` and keys and values in `other`."""

    @staticmethod
    def forward(ctx: Any, one, other, starts, longest, width: int, causal: bool, dropout: float):
        parts = _apart(one, other)
        dim = parts[0].shape[1]
        seed, share, grown = chance(dropout, one.device)
        out = torch.empty(len(one), dim, dtype=one.dtype, device=one.device)
        size = torch.empty(len(one), dim // width, device=one.device)
        setting = _setting("forward", parts, longest, width)
        programs, constants = _launch(setting, longest, width, dim, starts[0])
        apart = {name: part.stride(0) for name, part in zip(("Q", "K", "V", "OUT"), (*parts, out), strict=True)}
        _forward[(programs,)](
            *parts, out, size, *starts, len(starts[0]) - 1, width**-0.5, starts[0] if seed is None else seed, share, grown,
            CAUSAL=causal, DROP=seed is not None, PART=min(setting.part, constants["QUERIES"]), **apart, **constants,
        )  # fmt: skip
        ctx.save_for_backward(one, other, size, *starts, seed)
        ctx.rest = (longest, width, causal, share, grown)
        return out

    @staticmethod
    def backward(ctx: Any, d):
        one, other, size, *starts, seed = ctx.saved_tensors
        longest, width, causal, share, grown = ctx.rest
        to_one, to_other = torch.empty_like(one), None if other is None else torch.empty_like(other)
        parts, slopes = (*_apart(one, other), d.contiguous()), _apart(to_one, to_other)
        setting = _setting("back", parts, longest, width)
        programs, constants = _launch(setting, longest, width, d.shape[1], starts[0])
        names = ("Q", "K", "V", "D", "DQ", "DK", "DV")
        apart = {name: part.stride(0) for name, part in zip(names, (*parts, *slopes), strict=True)}
        _backward[(programs,)](
            *(_described(parts, longest, width) if setting.engine else parts), size, *slopes, *starts, len(starts[0]) - 1,
            width**-0.5, starts[0] if seed is None else seed, share, grown,
            CAUSAL=causal, DROP=seed is not None, ENGINE=setting.engine, **apart, **constants,
        )  # fmt: skip
        return to_one, to_other, None, None, None, None, None


def _described(parts: tuple[Tensor, ...], longest: tuple[int, int], width: int) -> list[Any]:
    """Queries, keys, values and what comes back, as the copy engine takes them."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    queries, keys = _sides(longest)
    return [
        TensorDescriptor.from_tensor(own, [rows, width])
        for own, rows in zip(parts, (queries, keys, keys, queries), strict=True)
    ]


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
