"""A feed-forward network, the residual sum after it and the norm of that sum as one kernel, for inference on a Hopper GPU.

The hidden states never leave the chip: a program keeps its inputs in shared memory and its sums in registers, and goes
through the hidden units in chunks.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from heed.kernels.linear_norm import Tile, column_block, load_rows, load_vector, store_sum_and_norm

TILE = Tile(rows=128, depth=32, stages=2, warps=8)  # more does not fit into shared memory


@triton.jit
def gelu(x):
    """GELU without erf: max(x, 0) - |x| Q(|x|), where Q, the upper tail of the normal distribution, is 2^polynomial.

    The relative error is 8e-5 at most where the result is above 1e-4, a twentieth of the rounding of bfloat16.
    """
    a = tl.abs(x)
    power = -0.0003294586786068976 * a + 0.005914297886192799
    power = power * a - 0.048529114574193954
    power = power * a - 0.4637289345264435
    power = power * a - 1.1493549346923828
    power = power * a - 1.0001087188720703
    return tl.maximum(x, 0.0) - a * tl.exp2(power)


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    """The codes are those of kernels/linear.py."""
    if ACTIVATION < 0:
        return x
    elif ACTIVATION == 0:
        return tl.maximum(x, 0.0)
    elif ACTIVATION == 1:
        return gelu(x)
    elif ACTIVATION == 2:
        return x * tl.sigmoid(x)
    else:
        return x * tl.sigmoid(1.5957691216057308 * x * (1 + 0.044715 * x * x))


@triton.jit
def _feed_forward(
    x_desc, t_ptr, up_desc, up_bias_ptr, down_desc, down_bias_ptr, weight_ptr, bias_ptr, total_desc, normed_desc, rows,
    eps, ACTIVATION: tl.constexpr, WIDTH: tl.constexpr, HIDDEN: tl.constexpr, BLOCK: tl.constexpr,
    BLOCK_M: tl.constexpr, CHUNK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Compute total = t + down(activation(up(x))) and normed = norm(total), in blocks as in linear_norm."""
    BLOCKS: tl.constexpr = WIDTH // BLOCK
    first = tl.program_id(0) * BLOCK_M
    row = first + tl.arange(0, BLOCK_M)
    x0 = x_desc.load([first, 0])
    t0 = load_rows(t_ptr, row, rows, 0, WIDTH, BLOCK) + load_vector(down_bias_ptr, 0, BLOCK)
    x1, x2, t1, t2 = x0, x0, t0, t0
    if BLOCKS > 1:
        x1 = x_desc.load([first, BLOCK])
        t1 = load_rows(t_ptr, row, rows, BLOCK, WIDTH, BLOCK) + load_vector(down_bias_ptr, BLOCK, BLOCK)
    if BLOCKS > 2:
        x2 = x_desc.load([first, 2 * BLOCK])
        t2 = load_rows(t_ptr, row, rows, 2 * BLOCK, WIDTH, BLOCK) + load_vector(down_bias_ptr, 2 * BLOCK, BLOCK)
    for unit in tl.range(0, HIDDEN, CHUNK, num_stages=STAGES):
        h = tl.dot(x0, up_desc.load([unit, 0]).T)
        if BLOCKS > 1:
            h = tl.dot(x1, up_desc.load([unit, BLOCK]).T, h)
        if BLOCKS > 2:
            h = tl.dot(x2, up_desc.load([unit, 2 * BLOCK]).T, h)
        h += tl.load(up_bias_ptr + unit + tl.arange(0, CHUNK)).to(tl.float32)[None, :]
        h = activate(h, ACTIVATION).to(x0.dtype)
        t0 = tl.dot(h, down_desc.load([0, unit]).T, t0)
        if BLOCKS > 1:
            t1 = tl.dot(h, down_desc.load([BLOCK, unit]).T, t1)
        if BLOCKS > 2:
            t2 = tl.dot(h, down_desc.load([2 * BLOCK, unit]).T, t2)
    store_sum_and_norm(t0, t1, t2, total_desc, weight_ptr, bias_ptr, normed_desc, first, eps, WIDTH, BLOCK, True)


def feed_forward_norm(
    x: Tensor,
    up: nn.Linear,
    activation: int,
    down: nn.Linear,
    total: Tensor,
    norm: nn.LayerNorm,
    tile: Tile | None = None,
) -> tuple[Tensor, Tensor]:
    """The sum total + down(activation(up(x))), and its layer norm, without gradients."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    tile = tile or TILE
    (rows, width), hidden, block = x.shape, up.weight.shape[0], column_block(x.shape[1])
    out, normed = torch.empty_like(x), torch.empty_like(x)
    shapes = ((x, tile.rows, block), (up.weight, tile.depth, block), (down.weight, block, tile.depth))
    x_desc, up_desc, down_desc = (TensorDescriptor.from_tensor(one, [a, b]) for one, a, b in shapes)
    out_descs = (TensorDescriptor.from_tensor(one, [tile.rows, block]) for one in (out, normed))
    _feed_forward[(triton.cdiv(rows, tile.rows),)](
        x_desc, total, up_desc, up.bias, down_desc, down.bias, norm.weight, norm.bias, *out_descs, rows, norm.eps,
        ACTIVATION=activation, WIDTH=width, HIDDEN=hidden, BLOCK=block, CHUNK=tile.depth, **tile.launch(),
    )  # fmt: skip
    return out, normed
