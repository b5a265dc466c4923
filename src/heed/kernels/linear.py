"""Linear layers and the activations after them, forward and back, for training on a GPU.

The slope of an activation and the gradient of the bias before it are one kernel.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from heed.kernels.gradient_buffers import claim, joined, neighbours
from heed.kernels.reduce import folded
from heed.kernels.residual_norm import chance, kept, programs

NOTHING, RELU, GELU, SWISH = -1, 0, 1, 2


@triton.jit
def _bent(x, KIND: tl.constexpr):
    """The activation of x, and its slope there."""
    if KIND == 0:
        return tl.maximum(x, 0.0), tl.where(x > 0, 1.0, 0.0)
    elif KIND == 1:
        share = 0.5 * (1 + tl.erf(x * 0.7071067811865476))
        return x * share, share + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)
    else:
        share = tl.sigmoid(x)
        return x * share, share * (1 + x * (1 - share))


@triton.jit
def _bend_forward(
    x_at, out_at, seed_at, share, grown, size, KIND: tl.constexpr, DROP: tl.constexpr, BLOCK: tl.constexpr
):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = places < size
    y, _ = _bent(tl.load(x_at + places, mask=there, other=0.0).to(tl.float32), KIND)
    if DROP:
        y = tl.where(kept(seed_at, places, share), y * grown, 0.0)
    tl.store(out_at + places, y.to(out_at.dtype.element_ty), mask=there)


@triton.jit
def _bend_backward(
    d_at, x_at, dx_at, parts_at, seed_at, share, grown, rows, WIDTH,
    KIND: tl.constexpr, DROP: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Through an activation and its dropout; and the sums of columns, in as many parts as there are programs."""
    program, programs = tl.program_id(1), tl.num_programs(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = column < WIDTH
    to_bias = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(program * ROWS, rows, programs * ROWS):
        row = first + tl.arange(0, ROWS)
        places = row[:, None].to(tl.int64) * WIDTH + column[None, :]
        there = (row < rows)[:, None] & exists[None, :]
        d = tl.load(d_at + places, mask=there, other=0.0).to(tl.float32)
        if DROP:
            d = tl.where(kept(seed_at, places, share), d * grown, 0.0)
        if KIND >= 0:
            _, slope = _bent(tl.load(x_at + places, mask=there, other=0.0).to(tl.float32), KIND)
            d = (d * slope).to(dx_at.dtype.element_ty)
            tl.store(dx_at + places, d, mask=there)
        to_bias += d.to(tl.float32)
    tl.store(parts_at + program * WIDTH + column, tl.sum(to_bias, axis=0), mask=exists)


BEND = {"columns": 256, "rows": 8, "warps": 4, "programs": 1056}
SUM = {"columns": 128, "rows": 32, "warps": 4, "programs": 1056}  # where there is no activation


def _through(
    d: Tensor,
    before: Tensor | None,
    kind: int,
    seed: Tensor | None,
    share: int,
    grown: float,
    memory: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The gradient before an activation (of none: as it is), and its sum over the rows."""
    rows, width = d.shape
    d = d.contiguous()
    inner = d if before is None else torch.empty_like(before)
    tile = SUM if before is None else BEND
    across = triton.cdiv(width, tile["columns"])
    down = programs(rows, tile["rows"], max(1, tile["programs"] // across))
    parts = d.new_empty(down, width, dtype=torch.float32)
    _bend_backward[(across, down)](
        d, d if before is None else before, inner, parts, d if seed is None else seed, share, grown, rows, width,
        KIND=kind, DROP=seed is not None, COLUMNS=tile["columns"], ROWS=tile["rows"], num_warps=tile["warps"],
    )  # fmt: skip
    return inner, folded(parts[None], [memory], d.dtype)[0]


def to_weight(d: Tensor, x: Tensor, memory: Tensor | None) -> Tensor:
    """The gradient of a linear layer's matrix, where it is wanted or in a new tensor."""
    return d.T @ x if memory is None else torch.mm(d.T, x, out=memory)


class _Linear(torch.autograd.Function):
    """Linear layers side by side, and their input again for whoever else needs it: both gradients come back as one product."""

    @staticmethod
    def forward(ctx: Any, x, *parts):
        weights, biases = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        ctx.sizes, ctx.memory = [len(own) for own in biases], [_claimed(own) for own in (weights, biases)]
        weight = joined(weights)
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
        return torch.addmm(joined(biases), x, weight.T), x

    @staticmethod
    def backward(ctx: Any, d, more):
        x, weight = ctx.saved_tensors
        d = d.contiguous()
        own = to_weight(d, x, ctx.memory[0])
        _, to_bias = _through(d, None, NOTHING, None, 0, 1.0, ctx.memory[1])
        return back(d, weight, more), *own.split(ctx.sizes), *to_bias.split(ctx.sizes)


def _claimed(weights: Sequence[Tensor]) -> Tensor | None:
    return neighbours([claim(own) for own in weights])


class _Last(torch.autograd.Function):
    """A linear layer without its bias, which is added later."""

    @staticmethod
    def forward(ctx: Any, x, weight):
        ctx.save_for_backward(x, weight)
        ctx.memory = claim(weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, d):
        x, weight = ctx.saved_tensors
        d = d.contiguous()
        own = to_weight(d, x, ctx.memory)
        return d @ weight, own


def back(d: Tensor, weight: Tensor, more: Tensor | None) -> Tensor:
    """To the input of a linear layer; what else comes there is added in place, since nothing reads it after."""
    return d @ weight if more is None else more.addmm_(d, weight)


def linear(x: Tensor, *parts: torch.nn.Linear) -> tuple[Tensor, Tensor]:
    """What several linear layers make of x, side by side, and x: use that one from there on."""
    return _Linear.apply(x, *(part.weight for part in parts), *(part.bias for part in parts))


def last(x: Tensor, part: torch.nn.Linear) -> Tensor:
    """A linear layer without its bias."""
    return _Last.apply(x, part.weight)


def bent(before: Tensor, kind: int, seed: Tensor | None, share: int, grown: float) -> Tensor:
    """An activation, with dropout."""
    out = torch.empty_like(before)
    _bend_forward[(triton.cdiv(out.numel(), 2048),)](
        before, out, out if seed is None else seed, share, grown, out.numel(),
        KIND=kind, DROP=seed is not None, BLOCK=2048,
    )  # fmt: skip
    return out


class _Up(torch.autograd.Function):
    """An activation of a linear layer, with dropout; and the input again."""

    @staticmethod
    def forward(ctx: Any, x, weight, bias, kind: int, dropout: float):
        seed, share, grown = chance(dropout, x.device)
        if kind == RELU and seed is None:  # its slope is told by what comes out
            before = out = torch._addmm_activation(bias, x, weight.T)
        else:
            before = torch.addmm(bias, x, weight.T)
            out = bent(before, kind, seed, share, grown)
        ctx.save_for_backward(x, weight, before, seed)
        ctx.rest, ctx.memory = (kind, share, grown), (claim(weight), claim(bias))
        ctx.set_materialize_grads(False)
        return out, x

    @staticmethod
    def backward(ctx: Any, d, more):
        x, weight, before, seed = ctx.saved_tensors
        kind, share, grown = ctx.rest
        inner, to_bias = _through(d, before, kind, seed, share, grown, ctx.memory[1])
        own = to_weight(inner, x, ctx.memory[0])
        return back(inner, weight, more), own, to_bias, None, None


def up(x: Tensor, part: torch.nn.Linear, kind: int, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """The activation of part(x), with dropout; and x: use that one from there on."""
    return _Up.apply(x, part.weight, part.bias, kind, dropout)
