"""Cross entropy and its gradient in one pass over the scores, which become the gradient: written in Triton, for a GPU.

One program has one row of scores, or the two rows of R-Drop. A row stays in the chip's second cache between its passes.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096  # of two rows
LOG2 = 1.4426950408889634  # of e
LANES = {"block": 8192, "each": 8, "warps": 16}  # of a single row; `each`: neighbours that have one maximum


@triton.jit
def _measured(z_at, VOCAB, BLOCK: tl.constexpr):
    """Log sum exp of a row, and its mean."""
    top, grown, total = (
        tl.full((BLOCK,), -1e30, tl.float32),
        tl.zeros((BLOCK,), tl.float32),
        tl.zeros((BLOCK,), tl.float32),
    )
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(z_at + column, mask=column < VOCAB, other=-1e30).to(tl.float32)
        higher = tl.maximum(top, z)
        grown = grown * tl.exp(top - higher) + tl.where(column < VOCAB, tl.exp(z - higher), 0.0)
        top = higher
        total += tl.where(column < VOCAB, z, 0.0)
    highest = tl.max(top, axis=0)
    return highest + tl.log(tl.sum(grown * tl.exp(top - highest), axis=0)), tl.sum(total, axis=0) / VOCAB


@triton.jit
def _told(hit, size, mean, expected, total_at, plain_at, row, smoothing, VOCAB):
    """Writes what a row costs. Whether it counts, how much smoothing takes off each slope, and the slope of what was expected."""
    due = tl.where(expected >= 0, 1.0, 0.0)
    tl.store(plain_at + row, (size - hit) * due)
    tl.store(total_at + row, ((1 - smoothing) * (size - hit) + smoothing * (size - mean)) * due)
    return due, due * smoothing / VOCAB, due * (tl.exp(hit - size) - smoothing / VOCAB - (1 - smoothing))


@triton.jit
def _single(
    z_at, expected_at, total_at, plain_at, stride, smoothing, VOCAB, LOG2: tl.constexpr,
    BLOCK: tl.constexpr, EACH: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Two passes over a row: EACH neighbours, all of one thread, share a maximum; what was expected is mended at the end."""
    row = tl.program_id(0)
    expected = tl.load(expected_at + row).to(tl.int32)
    z_at += row.to(tl.int64) * stride
    hit = tl.load(z_at + tl.maximum(expected, 0)).to(tl.float32)
    MANY: tl.constexpr = BLOCK // EACH
    top, grown, total = (
        tl.full((MANY,), -1e30, tl.float32),
        tl.zeros((MANY,), tl.float32),
        tl.zeros((MANY,), tl.float32),
    )
    inner = tl.arange(0, MANY)[:, None] * EACH + tl.arange(0, EACH)[None, :]
    for first in range(0, VOCAB, BLOCK):
        if EVEN:
            z = tl.load(z_at + first + inner, eviction_policy="evict_last").to(tl.float32)
            total += tl.sum(z, axis=1)
        else:
            z = tl.load(z_at + first + inner, mask=first + inner < VOCAB, other=-1e30).to(tl.float32)
            total += tl.sum(tl.where(first + inner < VOCAB, z, 0.0), axis=1)
        higher = tl.maximum(top, tl.max(z, axis=1))
        grown = grown * tl.exp2((top - higher) * LOG2) + tl.sum(tl.exp2(z * LOG2 - (higher * LOG2)[:, None]), axis=1)
        top = higher
    highest = tl.max(top, axis=0)
    size = highest + tl.log(tl.sum(tl.where(top > -1e29, grown * tl.exp(top - highest), 0.0), axis=0))
    mean = tl.sum(total, axis=0) / VOCAB
    due, less, own = _told(hit, size, mean, expected, total_at, plain_at, row, smoothing, VOCAB)
    tl.debug_barrier()  # what was expected is read before it is written over
    lowered = size * LOG2
    for first in range(0, VOCAB, BLOCK):
        if EVEN:
            z = tl.load(z_at + first + inner, eviction_policy="evict_first").to(tl.float32)
            slope = tl.exp2(z * LOG2 - lowered) * due - less
            tl.store(z_at + first + inner, slope.to(z_at.dtype.element_ty), eviction_policy="evict_first")
        else:
            z = tl.load(z_at + first + inner, mask=first + inner < VOCAB, other=-1e30).to(tl.float32)
            slope = tl.exp2(z * LOG2 - lowered) * due - less
            tl.store(z_at + first + inner, slope.to(z_at.dtype.element_ty), mask=first + inner < VOCAB)
    tl.debug_barrier()
    tl.store(z_at + tl.maximum(expected, 0), own.to(z_at.dtype.element_ty))


