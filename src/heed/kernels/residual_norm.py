"""Residual sum, dropout and layer norm as one Triton kernel, for training on a GPU.

The dropout mask is a hash of the element's offset and a seed, so that the backward pass recomputes it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from heed.kernels.gradient_buffers import claim_buffer
from heed.kernels.reduce import column_sums


@triton.jit
def keep_mask(seed_ptr, offsets, threshold):
    """Which elements at these offsets dropout keeps; it drops `threshold` / 2^24 of all."""
    seed0, seed1 = load_seed(seed_ptr)
    return keep_mask_of_seed(seed0, seed1, offsets, threshold)


@triton.jit
def load_seed(seed_ptr):
    return tl.load(seed_ptr).to(tl.uint32), tl.load(seed_ptr + 1).to(tl.uint32)


@triton.jit
def keep_mask_of_seed(seed0, seed1, offsets, threshold):
    """`keep_mask` for a seed that has been loaded: the hash is at least `threshold` / 2^24 of 2^32."""
    h = (offsets.to(tl.uint32) ^ seed0) * 0x9E3779B1
    h = (h ^ (h >> 15) ^ seed1) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    return (h ^ (h >> 16)) >= (tl.cast(threshold, tl.uint32) << 8)


def draw_seed(dropout: float, device: torch.device) -> tuple[Tensor | None, int, float]:
    """A seed from torch's generator, the threshold for `keep_mask`, and the factor for kept elements."""
    if not dropout:
        return None, 0, 1.0
    seed = DRAWN_SEEDS.pop() if DRAWN_SEEDS else torch.randint(0, 2**31 - 1, (2,), dtype=torch.int32, device=device)
    return seed, int(dropout * 2**24), 1 / (1 - dropout)


DRAWN_SEEDS: list[Tensor] = []  # by `draw_seeds_at_once`, not used yet


@contextmanager
def draw_seeds_at_once(device: torch.device, count: int = 256) -> Iterator[None]:
    """Draw the first `count` seeds of this block by a single kernel; rows of four numbers keep them 16-byte aligned."""
    seeds = torch.randint(0, 2**31 - 1, (count, 4), dtype=torch.int32, device=device)
    DRAWN_SEEDS.extend(reversed(seeds.unbind()))
    try:
        yield
    finally:
        DRAWN_SEEDS.clear()


@triton.jit
def _mean(x, WIDTH: tl.constexpr):
    return tl.sum(x, axis=-1, keep_dims=True) / WIDTH


@triton.jit
def normalize_rows(x, column_mask, WIDTH: tl.constexpr, eps):
    """Rows of x with mean 0 and variance 1, and one over their standard deviation.

    In two passes: with one, a mean far from zero would cancel the digits of the variance.
    """
    x = tl.where(column_mask, x - _mean(x, WIDTH), 0.0)
    rstd = 1 / tl.sqrt(_mean(x * x, WIDTH) + eps)
    return x * rstd, rstd


