"""Triton kernels for products of 8-bit floats (e4m3) on a GPU: rows are rounded where they are computed.

A row is its values times its scale. 448 is the largest e4m3 number.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from heed.kernels.feed_forward import multiprocessors, tile_index
from heed.kernels.residual_norm import normalize_rows

FP8 = torch.float8_e4m3fn
# The fastest of six on an H200 for 131,040 rows of 384 numbers and 1,536 hidden units
TILE = {"block_m": 128, "block_n": 128, "block_k": 128, "stages": 3, "warps": 4, "programs_per_sm": 2}


@triton.jit
def _norm_rows(
    x_ptr, y_ptr, y_bias_ptr, weight_ptr, bias_ptr, sum_ptr, out_ptr, scale_ptr, bound_ptr, factor, offset, eps,
    ADD: tl.constexpr, BOUND: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A row as in kernels/residual_norm.py, without dropout; its largest absolute value becomes 448.

    BOUND: also the scale with which numbers up to `factor` times the length of the row, plus `offset`, fit.
    """
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    mask, offsets = column < WIDTH, row * WIDTH + column
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        y += tl.load(y_bias_ptr + column, mask=mask, other=0.0).to(tl.float32)
        x = (x + y).to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + offsets, x, mask=mask)
        x = x.to(tl.float32)
    x, _ = normalize_rows(x, mask, WIDTH, eps)
    x = x * weight + bias
    scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-30) / 448.0
    x = x * (1 / scale)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(scale_ptr + row, scale)
    if BOUND:  # the length in units of the scale: squares of the numbers themselves could overflow
        tl.store(bound_ptr + row, (tl.sqrt(tl.sum(x * x, axis=0)) * scale * factor + offset) / 448.0)


@triton.jit
def _gelu(x, APPROXIMATE: tl.constexpr):
    """By its tanh form. APPROXIMATE: by the GPU's own tanh, of 11 bits, which is one special function instead of two."""
    u = 0.7978845608028654 * x * (1 + 0.044715 * x * x)
    if APPROXIMATE:
        tanh = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [u], dtype=tl.float32, is_pure=True, pack=1)
        return 0.5 * x * (1 + tanh)
    else:  # (1 + tanh(u)) / 2 is sigmoid(2 u)
        return x * tl.sigmoid(2 * u)


@triton.jit
def _linear_gelu(
    x_desc, w_desc, out_desc, x_scale_ptr, w_scale_ptr, bias_ptr, bound_ptr, rows, N, K, APPROXIMATE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """GELU(x @ w.T + bias) in units of a bound for each row: a persistent kernel with TMA."""
    down, across = tl.cdiv(rows, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for number in tl.range(tl.program_id(0), down * across, tl.num_programs(0)):
        i, j = tile_index(number, down, across, 8)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(0, K, BLOCK_K):
            total = tl.dot(x_desc.load([i * BLOCK_M, first]), w_desc.load([j * BLOCK_N, first]).T, total)
        row, column = i * BLOCK_M + tl.arange(0, BLOCK_M), j * BLOCK_N + tl.arange(0, BLOCK_N)
        x_scale = tl.load(x_scale_ptr + row, mask=row < rows, other=0.0)[:, None]
        x = total * x_scale * tl.load(w_scale_ptr + column, mask=column < N, other=0.0)[None, :]
        x += tl.load(bias_ptr + column, mask=column < N, other=0.0).to(tl.float32)[None, :]
        x = _gelu(x, APPROXIMATE) * (1 / tl.load(bound_ptr + row, mask=row < rows, other=1.0))[:, None]
        out_desc.store([i * BLOCK_M, j * BLOCK_N], x.to(out_desc.dtype))


def norm_rows(
    x: Tensor, norm: nn.LayerNorm, added: tuple[Tensor, Tensor] | None = None, bound: tuple[float, float] | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The sum x + y + bias for an `added` (y, bias); its layer norm in e4m3, with scales. `bound` is a factor of the
    length of a row and what is added to that: then there are also scales with which numbers up to there fit.
    """
    rows, width = x.shape
    x, (y, y_bias) = x.contiguous(), (x, norm.bias) if added is None else added
    total = x if added is None else torch.empty_like(x)
    out, scale = x.new_empty(rows, width, dtype=FP8), x.new_empty(rows, 1, dtype=torch.float32)
    limit = None if bound is None else torch.empty_like(scale)
    block = triton.next_power_of_2(width)
    _norm_rows[(rows,)](
        x, y.contiguous(), y_bias, norm.weight, norm.bias, total, out, scale, scale if limit is None else limit,
        *(bound or (0.0, 0.0)), norm.eps, ADD=added is not None, BOUND=limit is not None, WIDTH=width, BLOCK=block,
        num_warps=2 if block <= 512 else 4 if block <= 2048 else 8,
    )  # fmt: skip
    return total, out, scale, limit


def linear_gelu(
    x: Tensor, x_scale: Tensor, bound: Tensor, weight: Tensor, weight_scale: Tensor, bias: Tensor
) -> Tensor:
    """GELU of a linear layer in e4m3, with the scales `bound`. Inputs and outputs are multiples of 16 wide, for TMA."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    (rows, depth), width = x.shape, len(weight)
    m, n, k = (TILE[name] for name in ("block_m", "block_n", "block_k"))
    out = x.new_empty(rows, width)
    programs = min(triton.cdiv(rows, m) * triton.cdiv(width, n), TILE["programs_per_sm"] * multiprocessors(x.device))
    _linear_gelu[(programs,)](
        *(TensorDescriptor.from_tensor(*pair) for pair in ((x, [m, k]), (weight, [n, k]), (out, [m, n]))), x_scale,
        weight_scale, bias, bound, rows, width, depth, APPROXIMATE=x.is_cuda, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k,
        num_stages=TILE["stages"], num_warps=TILE["warps"],
    )  # fmt: skip
    return out