@triton.jit
def _double(z_at, expected_at, total_at, plain_at, stride, apart, smoothing, agreement, VOCAB, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    expected = tl.load(expected_at + row).to(tl.int32)
    z_at += row.to(tl.int64) * stride
    y_at = z_at + apart.to(tl.int64)
    size_z, mean_z = _measured(z_at, VOCAB, BLOCK)
    size_y, mean_y = _measured(y_at, VOCAB, BLOCK)
    due, hit = tl.where(expected >= 0, 1.0, 0.0), tl.maximum(expected, 0)
    plain = size_z - tl.load(z_at + hit).to(tl.float32) + size_y - tl.load(y_at + hit).to(tl.float32)
    to_y, to_z = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(z_at + column, mask=column < VOCAB, other=-1e30).to(tl.float32) - size_z
        y = tl.load(y_at + column, mask=column < VOCAB, other=-1e30).to(tl.float32) - size_y
        to_y += tl.where(column < VOCAB, tl.exp(z) * (z - y), 0.0)
        to_z += tl.where(column < VOCAB, tl.exp(y) * (y - z), 0.0)
    from_z, from_y = tl.sum(to_y, axis=0), tl.sum(to_z, axis=0)  # the divergences
    even = (size_z - mean_z + size_y - mean_y) * smoothing + plain * (1 - smoothing)
    tl.store(plain_at + row, plain / 2 * due)
    tl.store(total_at + row, (even / 2 + agreement / 4 * (from_z + from_y)) * due)
    tl.debug_barrier()
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        there = column < VOCAB
        z = tl.load(z_at + column, mask=there, other=0.0).to(tl.float32) - size_z
        y = tl.load(y_at + column, mask=there, other=0.0).to(tl.float32) - size_y
        p, q, target = tl.exp(z), tl.exp(y), smoothing / VOCAB + tl.where(column == expected, 1 - smoothing, 0.0)
        slope_z = (p - target) / 2 + agreement / 4 * (p * (z - y - from_z) + p - q)
        slope_y = (q - target) / 2 + agreement / 4 * (q * (y - z - from_y) + q - p)
        tl.store(z_at + column, (slope_z * due).to(z_at.dtype.element_ty), mask=there)
        tl.store(y_at + column, (slope_y * due).to(z_at.dtype.element_ty), mask=there)


@triton.jit
def _lesson(z_at, expected_at, total_at, plain_at, stride, y_at, apart, smoothing, share, VOCAB, BLOCK: tl.constexpr):
    """Of the loss, `share` is to say what a teacher's scores y say."""
    row = tl.program_id(0)
    expected = tl.load(expected_at + row).to(tl.int32)
    z_at += row.to(tl.int64) * stride
    y_at += row.to(tl.int64) * apart
    size, mean = _measured(z_at, VOCAB, BLOCK)
    heard, _ = _measured(y_at, VOCAB, BLOCK)
    along = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(z_at + column, mask=column < VOCAB, other=0.0).to(tl.float32)
        along += tl.exp(tl.load(y_at + column, mask=column < VOCAB, other=-1e30).to(tl.float32) - heard) * z
    due = tl.where(expected >= 0, 1.0, 0.0)
    plain = size - tl.load(z_at + tl.maximum(expected, 0)).to(tl.float32)
    own = (1 - smoothing) * plain + smoothing * (size - mean)
    tl.store(plain_at + row, plain * due)
    tl.store(total_at + row, ((1 - share) * own + share * (size - tl.sum(along, axis=0))) * due)
    tl.debug_barrier()  # what was expected is read before it is written over
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(z_at + column, mask=column < VOCAB, other=0.0).to(tl.float32)
        q = tl.exp(tl.load(y_at + column, mask=column < VOCAB, other=-1e30).to(tl.float32) - heard)
        target = smoothing / VOCAB + tl.where(column == expected, 1 - smoothing, 0.0)
        slope = tl.exp(z - size) - (1 - share) * target - share * q
        tl.store(z_at + column, (slope * due).to(z_at.dtype.element_ty), mask=column < VOCAB)


def slopes(
    scores: Tensor,
    expected: Tensor,
    smoothing: float,
    agreement: float = 0.0,
    heard: tuple[Tensor, float] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """What training/loss.py's plain one gives: the loss, the plain surprise, and the gradient, for which `scores` are used up."""
    passes, rows, vocab = scores.shape
    total, plain = scores.new_empty(2, rows, dtype=torch.float32)
    parts, widest = (scores, expected, total, plain, scores.stride(1)), triton.next_power_of_2(vocab)
    if heard is not None:
        other, share = heard
        _lesson[(rows,)](*parts, other, other.stride(0), smoothing, share, vocab, BLOCK=min(BLOCK, widest), num_warps=8)
    elif passes == 1:
        block = max(LANES["each"], min(LANES["block"], widest))
        _single[(rows,)](
            *parts, smoothing, vocab, LOG2=LOG2, BLOCK=block, EACH=LANES["each"], EVEN=vocab % block == 0,
            num_warps=LANES["warps"],
        )  # fmt: skip
    else:
        block = min(BLOCK, widest)
        _double[(rows,)](*parts, scores.stride(0), smoothing, agreement, vocab, BLOCK=block, num_warps=8)
    return total.sum(), plain.sum(), scores
