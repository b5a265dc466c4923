"""Attention within short sequences in Triton, for training on a GPU.

A general kernel cuts sequences into tiles, keeps running sums, and needs a second kernel for gradients. Here a sequence
fits into one tile: its softmax and its gradients are computed at once, and only the inputs and the logsumexp are saved.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from heed.kernels.feed_forward import has_tma, multiprocessors
from heed.kernels.residual_norm import draw_seed, keep_mask

LOG2E = tl.constexpr(1.4426950408889634)  # GPUs compute 2^x, not e^x


@dataclass(frozen=True)
class LaunchConfig:
    """How a kernel is launched: `tiles_per_program`, or if set, `programs_per_sm` for all tiles.

    `stages` 2: load the next tile while one is computed. `heads_first`: consecutive tiles are heads of one sequence,
    else sequences. `block_q`: queries at a time (forward). `tma`: load by TMA (backward).
    """

    warps: int
    tiles_per_program: int = 1
    programs_per_sm: int = 0
    stages: int = 1
    heads_first: bool = False
    block_q: int = 128
    max_registers: int | None = None
    tma: bool = False


LAUNCH_CONFIGS = {
    ("forward", "small"): LaunchConfig(warps=1, tiles_per_program=4, stages=2, heads_first=True),
    ("forward", "middle"): LaunchConfig(warps=4, heads_first=True),
    ("forward", "large"): LaunchConfig(warps=4, block_q=64, max_registers=128),
    ("backward", "small"): LaunchConfig(warps=1, tiles_per_program=4, stages=2, heads_first=True),
    ("backward", "middle"): LaunchConfig(warps=4, heads_first=True),
    ("backward", "large"): LaunchConfig(warps=8, programs_per_sm=1, stages=2, tma=True),
    ("forward", "fallback"): LaunchConfig(warps=8),
    ("backward", "fallback"): LaunchConfig(warps=8),
}


@triton.jit
def _tile_range(count, HEADS: tl.constexpr, SINGLE_TILE: tl.constexpr):
    """The range of tiles of a program. With SINGLE_TILE the compiler sees that there is no loop."""
    first = tl.program_id(0)
    if SINGLE_TILE:
        return first, first + 1, 1
    else:
        return first, count * HEADS, tl.num_programs(0)


@triton.jit
def _locate_tile(tile, q_starts, k_starts, count, HEADS: tl.constexpr, HEADS_FIRST: tl.constexpr):
    """The index of a tile for dropout, its head, the start and number of its queries, and of its keys."""
    if HEADS_FIRST:
        sequence, head = tile // HEADS, tile % HEADS
    else:
        sequence, head = tile % count, tile // count
    q_start, k_start = tl.load(q_starts + sequence), tl.load(k_starts + sequence)
    queries, keys = tl.load(q_starts + sequence + 1) - q_start, tl.load(k_starts + sequence + 1) - k_start
    return sequence * HEADS + head, head, q_start, queries, k_start, keys


@triton.jit
def _tile_ptrs(base, start, head, STRIDE: tl.constexpr, ROWS: tl.constexpr, HEAD_DIM: tl.constexpr):
    """Pointers to one head of the rows from `start` on, with a constant stride to save registers."""
    first = base + start.to(tl.int64) * STRIDE + head * HEAD_DIM
    return first + tl.arange(0, ROWS)[:, None] * STRIDE + tl.arange(0, HEAD_DIM)[None, :]


@triton.jit
def _load(
    base, start, length, head, STRIDE: tl.constexpr, ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, TMA: tl.constexpr
):
    """One head of `length` rows; further rows are zeros, or with TMA the next sequence, which must be masked."""
    if TMA:
        return base.load([start, head * HEAD_DIM])
    else:
        mask = (tl.arange(0, ROWS) < length)[:, None]
        return tl.load(_tile_ptrs(base, start, head, STRIDE, ROWS, HEAD_DIM), mask=mask, other=0.0)


@triton.jit
def _store(x, base, start, length, head, STRIDE: tl.constexpr, ROWS: tl.constexpr, HEAD_DIM: tl.constexpr):
    mask = (tl.arange(0, ROWS) < length)[:, None]
    tl.store(_tile_ptrs(base, start, head, STRIDE, ROWS, HEAD_DIM), x.to(base.dtype.element_ty), mask=mask)


@triton.jit
def _lse_ptrs(base, start, head, HEADS: tl.constexpr, ROWS: tl.constexpr):
    return base + start.to(tl.int64) * HEADS + head + tl.arange(0, ROWS) * HEADS


@triton.jit
def _visible(row, column, keys, CAUSAL: tl.constexpr):
    if CAUSAL:
        return (column < keys) & (column <= row)
    else:
        return column < keys


@triton.jit(do_not_specialize=["count"])
def _attention_forward(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, q_starts, k_starts, count, scale, seed_ptr, threshold, keep_scale,
    Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, V_STRIDE: tl.constexpr, OUT_STRIDE: tl.constexpr,
    CAUSAL: tl.constexpr, DROP: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, HEAD_DIM: tl.constexpr,
    HEADS: tl.constexpr, HEADS_FIRST: tl.constexpr, STAGES: tl.constexpr, SINGLE_TILE: tl.constexpr,
    BLOCK_Q: tl.constexpr,
):  # fmt: skip
    """softmax(q . k / sqrt(d)) . v for each tile, BLOCK_Q queries at a time.

    `lse` is the logsumexp in units of q . k, before the scale, as the backward pass takes it.
    """
    column = tl.arange(0, KEYS)[None, :]
    first_tile, end, step = _tile_range(count, HEADS, SINGLE_TILE)
    for tile in tl.range(first_tile, end, step, num_stages=STAGES):
        index, head, q_start, queries, k_start, keys = _locate_tile(tile, q_starts, k_starts, count, HEADS, HEADS_FIRST)
        k = _load(k_ptr, k_start, keys, head, K_STRIDE, KEYS, HEAD_DIM, False)
        v = _load(v_ptr, k_start, keys, head, V_STRIDE, KEYS, HEAD_DIM, False)
        for first in tl.static_range(0, QUERIES, BLOCK_Q):
            start, left, row = q_start + first, queries - first, first + tl.arange(0, BLOCK_Q)[:, None]
            q = _load(q_ptr, start, left, head, Q_STRIDE, BLOCK_Q, HEAD_DIM, False)
            scores = tl.dot(q, tl.trans(k)) * (scale * LOG2E)
            scores = tl.where(_visible(row, column, keys, CAUSAL), scores, float("-inf"))
            maximum = tl.maximum(tl.max(scores, axis=1), -1e30)  # finite without any key
            weights = tl.exp2(scores - maximum[:, None])
            total = tl.maximum(tl.sum(weights, axis=1), 1.0)  # at least 1 with a key; without one the output is 0
            lse = (maximum + tl.log2(total)) / (scale * LOG2E)
            tl.store(_lse_ptrs(lse_ptr, start, head, HEADS, BLOCK_Q), lse, mask=tl.arange(0, BLOCK_Q) < left)
            if DROP:
                keep = keep_mask(seed_ptr, (index * QUERIES + row) * KEYS + column, threshold)
                weights = tl.where(keep, weights, 0.0)
            out = tl.dot(weights.to(v.dtype), v) * (keep_scale / total)[:, None]
            _store(out, out_ptr, start, left, head, OUT_STRIDE, BLOCK_Q, HEAD_DIM)


@triton.jit(do_not_specialize=["count"])
def _attention_backward(
    q_ptr, k_ptr, v_ptr, d_ptr, lse_ptr, dq_ptr, dk_ptr, dv_ptr, q_starts, k_starts, count, scale, seed_ptr, threshold,
    keep_scale, Q_STRIDE: tl.constexpr, K_STRIDE: tl.constexpr, V_STRIDE: tl.constexpr, D_STRIDE: tl.constexpr,
    DQ_STRIDE: tl.constexpr, DK_STRIDE: tl.constexpr, DV_STRIDE: tl.constexpr, CAUSAL: tl.constexpr, DROP: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, HEAD_DIM: tl.constexpr, HEADS: tl.constexpr, HEADS_FIRST: tl.constexpr,
    STAGES: tl.constexpr, SINGLE_TILE: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Gradients of queries, keys and values for each tile.

    d . out of a query equals the sum of p * dp over its row, so that the output is neither saved nor read.
    """
    row, column = tl.arange(0, QUERIES), tl.arange(0, KEYS)[None, :]
    first_tile, end, step = _tile_range(count, HEADS, SINGLE_TILE)
    for tile in tl.range(first_tile, end, step, num_stages=STAGES):
        index, head, q_start, queries, k_start, keys = _locate_tile(tile, q_starts, k_starts, count, HEADS, HEADS_FIRST)
        q = _load(q_ptr, q_start, queries, head, Q_STRIDE, QUERIES, HEAD_DIM, TMA)
        k = _load(k_ptr, k_start, keys, head, K_STRIDE, KEYS, HEAD_DIM, TMA)
        v = _load(v_ptr, k_start, keys, head, V_STRIDE, KEYS, HEAD_DIM, TMA)
        d = _load(d_ptr, q_start, queries, head, D_STRIDE, QUERIES, HEAD_DIM, TMA)
        # infinite beyond the last query, so that the weights there are 0
        lse = tl.load(_lse_ptrs(lse_ptr, q_start, head, HEADS, QUERIES), mask=row < queries, other=float("inf"))
        scores = tl.dot(q, tl.trans(k), tl.zeros((QUERIES, KEYS), tl.float32) - lse[:, None])
        p = tl.where(_visible(row[:, None], column, keys, CAUSAL), tl.exp2(scores * (scale * LOG2E)), 0.0)
        dp, dropped = tl.dot(d, tl.trans(v)), p
        if DROP:
            keep = keep_mask(seed_ptr, (index * QUERIES + row[:, None]) * KEYS + column, threshold)
            dp, dropped = tl.where(keep, dp * keep_scale, 0.0), tl.where(keep, p * keep_scale, 0.0)
        # dv before ds: two transposed tiles at once would not fit into the shared memory of smaller GPUs
        _store(tl.dot(tl.trans(dropped.to(d.dtype)), d), dv_ptr, k_start, keys, head, DV_STRIDE, KEYS, HEAD_DIM)
        ds = (p * (dp - tl.sum(p * dp, axis=1)[:, None])).to(q.dtype)
        _store(tl.dot(tl.trans(ds), q) * scale, dk_ptr, k_start, keys, head, DK_STRIDE, KEYS, HEAD_DIM)
        _store(tl.dot(ds, k) * scale, dq_ptr, q_start, queries, head, DQ_STRIDE, QUERIES, HEAD_DIM)


