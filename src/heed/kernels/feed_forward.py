"""A feed-forward network with ReLU, forward and back, for training on a GPU: the way back through its last layer is one product.

d @ down.weight, the slope of the activation, what its dropout has left out and the sums for the bias before it: each tile
of the product does all of that before it is written. So the gradient between the two layers is written once and never read
for it. (With ReLU a slope is told by what came out, and so is what dropout has left out.)
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from heed.kernels.gradient_buffers import claim
from heed.kernels.linear import RELU, back, bent, to_weight
from heed.kernels.reduce import folded
from heed.kernels.residual_norm import chance

# `each`: programs a multiprocessor; with two of them the end of one tile hides behind the product of another
TILE = {"tall": 128, "wide": 128, "deep": 64, "group": 8, "stages": 3, "warps": 4, "each": 2}


@triton.jit
def _place(number, down, across, GROUP: tl.constexpr):
    """Which tile is whose: by GROUP rows of tiles, so that what neighbours read is in the second cache."""
    each = GROUP * across
    first = number // each * GROUP
    tall = tl.minimum(down - first, GROUP)
    return first + number % each % tall, number % each // tall


@triton.jit
def _ended(total, y_by, out_by, parts_at, grown, i, j, WIDTH, TALL: tl.constexpr, WIDE: tl.constexpr):
    """What is left of a tile is written, and the sums of its columns."""
    total = tl.where(y_by.load([i * TALL, j * WIDE]) > 0, total * grown, 0.0)
    out_by.store([i * TALL, j * WIDE], total.to(out_by.dtype))
    column = j * WIDE + tl.arange(0, WIDE)
    tl.store(parts_at + i * WIDTH + column, tl.sum(total, axis=0), mask=column < WIDTH)


@triton.jit
def _backward(
    d_by, w_by, y_by, out_by, parts_at, grown, rows, WIDTH, DEPTH,
    TALL: tl.constexpr, WIDE: tl.constexpr, DEEP: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Tile after tile of (d @ w) where y > 0, times `grown`, by the chip's copy engine; each is written in two halves."""
    down, across = tl.cdiv(rows, TALL), tl.cdiv(WIDTH, WIDE)
    HALF: tl.constexpr = WIDE // 2
    for number in tl.range(tl.program_id(0), down * across, tl.num_programs(0)):
        i, j = _place(number, down, across, GROUP)
        total = tl.zeros((TALL, WIDE), tl.float32)
        for first in range(0, DEPTH, DEEP):
            total = tl.dot(d_by.load([i * TALL, first]), w_by.load([first, j * WIDE]), total)
        left, right = tl.split(tl.permute(tl.reshape(total, (TALL, 2, HALF)), (0, 2, 1)))
        _ended(left, y_by, out_by, parts_at, grown, i, 2 * j, WIDTH, TALL, HALF)
        _ended(right, y_by, out_by, parts_at, grown, i, 2 * j + 1, WIDTH, TALL, HALF)


def engine(x: Tensor) -> bool:
    """Whether the card that x is on has a copy engine, and room for tiles; later ones were not tried."""
    return not x.is_cuda or (not torch.version.hip and torch.cuda.get_device_capability(x.device)[0] == 9)


def takes(down: Tensor) -> bool:
    """Whether the card has that engine and room for the tiles, and all rows begin at multiples of 16 bytes, as it wants."""
    return engine(down) and down.data_ptr() % 16 == 0 and not any(size * down.itemsize % 16 for size in down.shape)


def through(d: Tensor, down: Tensor, y: Tensor, grown: float = 1.0) -> tuple[Tensor, Tensor]:
    """(d @ down) where y > 0, times `grown`; and the sums of its columns, in parts (tiles, width)."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    (rows, depth), width = d.shape, down.shape[1]
    tall, wide, deep = TILE["tall"], TILE["wide"], TILE["deep"]
    out, tiles = torch.empty_like(y), triton.cdiv(rows, tall)
    parts = d.new_empty(tiles, width, dtype=torch.float32)
    shapes = ((d, [tall, deep]), (down, [deep, wide]), (y, [tall, wide // 2]), (out, [tall, wide // 2]))
    programs = min(tiles * triton.cdiv(width, wide), TILE["each"] * multiprocessors(d.device))
    _backward[(programs,)](
        *(TensorDescriptor.from_tensor(own, shape) for own, shape in shapes), parts, grown, rows, width, depth,
        TALL=tall, WIDE=wide, DEEP=deep, GROUP=TILE["group"], num_stages=TILE["stages"], num_warps=TILE["warps"],
    )  # fmt: skip
    return out, parts


def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


class _Hidden(torch.autograd.Function):
    """Both layers, but for the last bias; and the input again for whoever else needs it."""

    @staticmethod
    def forward(ctx: Any, x, up, bias, down, dropout: float):
        seed, share, grown = chance(dropout, x.device)
        y = torch._addmm_activation(bias, x, up.T)
        if seed is not None:
            y = bent(y, RELU, seed, share, grown)
        ctx.save_for_backward(x, up, y, down)
        ctx.grown, ctx.memory = grown, [claim(own) for own in (up, bias, down)]
        ctx.set_materialize_grads(False)
        return y @ down.T, x

    @staticmethod
    def backward(ctx: Any, d, more):
        x, up, y, down = ctx.saved_tensors
        d = d.contiguous()
        inner, parts = through(d, down, y, ctx.grown)
        to_down, to_up = to_weight(d, y, ctx.memory[2]), to_weight(inner, x, ctx.memory[0])
        (to_bias,) = folded(parts[None], ctx.memory[1:2], d.dtype)
        return back(inner, up, more), to_up, to_bias, to_down, None


def hidden(x: Tensor, up: torch.nn.Linear, down: torch.nn.Linear, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """down(dropout(relu(up(x)))) without the last bias; and x: use that one from there on."""
    return _Hidden.apply(x, up.weight, up.bias, down.weight, dropout)
