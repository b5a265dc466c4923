"""Triton kernels of bench/fp8_layers.py: rows become 8-bit floats (e4m3) where they are computed, each with its own scale.

A row is its values times its scale. 448 is the largest e4m3 number.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from heed.kernels.feed_forward import _tile_index, multiprocessors
from heed.kernels.linear import GELU_TANH, _activation_and_derivative
from heed.kernels.residual_norm import _normalize

FP8, LARGEST = torch.float8_e4m3fn, 448.0


class Launch(NamedTuple):
    """Rows of one program, and its warps. `approximate`: GELU by the GPU's own tanh, of 11 bits."""

    rows: int
    warps: int
    approximate: bool = False


class Tile(NamedTuple):
    """Of a product. `each`: programs per multiprocessor that share the tiles; 0: a program for each tile."""

    m: int
    n: int
    k: int
    stages: int
    warps: int
    each: int
    approximate: bool = False  # as above


NORMS = [Launch(2, 2), Launch(1, 1), Launch(1, 2), Launch(4, 4), Launch(4, 2)]
QUANTIZERS = [Launch(1, 4), Launch(1, 2), Launch(1, 8), Launch(2, 4), Launch(2, 8), Launch(4, 8)]
ACTIVATORS = [*QUANTIZERS, *(own._replace(approximate=True) for own in QUANTIZERS[:4])]
EXACT = [
    Tile(128, 128, 128, 3, 4, 2), Tile(128, 128, 128, 3, 8, 2), Tile(128, 256, 128, 3, 8, 1),
    Tile(128, 128, 128, 2, 4, 0), Tile(64, 256, 128, 2, 4, 2), Tile(128, 64, 128, 3, 4, 3),
]  # fmt: skip
TILES = [*EXACT, *(own._replace(approximate=True) for own in EXACT)]
# bench/fp8_images.py sets the fastest
LAUNCH = {"norm": NORMS[0], "quantize": QUANTIZERS[0], "activate": QUANTIZERS[0]}


@triton.jit
def _activate(x, ACTIVATION: tl.constexpr, APPROXIMATE: tl.constexpr):
    if APPROXIMATE:  # one special function for each number instead of two
        u = 0.7978845608028654 * x * (1 + 0.044715 * x * x)
        tanh = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [u], dtype=tl.float32, is_pure=True, pack=1)
        return 0.5 * x * (1 + tanh)
    else:
        y, _ = _activation_and_derivative(x, ACTIVATION)
        return y


