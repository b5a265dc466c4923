"""What stands between the matrix products of a layer, each in one pass over memory: written in Triton, for training on a GPU.

A sum, its dropout and its norm are one kernel.
What dropout keeps is told by a hash of the place and a seed, so the way back asks again instead of remembering.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from heed.nn.places import claim
from heed.nn.sums import folded


@triton.jit
def kept(seed_at, places, share):
    """Whether dropout keeps what stands at these places, of which it takes `share` / 2^24."""
    one, other = tl.load(seed_at).to(tl.uint32), tl.load(seed_at + 1).to(tl.uint32)
    h = (places.to(tl.uint32) ^ one) * 0x9E3779B1
    h = (h ^ (h >> 15) ^ other) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    return ((h ^ (h >> 16)) >> 8).to(tl.int32) >= share


def chance(dropout: float, device: torch.device) -> tuple[Tensor | None, int, float]:
    """A seed from torch's own chance, and `dropout` as `kept` takes it and as what is kept is multiplied by."""
    if not dropout:
        return None, 0, 1.0
    seed = SEEDS.pop() if SEEDS else torch.randint(0, 2**31 - 1, (2,), dtype=torch.int32, device=device)
    return seed, int(dropout * 2**24), 1 / (1 - dropout)


SEEDS: list[Tensor] = []  # drawn, and not used yet


@contextmanager
def one_draw(device: torch.device, many: int = 256) -> Iterator[None]:
    """Inside this block the first seeds are of one draw, by a single kernel; four numbers each, so that all begin alike in memory."""
    drawn = torch.randint(0, 2**31 - 1, (many, 4), dtype=torch.int32, device=device)
    SEEDS.extend(reversed(drawn.unbind()))
    try:
        yield
    finally:
        SEEDS.clear()


@triton.jit
def _normed(x, weight, bias, there, WIDTH: tl.constexpr, eps):
    """Rows of x with mean 0 and variance 1, before and after weight and bias; and one over its spread."""
    x = x - (tl.sum(x, axis=1) / WIDTH)[:, None]
    x = tl.where(there, x, 0.0)
    over = 1 / tl.sqrt(tl.sum(x * x, axis=1) / WIDTH + eps)
    x = x * over[:, None]
    return x, x * weight[None, :] + bias[None, :], over


