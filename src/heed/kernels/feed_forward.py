"""A feed-forward network with ReLU for training on a GPU, with a fused backward pass.

One kernel computes d @ down.weight and, before it writes a tile, applies the gradient of ReLU and dropout and sums the
columns for the bias gradient: the hidden gradient is written once and not read again. The hidden activations alone tell
the derivative of ReLU and what dropout has dropped.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from heed.kernels.gradient_buffers import claim_buffer
from heed.kernels.linear import RELU, activate, input_gradient, weight_gradient
from heed.kernels.reduce import column_sums
from heed.kernels.residual_norm import draw_seed

# Two programs per multiprocessor: the epilogue of one tile overlaps with the product of another.
TILE = {"block_m": 128, "block_n": 128, "block_k": 64, "group_m": 8, "stages": 3, "warps": 4, "programs_per_sm": 2}


@triton.jit
def tile_index(number, down, across, GROUP_M: tl.constexpr):
    """Row and column of a tile, in groups of GROUP_M rows: neighbouring programs share inputs in the L2 cache."""
    group_tiles = GROUP_M * across
    first = number // group_tiles * GROUP_M
    group_rows = tl.minimum(down - first, GROUP_M)
    return first + number % group_tiles % group_rows, number % group_tiles // group_rows


@triton.jit
def _store_tile(x, y_desc, out_desc, partials_ptr, keep_scale, i, j, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Apply the gradient of ReLU and dropout; store the tile and its column sums."""
    x = tl.where(y_desc.load([i * BLOCK_M, j * BLOCK_N]) > 0, x * keep_scale, 0.0)
    out_desc.store([i * BLOCK_M, j * BLOCK_N], x.to(out_desc.dtype))
    column = j * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(partials_ptr + i * N + column, tl.sum(x, axis=0), mask=column < N)


@triton.jit
def _feed_forward_backward(
    d_desc, w_desc, y_desc, out_desc, partials_ptr, keep_scale, rows, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """(d @ w) where y > 0, times `keep_scale`: a persistent kernel with TMA that stores tiles in two halves."""
    down, across = tl.cdiv(rows, BLOCK_M), tl.cdiv(N, BLOCK_N)
    HALF: tl.constexpr = BLOCK_N // 2
    for number in tl.range(tl.program_id(0), down * across, tl.num_programs(0)):
        i, j = tile_index(number, down, across, GROUP_M)
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for first in range(0, K, BLOCK_K):
            total = tl.dot(d_desc.load([i * BLOCK_M, first]), w_desc.load([first, j * BLOCK_N]), total)
        left, right = tl.split(tl.permute(tl.reshape(total, (BLOCK_M, 2, HALF)), (0, 2, 1)))
        _store_tile(left, y_desc, out_desc, partials_ptr, keep_scale, i, 2 * j, N, BLOCK_M, HALF)
        _store_tile(right, y_desc, out_desc, partials_ptr, keep_scale, i, 2 * j + 1, N, BLOCK_M, HALF)


def has_tma(x: Tensor) -> bool:
    """Whether the GPU of x has TMA and enough shared memory for the tiles. Newer GPUs than Hopper were not tried."""
    return not x.is_cuda or (not torch.version.hip and torch.cuda.get_device_capability(x.device)[0] == 9)


def supports(down: Tensor) -> bool:
    """Whether the GPU has TMA and all rows start at multiples of 16 bytes, as TMA requires."""
    return has_tma(down) and down.data_ptr() % 16 == 0 and not any(size * down.itemsize % 16 for size in down.shape)


def hidden_gradient(d: Tensor, down: Tensor, y: Tensor, keep_scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """(d @ down) where y > 0, times `keep_scale`; and its column sums, as partial sums (tiles, width)."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    (rows, depth), width = d.shape, down.shape[1]
    block_m, block_n, block_k = TILE["block_m"], TILE["block_n"], TILE["block_k"]
    out, tiles = torch.empty_like(y), triton.cdiv(rows, block_m)
    partials = d.new_empty(tiles, width, dtype=torch.float32)
    shapes = ((d, [block_m, block_k]), (down, [block_k, block_n]), *((x, [block_m, block_n // 2]) for x in (y, out)))
    programs = min(tiles * triton.cdiv(width, block_n), TILE["programs_per_sm"] * multiprocessors(d.device))
    _feed_forward_backward[(programs,)](
        *(TensorDescriptor.from_tensor(*pair) for pair in shapes), partials, keep_scale, rows, width, depth,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=TILE["group_m"],
        num_stages=TILE["stages"], num_warps=TILE["warps"],
    )  # fmt: skip
    return out, partials


def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


class _FeedForward(torch.autograd.Function):
    """Both layers without the last bias; and the input again, as in kernels/linear.py."""

    @staticmethod
    def forward(ctx: Any, x, up, bias, down, dropout: float):
        seed, threshold, keep_scale = draw_seed(dropout, x.device)
        y = torch._addmm_activation(bias, x, up.T)
        if seed is not None:
            y = activate(y, RELU, seed, threshold, keep_scale)
        ctx.save_for_backward(x, up, y, down)
        ctx.keep_scale, ctx.buffers = keep_scale, [claim_buffer(part) for part in (up, bias, down)]
        ctx.set_materialize_grads(False)
        return y @ down.T, x

    @staticmethod
    def backward(ctx: Any, d, x_grad):
        x, up, y, down = ctx.saved_tensors
        d = d.contiguous()
        pre_grad, partials = hidden_gradient(d, down, y, ctx.keep_scale)
        down_grad, up_grad = weight_gradient(d, y, ctx.buffers[2]), weight_gradient(pre_grad, x, ctx.buffers[0])
        (bias_grad,) = column_sums(partials[None], ctx.buffers[1:2], d.dtype)
        return input_gradient(pre_grad, up, x_grad), up_grad, bias_grad, down_grad, None


def feed_forward(x: Tensor, up: torch.nn.Linear, down: torch.nn.Linear, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """down(dropout(relu(up(x)))) without the last bias, and x: later uses must take the returned one."""
    return _FeedForward.apply(x, up.weight, up.bias, down.weight, dropout)