@triton.jit
def _store_rows(x, row, rows, offsets, mask, out_ptr, scale_ptr):
    """The largest absolute value of each row becomes 448."""
    largest = tl.maximum(tl.max(tl.abs(x), axis=1, keep_dims=True), 1e-12)
    tl.store(out_ptr + offsets, (x * (448.0 / largest)).to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(scale_ptr + row, largest / 448.0, mask=row < rows)


@triton.jit
def _norm(
    x_ptr, y_ptr, y_bias_ptr, weight_ptr, bias_ptr, sum_ptr, out_ptr, scale_ptr, bound_ptr, factor, offset, rows, eps,
    ADD: tl.constexpr, BOUND: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """As in heed/kernels/residual_norm.py, without dropout. BOUND: also a scale for `factor` times the length of each
    row, plus `offset`.
    """
    row, column = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None], tl.arange(0, BLOCK)[None, :]
    column_mask = column < WIDTH
    offsets, mask = row * WIDTH + column, (row < rows) & column_mask
    weight = tl.load(weight_ptr + column, mask=column_mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=column_mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        y += tl.load(y_bias_ptr + column, mask=column_mask, other=0.0).to(tl.float32)
        x = (x + y).to(sum_ptr.dtype.element_ty)
        tl.store(sum_ptr + offsets, x, mask=mask)
        x = x.to(tl.float32)
    x, _ = _normalize(x, column_mask, WIDTH, eps)
    x = x * weight + bias
    _store_rows(x, row, rows, offsets, mask, out_ptr, scale_ptr)
    if BOUND:
        length = tl.sqrt(tl.sum(x * x, axis=1, keep_dims=True))
        tl.store(bound_ptr + row, (length * factor + offset) / 448.0, mask=row < rows)


@triton.jit
def _quantize(
    x_ptr, out_ptr, scale_ptr, rows, ACTIVATION: tl.constexpr, APPROXIMATE: tl.constexpr, WIDTH: tl.constexpr,
    BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row, column = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None], tl.arange(0, BLOCK)[None, :]
    offsets, mask = row * WIDTH + column, (row < rows) & (column < WIDTH)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if ACTIVATION >= 0:
        x = _activate(x, ACTIVATION, APPROXIMATE)
    _store_rows(x, row, rows, offsets, mask, out_ptr, scale_ptr)


@triton.jit
def _product(
    x_desc, w_desc, out_desc, x_scale_ptr, w_scale_ptr, bias_ptr, bound_ptr, rows, N, K, BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr, APPROXIMATE: tl.constexpr, BOUND: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """activation(x @ w.T + bias), in units of a bound on each row if there is one. Loads and stores are by TMA."""
    down, across = tl.cdiv(rows, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for number in tl.range(tl.program_id(0), down * across, tl.num_programs(0)):
        i, j = _tile_index(number, down, across, 8)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(0, K, BLOCK_K):
            total = tl.dot(x_desc.load([i * BLOCK_M, first]), w_desc.load([j * BLOCK_N, first]).T, total)
        row, column = i * BLOCK_M + tl.arange(0, BLOCK_M), j * BLOCK_N + tl.arange(0, BLOCK_N)
        x_scale = tl.load(x_scale_ptr + row, mask=row < rows, other=0.0)[:, None]
        x = total * x_scale * tl.load(w_scale_ptr + column, mask=column < N, other=0.0)[None, :]
        if BIAS:
            x += tl.load(bias_ptr + column, mask=column < N, other=0.0).to(tl.float32)[None, :]
        if ACTIVATION >= 0:
            x = _activate(x, ACTIVATION, APPROXIMATE)
        if BOUND:
            x = x * (1 / tl.load(bound_ptr + row, mask=row < rows, other=1.0))[:, None]
        out_desc.store([i * BLOCK_M, j * BLOCK_N], x.to(out_desc.dtype))


def norm_to_fp8(
    x: Tensor, norm: nn.LayerNorm, added: tuple[Tensor, Tensor] | None = None, bound: tuple[float, float] | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The sum x + y + bias for an `added` (y, bias); its layer norm in e4m3, and the scales. `bound` is a factor of the
    length of a row, and what is added: then there is also the scale with which a number up to that fits.
    """
    (rows, width), launch = x.shape, LAUNCH["norm"]
    x, (y, y_bias) = x.contiguous(), (x, norm.bias) if added is None else added
    total = x if added is None else torch.empty_like(x)
    out, scale = x.new_empty(rows, width, dtype=FP8), x.new_empty(rows, 1, dtype=torch.float32)
    limit = None if bound is None else torch.empty_like(scale)
    _norm[(triton.cdiv(rows, launch.rows),)](
        x, y, y_bias, norm.weight, norm.bias, total, out, scale, scale if limit is None else limit,
        *(bound or (0.0, 0.0)), rows, norm.eps, ADD=added is not None, BOUND=bound is not None, WIDTH=width,
        BLOCK=triton.next_power_of_2(width), ROWS=launch.rows, num_warps=launch.warps,
    )  # fmt: skip
    return total, out, scale, limit


def rows_to_fp8(x: Tensor, gelu: bool = False) -> tuple[Tensor, Tensor]:
    """Rows, or GELU of them, in e4m3; and their scales."""
    (rows, width), launch = x.shape, LAUNCH["activate" if gelu else "quantize"]
    out, scale = x.new_empty(rows, width, dtype=FP8), x.new_empty(rows, 1, dtype=torch.float32)
    _quantize[(triton.cdiv(rows, launch.rows),)](
        x.contiguous(), out, scale, rows, ACTIVATION=GELU_TANH if gelu else -1,
        APPROXIMATE=launch.approximate and x.is_cuda, WIDTH=width, BLOCK=triton.next_power_of_2(width),
        ROWS=launch.rows, num_warps=launch.warps,
    )  # fmt: skip
    return out, scale


def product(
    x: Tensor, x_scale: Tensor, weight: Tensor, w_scale: Tensor, bias: Tensor | None, tile: Tile, dtype: torch.dtype,
    gelu: bool = False, bound: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A linear layer of x with a scale for each row of both, and GELU. With a `bound` the result is e4m3 in its units."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    (rows, depth), width = x.shape, len(weight)
    out = x.new_empty(rows, width, dtype=dtype if bound is None else FP8)
    shapes = ((x, [tile.m, tile.k]), (weight, [tile.n, tile.k]), (out, [tile.m, tile.n]))
    tiles = triton.cdiv(rows, tile.m) * triton.cdiv(width, tile.n)
    _product[(min(tiles, tile.each * multiprocessors(x.device)) if tile.each else tiles,)](
        *(TensorDescriptor.from_tensor(*pair) for pair in shapes), x_scale, w_scale, x_scale if bias is None else bias,
        x_scale if bound is None else bound, rows, width, depth, BIAS=bias is not None,
        ACTIVATION=GELU_TANH if gelu else -1, APPROXIMATE=tile.approximate and x.is_cuda, BOUND=bound is not None,
        BLOCK_M=tile.m, BLOCK_N=tile.n, BLOCK_K=tile.k, num_stages=tile.stages, num_warps=tile.warps,
    )  # fmt: skip
    return out