@triton.jit
def _norm_forward(
    x_at, y_at, offset_at, weight_at, bias_at, sum_at, out_at, seed_at, share, grown, rows, eps,
    ADD: tl.constexpr, DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    places = row[:, None] * WIDTH + column[None, :]
    exists = column < WIDTH
    there = (row < rows)[:, None] & exists[None, :]
    x = tl.load(x_at + places, mask=there, other=0.0).to(tl.float32)
    if ADD:
        y = tl.load(y_at + places, mask=there, other=0.0).to(tl.float32)
        y += tl.load(offset_at + column, mask=exists, other=0.0).to(tl.float32)[None, :]
        if DROP:
            y = tl.where(kept(seed_at, places, share), y * grown, 0.0)
        x = (x + y).to(sum_at.dtype.element_ty)
        tl.store(sum_at + places, x, mask=there)
        x = x.to(tl.float32)
    weight = tl.load(weight_at + column, mask=exists, other=0.0).to(tl.float32)
    bias = tl.load(bias_at + column, mask=exists, other=0.0).to(tl.float32)
    _, out, _ = _normed(x, weight, bias, there, WIDTH, eps)
    tl.store(out_at + places, out.to(out_at.dtype.element_ty), mask=there)


@triton.jit
def _norm_backward(
    d_at, more_at, sum_at, weight_at, dx_at, dy_at, parts_at, seed_at, share, grown, rows, eps,
    ADD: tl.constexpr, MORE: tl.constexpr, DROP: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    program, programs, column = tl.program_id(0), tl.num_programs(0), tl.arange(0, BLOCK)
    exists = column < WIDTH
    weight = tl.load(weight_at + column, mask=exists, other=0.0).to(tl.float32)
    to_weight, to_bias = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    to_offset = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(program * ROWS, rows, programs * ROWS):
        row = first + tl.arange(0, ROWS)
        places = row[:, None] * WIDTH + column[None, :]
        there = (row < rows)[:, None] & exists[None, :]
        x = tl.load(sum_at + places, mask=there, other=0.0).to(tl.float32)
        d = tl.load(d_at + places, mask=there, other=0.0).to(tl.float32)
        x, _, over = _normed(x, weight, weight, there, WIDTH, eps)
        to_weight += d * x
        to_bias += d
        d = d * weight[None, :]
        along, mean = tl.sum(d * x, axis=1) / WIDTH, tl.sum(d, axis=1) / WIDTH
        d = (d - mean[:, None] - x * along[:, None]) * over[:, None]
        if MORE:
            d += tl.load(more_at + places, mask=there, other=0.0).to(tl.float32)
        d = tl.where(there, d, 0.0)
        tl.store(dx_at + places, d.to(dx_at.dtype.element_ty), mask=there)
        if ADD:  # to y apart from x, also where both are the same: what is added to one must not reach the other
            if DROP:
                d = tl.where(kept(seed_at, places, share), d * grown, 0.0)
            tl.store(dy_at + places, d.to(dy_at.dtype.element_ty), mask=there)
            to_offset += d
    own = parts_at + program * WIDTH + column
    tl.store(own, tl.sum(to_weight, axis=0), mask=exists)
    tl.store(own + programs * WIDTH, tl.sum(to_bias, axis=0), mask=exists)
    if ADD:
        tl.store(own + 2 * programs * WIDTH, tl.sum(to_offset, axis=0), mask=exists)


def _tile(width: int) -> dict[str, int]:
    block = triton.next_power_of_2(width)
    return {"WIDTH": width, "BLOCK": block, "ROWS": max(1, 2048 // block), "num_warps": 4 if block <= 2048 else 8}


def _tile_back(width: int) -> tuple[dict[str, int], int]:
    """A row for each warp, or for two: its sums need no others. And for how many programs."""
    block = triton.next_power_of_2(width)
    tile = {"WIDTH": width, "BLOCK": block, "ROWS": 1, "num_warps": max(1, block // 512)}
    return tile, 2112 if block <= 512 else 1056


def programs(rows: int, each: int, most: int) -> int:
    """How many share the rows."""
    return max(1, min(most, triton.cdiv(rows, each)))


class _SumNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x, y, offset, weight, bias, eps: float, dropout: float):
        seed, share, grown = chance(dropout, x.device)
        total, out, tile = torch.empty_like(x), torch.empty_like(x), _tile(x.shape[1])
        _norm_forward[(triton.cdiv(len(x), tile["ROWS"]),)](
            x, y, offset, weight, bias, total, out, seed if seed is not None else x, share, grown, len(x), eps,
            ADD=True, DROP=seed is not None, **tile,
        )  # fmt: skip
        ctx.save_for_backward(total, weight, seed)
        ctx.rest, ctx.memory = (share, grown, eps), [claim(own) for own in (weight, bias, offset)]
        ctx.set_materialize_grads(False)
        return total, out

    @staticmethod
    def backward(ctx: Any, more, d):
        total, weight, seed = ctx.saved_tensors
        share, grown, eps = ctx.rest
        d = torch.zeros_like(total) if d is None else d.contiguous()
        dx, (tile, most) = torch.empty_like(total), _tile_back(total.shape[1])
        dy = torch.empty_like(total)
        number = programs(len(total), tile["ROWS"], most)
        parts = total.new_empty(3, number, total.shape[1], dtype=torch.float32)
        _norm_backward[(number,)](
            d, d if more is None else more.contiguous(), total, weight, dx, dy, parts, d if seed is None else seed, share,
            grown, len(total), eps, ADD=True, MORE=more is not None, DROP=seed is not None, **tile,
        )  # fmt: skip
        to_weight, to_bias, to_offset = folded(parts, ctx.memory)
        return dx, dy, to_offset, to_weight, to_bias, None, None


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x, weight, bias, eps: float):
        out, tile = torch.empty_like(x), _tile(x.shape[1])
        _norm_forward[(triton.cdiv(len(x), tile["ROWS"]),)](
            x, x, x, weight, bias, x, out, x, 0, 1.0, len(x), eps, ADD=False, DROP=False, **tile
        )
        ctx.save_for_backward(x, weight)
        ctx.eps, ctx.memory = eps, [claim(own) for own in (weight, bias)]
        return out

    @staticmethod
    def backward(ctx: Any, d):
        x, weight = ctx.saved_tensors
        d, dx, (tile, most) = d.contiguous(), torch.empty_like(x), _tile_back(x.shape[1])
        number = programs(len(x), tile["ROWS"], most)
        parts = x.new_empty(2, number, x.shape[1], dtype=torch.float32)
        _norm_backward[(number,)](
            d, d, x, weight, dx, dx, parts, d, 0, 1.0, len(x), ctx.eps, ADD=False, MORE=False, DROP=False, **tile
        )
        to_weight, to_bias = folded(parts, ctx.memory)
        return dx, to_weight, to_bias, None


def norm(x: Tensor, part: torch.nn.LayerNorm) -> Tensor:
    """Rows normed."""
    return _Norm.apply(x.contiguous(), part.weight, part.bias, part.eps)


def sum_norm(
    x: Tensor, y: Tensor, offset: Tensor, part: torch.nn.LayerNorm, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The sum x + dropout(y + offset), and that normed."""
    return _SumNorm.apply(x.contiguous(), y.contiguous(), offset, part.weight, part.bias, part.eps, dropout)
