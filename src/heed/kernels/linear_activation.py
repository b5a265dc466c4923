"""A linear layer, with its activation if there is one, as one kernel, for inference on a Hopper GPU."""

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from heed.kernels.feed_forward import multiprocessors, tile_index
from heed.kernels.fused_feed_forward import activate


@triton.jit
def _store(x, bias_ptr, out_desc, i, j, N, ACTIVATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    column = j * BLOCK_N + tl.arange(0, BLOCK_N)
    x += tl.load(bias_ptr + column, mask=column < N, other=0.0).to(tl.float32)[None, :]
    out_desc.store([i * BLOCK_M, j * BLOCK_N], activate(x, ACTIVATION).to(out_desc.dtype))


@triton.jit
def _linear_activation(
    x_desc, w_desc, bias_ptr, out_desc, rows, N, K, ACTIVATION: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """The activation of x @ w.T + bias: a persistent kernel that stores tiles in two halves."""
    down, across = tl.cdiv(rows, BLOCK_M), tl.cdiv(N, BLOCK_N)
    HALF: tl.constexpr = BLOCK_N // 2
    for number in tl.range(tl.program_id(0), down * across, tl.num_programs(0)):
        i, j = tile_index(number, down, across, GROUP_M)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(0, K, BLOCK_K):
            total = tl.dot(x_desc.load([i * BLOCK_M, first]), w_desc.load([j * BLOCK_N, first]).T, total)
        left, right = tl.split(tl.permute(tl.reshape(total, (BLOCK_M, 2, HALF)), (0, 2, 1)))
        _store(left, bias_ptr, out_desc, i, 2 * j, N, ACTIVATION, BLOCK_M, HALF)
        _store(right, bias_ptr, out_desc, i, 2 * j + 1, N, ACTIVATION, BLOCK_M, HALF)


@dataclass(frozen=True)
class ProductTile:
    """Rows, columns and depth of a tile, and how it is launched; neighbouring programs share `group` tiles of rows."""

    rows: int
    columns: int
    depth: int
    stages: int
    warps: int
    programs_per_sm: int
    group: int = 8


# Two programs per multiprocessor: the activation of one tile overlaps with the product of another.
TILE = ProductTile(128, 128, 64, stages=3, warps=4, programs_per_sm=2)


def linear_activation(
    x: Tensor, weight: Tensor, bias: Tensor, activation: int, tile: ProductTile | None = None
) -> Tensor:
    """The activation of x @ weight.T + bias, without gradients; with NO_ACTIVATION the product itself."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    tile = tile or TILE
    (rows, depth), width = x.shape, len(weight)
    out = x.new_empty(rows, width)
    shapes = ((x, tile.rows, tile.depth), (weight, tile.columns, tile.depth), (out, tile.rows, tile.columns // 2))
    x_desc, w_desc, out_desc = (TensorDescriptor.from_tensor(one, [a, b]) for one, a, b in shapes)
    tiles = triton.cdiv(rows, tile.rows) * triton.cdiv(width, tile.columns)
    _linear_activation[(min(tiles, tile.programs_per_sm * multiprocessors(x.device)),)](
        x_desc, w_desc, bias, out_desc, rows, width, depth, ACTIVATION=activation, BLOCK_M=tile.rows,
        BLOCK_N=tile.columns, BLOCK_K=tile.depth, GROUP_M=tile.group, num_stages=tile.stages, num_warps=tile.warps,
    )  # fmt: skip
    return out
