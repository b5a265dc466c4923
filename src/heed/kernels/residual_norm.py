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

from heed.kernels.gradient_buffers import claim
from heed.kernels.reduce import folded


@triton.jit
def kept(seed_at, places, share):
    """Whether dropout keeps what stands at these places, of which it takes `share` / 2^24."""
    one, other = seeds(seed_at)
    return spared(one, other, places, share)


@triton.jit
def seeds(seed_at):
    return tl.load(seed_at).to(tl.uint32), tl.load(seed_at + 1).to(tl.uint32)


@triton.jit
def spared(one, other, places, share):
    """What `kept` says, where the seeds have been read: a hash is at least `share` / 2^24 of 2^32."""
    h = (places.to(tl.uint32) ^ one) * 0x9E3779B1
    h = (h ^ (h >> 15) ^ other) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    return (h ^ (h >> 16)) >= (tl.cast(share, tl.uint32) << 8)


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
def _mean(x, WIDTH: tl.constexpr):
    return tl.sum(x, axis=-1, keep_dims=True) / WIDTH


@triton.jit
def _normed(x, exists, WIDTH: tl.constexpr, eps):
    """Rows of x with mean 0 and variance 1, and one over their spread.

    In two passes: in one, a mean far from zero would take the digits.
    """
    x = tl.where(exists, x - _mean(x, WIDTH), 0.0)
    over = 1 / tl.sqrt(_mean(x * x, WIDTH) + eps)
    return x * over, over


@triton.jit
def _norm_forward(
    x_at, y_at, offset_at, weight_at, bias_at, sum_at, out_at, seed_at, share, grown, rows, eps,
    ADD: tl.constexpr, DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    row, column = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None], tl.arange(0, BLOCK)
    exists = column < WIDTH
    places, there = row * WIDTH + column, (row < rows) & exists
    weight = tl.load(weight_at + column, mask=exists, other=0.0).to(tl.float32)
    bias = tl.load(bias_at + column, mask=exists, other=0.0).to(tl.float32)
    x = tl.load(x_at + places, mask=there, other=0.0).to(tl.float32)
    if ADD:
        y = tl.load(y_at + places, mask=there, other=0.0).to(tl.float32)
        y += tl.load(offset_at + column, mask=exists, other=0.0).to(tl.float32)
        if DROP:
            y = tl.where(kept(seed_at, places, share), y * grown, 0.0)
        x = (x + y).to(sum_at.dtype.element_ty)
        tl.store(sum_at + places, x, mask=there)
        x = x.to(tl.float32)
    x, _ = _normed(x, exists, WIDTH, eps)
    tl.store(out_at + places, (x * weight + bias).to(out_at.dtype.element_ty), mask=there)


@triton.jit
def _fetched(sum_at, d_at, more_at, row, rows, column, MORE: tl.constexpr, WIDTH: tl.constexpr):
    """A row of each, as it lies in memory; `more` means nothing where there is none."""
    places = row * WIDTH + column
    there = (row + tl.zeros_like(column) < rows) & (column < WIDTH)  # (the interpreter takes no mask of a scalar)
    x, d = tl.load(sum_at + places, mask=there, other=0.0), tl.load(d_at + places, mask=there, other=0.0)
    more = x
    if MORE:
        more = tl.load(more_at + places, mask=there, other=0.0)
    return x, d, more


@triton.jit
def _norm_backward(
    d_at, more_at, sum_at, weight_at, dx_at, dy_at, parts_at, seed_at, share, grown, rows, eps,
    ADD: tl.constexpr, MORE: tl.constexpr, DROP: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program, programs, column = tl.program_id(0), tl.num_programs(0), tl.arange(0, BLOCK)
    exists = column < WIDTH
    weight = tl.load(weight_at + column, mask=exists, other=0.0).to(tl.float32)
    to_weight, to_bias = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    to_offset = tl.zeros((BLOCK,), tl.float32)
    if DROP:
        one, other = seeds(seed_at)
    x_next, d_next, more_next = _fetched(sum_at, d_at, more_at, program, rows, column, MORE, WIDTH)
    for row in range(program, rows, programs):
        x, d, more = x_next.to(tl.float32), d_next.to(tl.float32), more_next
        following = row + programs  # on its way while this row is computed
        x_next, d_next, more_next = _fetched(sum_at, d_at, more_at, following, rows, column, MORE, WIDTH)
        x, over = _normed(x, exists, WIDTH, eps)
        to_weight += d * x
        to_bias += d
        d = d * weight
        d = (d - _mean(d, WIDTH) - x * _mean(d * x, WIDTH)) * over
        if MORE:
            d += more.to(tl.float32)
        places = row * WIDTH + column
        tl.store(dx_at + places, d.to(dx_at.dtype.element_ty), mask=exists)
        if ADD:  # to y apart from x, also where both are the same: what is added to one must not reach the other
            if DROP:
                d = tl.where(spared(one, other, places, share), d * grown, 0.0)
            tl.store(dy_at + places, d.to(dy_at.dtype.element_ty), mask=exists)
            to_offset += d
    own = parts_at + program * WIDTH + column
    tl.store(own, to_weight, mask=exists)
    tl.store(own + programs * WIDTH, to_bias, mask=exists)
    if ADD:
        tl.store(own + 2 * programs * WIDTH, to_offset, mask=exists)


def _tile(width: int) -> dict[str, int]:
    block = triton.next_power_of_2(width)
    warps = 2 if block <= 512 else 4 if block <= 2048 else 8
    return {"WIDTH": width, "BLOCK": block, "ROWS": max(1, 512 * warps // block), "num_warps": warps}


def _tile_back(width: int) -> tuple[dict[str, int], int]:
    """A row for one, two or more warps, and for how many programs: as many as are at work at once on an H200."""
    block = triton.next_power_of_2(width)
    tile = {"WIDTH": width, "BLOCK": block, "num_warps": max(1, min(2, block // 256), block // 512)}
    return tile, 132 * (16 if block < 512 else 10 if block == 512 else 6)


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
        number = programs(len(total), 1, most)
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
        number = programs(len(x), 1, most)
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