@triton.jit
def _norm_forward(
    x_ptr, y_ptr, y_bias_ptr, weight_ptr, bias_ptr, sum_ptr, out_ptr, seed_ptr, threshold, keep_scale,
    path_ptr, path_threshold, path_scale, length, rows, eps, ADD: tl.constexpr, DROP: tl.constexpr, PATH: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row, column = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None], tl.arange(0, BLOCK)
    column_mask = column < WIDTH
    offsets, mask = row * WIDTH + column, (row < rows) & column_mask
    weight = tl.load(weight_ptr + column, mask=column_mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=column_mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        y += tl.load(y_bias_ptr + column, mask=column_mask, other=0.0).to(tl.float32)
        if DROP:
            y = tl.where(keep_mask(seed_ptr, offsets, threshold), y * keep_scale, 0.0)
        if PATH:
            y = tl.where(
                keep_mask(path_ptr, row // length + tl.zeros_like(offsets), path_threshold), y * path_scale, 0.0
            )
        x = (x + y).to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + offsets, x, mask=mask)
        x = x.to(tl.float32)
    x, _ = normalize_rows(x, column_mask, WIDTH, eps)
    tl.store(out_ptr + offsets, (x * weight + bias).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _load_rows(sum_ptr, d_ptr, sum_grad_ptr, row, rows, column, SUM_GRAD: tl.constexpr, WIDTH: tl.constexpr):
    """One row of each input in its own dtype; without SUM_GRAD the third is a placeholder."""
    offsets = row * WIDTH + column
    mask = (row + tl.zeros_like(column) < rows) & (column < WIDTH)  # Triton's interpreter takes no scalar mask
    x, d = tl.load(sum_ptr + offsets, mask=mask, other=0.0), tl.load(d_ptr + offsets, mask=mask, other=0.0)
    sum_grad = x
    if SUM_GRAD:
        sum_grad = tl.load(sum_grad_ptr + offsets, mask=mask, other=0.0)
    return x, d, sum_grad


@triton.jit
def _norm_backward(
    d_ptr, sum_grad_ptr, sum_ptr, weight_ptr, dx_ptr, dy_ptr, partials_ptr, seed_ptr, threshold, keep_scale,
    path_ptr, path_threshold, path_scale, length, rows, eps, ADD: tl.constexpr, SUM_GRAD: tl.constexpr,
    DROP: tl.constexpr, PATH: tl.constexpr, SEPARATE: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """SEPARATE: dy is not dx."""
    program, programs, column = tl.program_id(0), tl.num_programs(0), tl.arange(0, BLOCK)
    column_mask = column < WIDTH
    weight = tl.load(weight_ptr + column, mask=column_mask, other=0.0).to(tl.float32)
    weight_grad, bias_grad = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    y_bias_grad = tl.zeros((BLOCK,), tl.float32)
    if DROP:
        seed0, seed1 = load_seed(seed_ptr)
    if PATH:
        path0, path1 = load_seed(path_ptr)
    x_next, d_next, more_next = _load_rows(sum_ptr, d_ptr, sum_grad_ptr, program, rows, column, SUM_GRAD, WIDTH)
    for row in range(program, rows, programs):
        x, d, sum_grad = x_next.to(tl.float32), d_next.to(tl.float32), more_next
        row_next = row + programs  # loaded while this row is computed
        x_next, d_next, more_next = _load_rows(sum_ptr, d_ptr, sum_grad_ptr, row_next, rows, column, SUM_GRAD, WIDTH)
        x, rstd = normalize_rows(x, column_mask, WIDTH, eps)
        weight_grad += d * x
        bias_grad += d
        d = d * weight
        d = (d - _mean(d, WIDTH) - x * _mean(d * x, WIDTH)) * rstd
        if SUM_GRAD:
            d += sum_grad.to(tl.float32)
        offsets = row * WIDTH + column
        tl.store(dx_ptr + offsets, d.to(dx_ptr.dtype.element_ty), mask=column_mask)
        if ADD:
            if DROP:
                d = tl.where(keep_mask_of_seed(seed0, seed1, offsets, threshold), d * keep_scale, 0.0)
            if PATH:
                sequence = row // length + tl.zeros_like(column)
                d = tl.where(keep_mask_of_seed(path0, path1, sequence, path_threshold), d * path_scale, 0.0)
            if SEPARATE:
                tl.store(dy_ptr + offsets, d.to(dy_ptr.dtype.element_ty), mask=column_mask)
            y_bias_grad += d
    out_ptr = partials_ptr + program * WIDTH + column
    tl.store(out_ptr, weight_grad, mask=column_mask)
    tl.store(out_ptr + programs * WIDTH, bias_grad, mask=column_mask)
    if ADD:
        tl.store(out_ptr + 2 * programs * WIDTH, y_bias_grad, mask=column_mask)


def _forward_tile(width: int) -> dict[str, int]:
    block = triton.next_power_of_2(width)
    warps = 2 if block <= 512 else 4 if block <= 2048 else 8
    return {"WIDTH": width, "BLOCK": block, "ROWS": max(1, 512 * warps // block), "num_warps": warps}


def _backward_tile(width: int) -> tuple[dict[str, int], int]:
    """One row per step of a program; and the number of programs that an H200 runs at once."""
    block = triton.next_power_of_2(width)
    tile = {"WIDTH": width, "BLOCK": block, "num_warps": max(1, min(2, block // 256), block // 512)}
    return tile, 132 * (16 if block < 512 else 10 if block == 512 else 6)


def program_count(rows: int, rows_each: int, limit: int) -> int:
    """The number of programs that share the rows."""
    return max(1, min(limit, triton.cdiv(rows, rows_each)))


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x, y, y_bias, weight, bias, eps: float, dropout: float, share: bool, path: tuple[float, int]):
        seed, *drop = draw_seed(dropout, x.device)
        path_seed, *path_drop = draw_seed(path[0], x.device)
        total, out, tile = torch.empty_like(x), torch.empty_like(x), _forward_tile(x.shape[1])
        _norm_forward[(triton.cdiv(len(x), tile["ROWS"]),)](
            x, y, y_bias, weight, bias, total, out, x if seed is None else seed, *drop,
            x if path_seed is None else path_seed, *path_drop, path[1], len(x), eps,
            ADD=True, DROP=seed is not None, PATH=path_seed is not None, **tile,
        )  # fmt: skip
        ctx.save_for_backward(total, weight, seed, path_seed)
        ctx.constants = (drop, (*path_drop, path[1]), eps, share)
        ctx.buffers = [claim_buffer(part) for part in (weight, bias, y_bias)]
        ctx.set_materialize_grads(False)
        return total, out

    @staticmethod
    def backward(ctx: Any, sum_grad, d):
        total, weight, seed, path_seed = ctx.saved_tensors
        drop, path, eps, share = ctx.constants
        d = torch.zeros_like(total) if d is None else d.contiguous()
        dx, (tile, limit) = torch.empty_like(total), _backward_tile(total.shape[1])
        dy = dx if share and seed is None and path_seed is None else torch.empty_like(total)
        programs = program_count(len(total), 1, limit)
        partials = total.new_empty(3, programs, total.shape[1], dtype=torch.float32)
        _norm_backward[(programs,)](
            d, d if sum_grad is None else sum_grad.contiguous(), total, weight, dx, dy, partials,
            d if seed is None else seed, *drop, d if path_seed is None else path_seed, *path, len(total), eps, ADD=True,
            SUM_GRAD=sum_grad is not None, DROP=seed is not None, PATH=path_seed is not None, SEPARATE=dy is not dx,
            **tile,
        )  # fmt: skip
        weight_grad, bias_grad, y_bias_grad = column_sums(partials, ctx.buffers)
        return dx, dy, y_bias_grad, weight_grad, bias_grad, None, None, None, None


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x, weight, bias, eps: float):
        out, tile = torch.empty_like(x), _forward_tile(x.shape[1])
        _norm_forward[(triton.cdiv(len(x), tile["ROWS"]),)](
            x, x, x, weight, bias, x, out, x, 0, 1.0, x, 0, 1.0, 1, len(x), eps, ADD=False, DROP=False, PATH=False, **tile
        )  # fmt: skip
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.buffers = eps, [claim_buffer(part) for part in (weight, bias)]
        return out

    @staticmethod
    def backward(ctx: Any, d):
        x, weight = ctx.saved_tensors
        d, dx, (tile, limit) = d.contiguous(), torch.empty_like(x), _backward_tile(x.shape[1])
        programs = program_count(len(x), 1, limit)
        partials = x.new_empty(2, programs, x.shape[1], dtype=torch.float32)
        _norm_backward[(programs,)](
            d, d, x, weight, dx, dx, partials, d, 0, 1.0, d, 0, 1.0, 1, len(x), ctx.eps,
            ADD=False, SUM_GRAD=False, DROP=False, PATH=False, SEPARATE=False, **tile,
        )  # fmt: skip
        weight_grad, bias_grad = column_sums(partials, ctx.buffers)
        return dx, weight_grad, bias_grad, None


def layer_norm(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Layer norm of rows."""
    return _Norm.apply(x.contiguous(), norm.weight, norm.bias, norm.eps)


def add_norm(
    x: Tensor, y: Tensor, y_bias: Tensor, norm: nn.LayerNorm, dropout: float = 0.0, *, share: bool = False,
    path: tuple[float, int] = (0.0, 1),
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The sum x + dropout(y + y_bias), and its layer norm.

    `share` promises that nothing adds to the gradient of x in place, so that without dropout y may share it. `path`
    is stochastic depth: the drop rate of y per sequence, and the rows per sequence.
    """
    norms = norm.weight, norm.bias, norm.eps
    return _AddNorm.apply(x.contiguous(), y.contiguous(), y_bias, *norms, dropout, share, path)
