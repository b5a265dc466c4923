"""A linear layer, the residual sum after it and the norm of that sum as one kernel, for inference on a Hopper GPU.

A program computes whole rows, so that it can norm them before they leave the chip.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from heed.kernels.feed_forward import has_tma


@triton.jit
def load_vector(ptr, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    """A part of a bias or weight, as a row in float32."""
    return tl.load(ptr + FIRST + tl.arange(0, BLOCK)).to(tl.float32)[None, :]


@triton.jit
def load_rows(ptr, row, rows, FIRST: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """BLOCK columns of some rows in float32; zeros beyond the last row."""
    offsets = row[:, None].to(tl.int64) * WIDTH + FIRST + tl.arange(0, BLOCK)[None, :]
    return tl.load(ptr + offsets, mask=(row < rows)[:, None], other=0.0).to(tl.float32)


@triton.jit
def moments(x0, x1, x2, eps, WIDTH: tl.constexpr, BLOCKS: tl.constexpr):
    """The mean of rows in BLOCKS parts, and one over their standard deviation, in two passes."""
    total = tl.sum(x0, axis=1)
    if BLOCKS > 1:
        total += tl.sum(x1, axis=1)
    if BLOCKS > 2:
        total += tl.sum(x2, axis=1)
    mean = (total / WIDTH)[:, None]
    squares = tl.sum((x0 - mean) * (x0 - mean), axis=1)
    if BLOCKS > 1:
        squares += tl.sum((x1 - mean) * (x1 - mean), axis=1)
    if BLOCKS > 2:
        squares += tl.sum((x2 - mean) * (x2 - mean), axis=1)
    return mean, (1 / tl.sqrt(squares / WIDTH + eps))[:, None]


@triton.jit
def scale(x, mean, rstd, weight_ptr, bias_ptr, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    """The last step of layer norm."""
    return (x - mean) * rstd * load_vector(weight_ptr, FIRST, BLOCK) + load_vector(bias_ptr, FIRST, BLOCK)


@triton.jit
def store_sum_and_norm(
    x0, x1, x2, total_desc, weight_ptr, bias_ptr, normed_desc, first, eps, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
    TOTAL: tl.constexpr,
):  # fmt: skip
    """Store the layer norm of rows in blocks of columns, and with TOTAL themselves."""
    BLOCKS: tl.constexpr = WIDTH // BLOCK
    dtype: tl.constexpr = total_desc.dtype
    mean, rstd = moments(x0, x1, x2, eps, WIDTH, BLOCKS)
    if TOTAL:
        total_desc.store([first, 0], x0.to(dtype))
    normed_desc.store([first, 0], scale(x0, mean, rstd, weight_ptr, bias_ptr, 0, BLOCK).to(dtype))
    if BLOCKS > 1:
        if TOTAL:
            total_desc.store([first, BLOCK], x1.to(dtype))
        normed_desc.store([first, BLOCK], scale(x1, mean, rstd, weight_ptr, bias_ptr, BLOCK, BLOCK).to(dtype))
    if BLOCKS > 2:
        if TOTAL:
            total_desc.store([first, 2 * BLOCK], x2.to(dtype))
        normed_desc.store([first, 2 * BLOCK], scale(x2, mean, rstd, weight_ptr, bias_ptr, 2 * BLOCK, BLOCK).to(dtype))


@triton.jit
def _linear_norm(
    y_desc, w_desc, y_bias_ptr, x_ptr, weight_ptr, bias_ptr, total_desc, normed_desc, rows, eps, DEPTH: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TOTAL: tl.constexpr, PERIOD: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Compute total = x + y @ w.T + y_bias and normed = norm(total).

    The width is one to three blocks of BLOCK columns, since the size of a tile must be a power of two. PERIOD: x has
    only that many rows, which are repeated; 0: as many as y.
    """
    BLOCKS: tl.constexpr = WIDTH // BLOCK
    first = tl.program_id(0) * BLOCK_M
    row = first + tl.arange(0, BLOCK_M)
    if PERIOD:
        row %= PERIOD
    t0 = load_rows(x_ptr, row, rows, 0, WIDTH, BLOCK) + load_vector(y_bias_ptr, 0, BLOCK)
    t1, t2 = t0, t0
    if BLOCKS > 1:
        t1 = load_rows(x_ptr, row, rows, BLOCK, WIDTH, BLOCK) + load_vector(y_bias_ptr, BLOCK, BLOCK)
    if BLOCKS > 2:
        t2 = load_rows(x_ptr, row, rows, 2 * BLOCK, WIDTH, BLOCK) + load_vector(y_bias_ptr, 2 * BLOCK, BLOCK)
    for k in tl.range(0, DEPTH, BLOCK_K, num_stages=STAGES):
        y = y_desc.load([first, k])
        t0 = tl.dot(y, w_desc.load([0, k]).T, t0)
        if BLOCKS > 1:
            t1 = tl.dot(y, w_desc.load([BLOCK, k]).T, t1)
        if BLOCKS > 2:
            t2 = tl.dot(y, w_desc.load([2 * BLOCK, k]).T, t2)
    store_sum_and_norm(t0, t1, t2, total_desc, weight_ptr, bias_ptr, normed_desc, first, eps, WIDTH, BLOCK, TOTAL)