def _tile_shape(longest: tuple[int, int]) -> tuple[int, int]:
    """Queries and keys of a tile: powers of two, at least 16, as the tensor cores need."""
    return max(16, triton.next_power_of_2(longest[0])), max(16, triton.next_power_of_2(longest[1]))


def _launch_config(direction: str, parts: tuple[Tensor, ...], longest: tuple[int, int], head_dim: int) -> LaunchConfig:
    """The configuration for the size of a tile; for large tiles without TMA the fallback."""
    queries, keys = _tile_shape(longest)
    area = queries * keys * max(1, head_dim // 64)
    size_class = "small" if area <= 32 * 32 else "middle" if area <= 64 * 64 else "large"
    config = LAUNCH_CONFIGS[direction, size_class]
    needs_tma = size_class == "large" or config.tma
    return LAUNCH_CONFIGS[direction, "fallback"] if needs_tma and not _tma_fits(parts, head_dim) else config


def _tma_fits(parts: tuple[Tensor, ...], head_dim: int) -> bool:
    """Whether TMA can load these: rows start at multiples of 16 bytes, and two tiles fit into shared memory."""
    size = parts[0].itemsize
    aligned = all(len(part) and part.data_ptr() % 16 == 0 and part.stride(0) * size % 16 == 0 for part in parts)
    return aligned and head_dim * size <= 128 and has_tma(parts[0])


def _launch_arguments(
    config: LaunchConfig, longest: tuple[int, int], head_dim: int, dim: int, starts: Tensor
) -> tuple[int, dict[str, Any]]:
    """The number of programs, and the constants of both kernels."""
    (queries, keys), count = _tile_shape(longest), len(starts) - 1
    tiles = count * dim // head_dim
    programs = config.programs_per_sm * multiprocessors(starts.device) or triton.cdiv(tiles, config.tiles_per_program)
    constants = {
        "QUERIES": queries, "KEYS": keys, "HEAD_DIM": head_dim, "HEADS": dim // head_dim,
        "HEADS_FIRST": config.heads_first, "STAGES": config.stages, "num_warps": config.warps,
        "SINGLE_TILE": config.tiles_per_program == 1 and not config.programs_per_sm,
    }  # fmt: skip
    return min(programs, tiles), constants | ({} if config.max_registers is None else {"maxnreg": config.max_registers})


class _ShortAttention(torch.autograd.Function):
    """`q_or_qkv` holds queries, keys and values side by side, or queries alone if `kv` holds keys and values."""

    @staticmethod
    def forward(ctx: Any, q_or_qkv, kv, starts, longest, head_dim: int, causal: bool, dropout: float):
        parts = _split_qkv(q_or_qkv, kv)
        dim = parts[0].shape[1]
        seed, threshold, keep_scale = draw_seed(dropout, q_or_qkv.device)
        out = torch.empty(len(q_or_qkv), dim, dtype=q_or_qkv.dtype, device=q_or_qkv.device)
        lse = torch.empty(len(q_or_qkv), dim // head_dim, device=q_or_qkv.device)
        config = _launch_config("forward", parts, longest, head_dim)
        programs, constants = _launch_arguments(config, longest, head_dim, dim, starts[0])
        names = ("Q_STRIDE", "K_STRIDE", "V_STRIDE", "OUT_STRIDE")
        strides = {name: part.stride(0) for name, part in zip(names, (*parts, out), strict=True)}
        _attention_forward[(programs,)](
            *parts, out, lse, *starts, len(starts[0]) - 1, head_dim**-0.5, starts[0] if seed is None else seed,
            threshold, keep_scale, CAUSAL=causal, DROP=seed is not None,
            BLOCK_Q=min(config.block_q, constants["QUERIES"]), **strides, **constants,
        )  # fmt: skip
        ctx.save_for_backward(q_or_qkv, kv, lse, *starts, seed)
        ctx.constants = (longest, head_dim, causal, threshold, keep_scale)
        return out

    @staticmethod
    def backward(ctx: Any, d):
        q_or_qkv, kv, lse, *starts, seed = ctx.saved_tensors
        longest, head_dim, causal, threshold, keep_scale = ctx.constants
        q_or_qkv_grad, kv_grad = torch.empty_like(q_or_qkv), None if kv is None else torch.empty_like(kv)
        parts, grads = (*_split_qkv(q_or_qkv, kv), d.contiguous()), _split_qkv(q_or_qkv_grad, kv_grad)
        config = _launch_config("backward", parts, longest, head_dim)
        programs, constants = _launch_arguments(config, longest, head_dim, d.shape[1], starts[0])
        names = ("Q_STRIDE", "K_STRIDE", "V_STRIDE", "D_STRIDE", "DQ_STRIDE", "DK_STRIDE", "DV_STRIDE")
        strides = {name: part.stride(0) for name, part in zip(names, (*parts, *grads), strict=True)}
        _attention_backward[(programs,)](
            *(_descriptors(parts, longest, head_dim) if config.tma else parts), lse, *grads, *starts,
            len(starts[0]) - 1, head_dim**-0.5, starts[0] if seed is None else seed, threshold, keep_scale,
            CAUSAL=causal, DROP=seed is not None, TMA=config.tma, **strides, **constants,
        )  # fmt: skip
        return q_or_qkv_grad, kv_grad, None, None, None, None, None


def _descriptors(parts: tuple[Tensor, ...], longest: tuple[int, int], head_dim: int) -> list[Any]:
    """TMA descriptors of queries, keys, values and the gradient of the output."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    queries, keys = _tile_shape(longest)
    return [
        TensorDescriptor.from_tensor(part, [rows, head_dim])
        for part, rows in zip(parts, (queries, keys, keys, queries), strict=True)
    ]


def _split_qkv(q_or_qkv: Tensor, kv: Tensor | None) -> tuple[Tensor, ...]:
    """Queries, keys and values: columns of one matrix, or of two."""
    return q_or_qkv.chunk(3, dim=1) if kv is None else (q_or_qkv, *kv.chunk(2, dim=1))


def attend_short(
    q_or_qkv: Tensor, kv: Tensor | None, starts: tuple[Tensor, Tensor], longest: tuple[int, int], *, head_dim: int,
    causal: bool = False, dropout: float = 0.0,
) -> Tensor:  # fmt: skip
    """Attention over packed sequences, (tokens, columns) in and out; sequence i is starts[i] to starts[i + 1].

    `q_or_qkv` holds queries, keys and values side by side, or queries alone if `kv` holds the others. `starts` and
    `longest`, an upper bound of the lengths, are those of queries and keys. Every token must belong to a sequence.
    """
    return _ShortAttention.apply(q_or_qkv, kv, starts, longest, head_dim, causal, dropout)