@dataclass(frozen=True)
class Tile:
    """Rows of a program, how many columns of y or hidden units it takes at a time, and how it is launched.

    `registers`: the most per thread, so that two programs fit into a multiprocessor.
    """

    rows: int
    depth: int
    stages: int
    warps: int
    registers: int | None = None

    def launch(self) -> dict[str, int]:
        limit = {} if self.registers is None else {"maxnreg": self.registers}
        return {
            "BLOCK_M": self.rows,
            "STAGES": self.stages,
            "num_stages": self.stages,
            "num_warps": self.warps,
            **limit,
        }


# A short product is bound by memory: two programs per multiprocessor overlap. A long one reads its weights less often.
SHORT_TILE, LONG_TILE = Tile(rows=64, depth=64, stages=2, warps=4), Tile(rows=128, depth=64, stages=3, warps=8)
SHORT = 512  # columns of y


def column_block(width: int) -> int:
    """The columns of a block, a power of two, such that one to three blocks are the width; 0 if there is none."""
    block = width & -width
    return block if block >= 16 and width <= 384 and width // block <= 3 else 0


def supports(weight: Tensor) -> bool:
    """Whether the GPU has TMA, whole rows fit into the registers of a program, and TMA can load the weights."""
    aligned = weight.data_ptr() % 16 == 0 and weight.shape[1] * weight.itemsize % 16 == 0
    return has_tma(weight) and aligned and bool(column_block(weight.shape[0]))


def linear_norm(
    y: Tensor, weight: Tensor, bias: Tensor, x: Tensor, norm: nn.LayerNorm, *, total: bool = True,
    tile: Tile | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The sum x + y @ weight.T + bias, and its layer norm, without gradients. Without `total` the first is not computed.

    x may have fewer rows than y, which are then repeated.
    """
    from triton.tools.tensor_descriptor import TensorDescriptor

    (rows, depth), width, block = y.shape, x.shape[1], column_block(x.shape[1])
    tile = tile or (SHORT_TILE if depth <= SHORT else LONG_TILE)
    normed = y.new_empty(rows, width)
    out = torch.empty_like(normed) if total else normed
    shapes = ((y, tile.rows, tile.depth), (weight, block, tile.depth), (out, tile.rows, block), (normed, tile.rows, block))  # fmt: skip
    y_desc, w_desc, *out_descs = (TensorDescriptor.from_tensor(one, [a, b]) for one, a, b in shapes)
    _linear_norm[(triton.cdiv(rows, tile.rows),)](
        y_desc, w_desc, bias, x, norm.weight, norm.bias, *out_descs, rows, norm.eps, DEPTH=depth, WIDTH=width,
        BLOCK=block, TOTAL=total, PERIOD=0 if len(x) == rows else len(x), BLOCK_K=tile.depth, **tile.launch(),
    )  # fmt: skip
    return out, normed
