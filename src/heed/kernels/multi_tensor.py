"""Many tensors as one of another precision, one as another, a step of AdamW for all of them: a single kernel each, at the speed of the memory."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.graph import increment_version


@triton.jit
def _where(starts_at, tensors_at, begins_at, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    """Of a program: its tensor, where that one begins in the whole, the places in it, and which of these exist."""
    tensor, begin = tl.load(tensors_at + tl.program_id(0)), tl.load(begins_at + tl.program_id(0))
    start, end = tl.load(starts_at + tensor), tl.load(starts_at + tensor + 1)
    if EVEN:
        start, end, begin = tl.multiple_of(start, 8), tl.multiple_of(end, 8), tl.multiple_of(begin, BLOCK)
    place = begin + tl.arange(0, BLOCK)
    return tensor, start, place, place < end - start


@triton.jit
def _own(addresses_at, tensor, EVEN: tl.constexpr):
    own = tl.load(addresses_at + tensor).to(tl.pointer_type(tl.float32))
    return tl.multiple_of(own, 16) if EVEN else tl.multiple_of(own, 4)


class PointerTable:
    """For kernels over many tensors at once: where each begins when they lie end to end, and which program has what of which.

    `even`: all of them begin at multiples of 16 bytes, here and there. Then accesses are as wide as they can be.
    """

    BLOCK = 4096

    def __init__(self, tensors: Sequence[Tensor], device: torch.device):
        sizes = torch.tensor([own.numel() for own in tensors], dtype=torch.int64)
        blocks = (sizes + self.BLOCK - 1) // self.BLOCK
        number = torch.arange(len(tensors)).repeat_interleave(blocks)
        begins = (torch.arange(len(number)) - (blocks.cumsum(0) - blocks)[number]) * self.BLOCK
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
        self.programs, self.even = len(number), not (starts % 8).any() and _aligned(tensors)
        self.parts = [table.to(device) for table in (starts, number, begins)]


def _aligned(tensors: Sequence[Tensor]) -> bool:
    return not any(own.data_ptr() % 16 for own in tensors)


def _addresses(tensors: Sequence[Tensor], device: torch.device) -> Tensor:
    return torch.tensor([own.data_ptr() for own in tensors], dtype=torch.int64).to(device)


@triton.jit
def _gather(addresses_at, starts_at, tensors_at, begins_at, out_at, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    tensor, start, place, there = _where(starts_at, tensors_at, begins_at, EVEN, BLOCK)
    value = tl.load(_own(addresses_at, tensor, EVEN) + place, mask=there, other=0.0)
    tl.store(out_at + start + place, value.to(out_at.dtype.element_ty), mask=there)


class Gather:
    """Tensors of float32 that stay where they are, end to end into one of another precision: by a single kernel."""

    def __init__(self, tensors: list[Tensor], out: Tensor):
        self.tensors, self.out, self.table = tensors, out, PointerTable(tensors, out.device)
        self.addresses = _addresses(tensors, out.device)

    def __call__(self) -> None:
        _gather[(self.table.programs,)](
            self.addresses, *self.table.parts, self.out, EVEN=self.table.even, BLOCK=self.table.BLOCK, num_warps=8
        )


@triton.jit
def _adam(
    weights_at, firsts_at, seconds_at, starts_at, tensors_at, begins_at, found_at, factor_at, sizes_at,
    rate, decay, share1, share2, eps, EVEN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """AdamW. `factor`: what gradients are multiplied by; `sizes`: of each tensor, how much of both moments is there yet."""
    tensor, start, place, there = _where(starts_at, tensors_at, begins_at, EVEN, BLOCK)
    weight_at, first_at = _own(weights_at, tensor, EVEN) + place, _own(firsts_at, tensor, EVEN) + place
    second_at = _own(seconds_at, tensor, EVEN) + place
    slope = tl.load(found_at + start + place, mask=there, other=0.0).to(tl.float32) * tl.load(factor_at)
    weight, first = tl.load(weight_at, mask=there, other=0.0), tl.load(first_at, mask=there, other=0.0)
    second = tl.load(second_at, mask=there, other=0.0)
    weight -= weight * (rate * decay)
    first += share1 * (slope - first)
    second += share2 * (slope * slope - second)
    spread = tl.sqrt(second) / tl.sqrt(tl.load(sizes_at + 2 * tensor + 1)) + eps
    weight -= rate / tl.load(sizes_at + 2 * tensor) * first / spread
    tl.store(weight_at, weight, mask=there)
    tl.store(first_at, first, mask=there)
    tl.store(second_at, second, mask=there)


class Adam:
    """A step of AdamW for tensors of float32 whose gradients lie end to end in any precision: one pass over all of it."""

    def __init__(self, weights: Sequence[Tensor], firsts: Sequence[Tensor], seconds: Sequence[Tensor], found: Tensor):
        self.kept = (list(weights), list(firsts), list(seconds))
        self.found, self.table = found, PointerTable(weights, found.device)
        self.even = self.table.even and all(map(_aligned, (*self.kept[1:], [found])))
        self.addresses = [_addresses(part, found.device) for part in self.kept]

    def __call__(
        self, factor: Tensor, sizes: Tensor, *, rate: float, decay: float, betas: tuple[float, float], eps: float
    ) -> None:
        _adam[(self.table.programs,)](
            *self.addresses, *self.table.parts, self.found, factor, sizes, rate, decay, 1 - betas[0], 1 - betas[1], eps,
            EVEN=self.even, BLOCK=self.table.BLOCK, num_warps=4 if self.even else 8,  # narrow accesses need more registers
        )  # fmt: skip
        increment_version(self.kept[0])  # torch does not see what a kernel writes; who keeps copies of weights asks it


@triton.jit
def _copied(x_at, out_at, size, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_at + places, mask=places < size, other=0.0)
    tl.store(out_at + places, x.to(out_at.dtype.element_ty), mask=places < size)


def copied(x: Tensor, out: Tensor) -> None:
    """What torch's own copy does to another precision, at twice its speed."""
    _copied[(triton.cdiv(x.numel(), 8192),)](x, out, x.numel(), BLOCK=8192, num_warps=8)


@triton.jit
def _squares(x_at, parts_at, size, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_at + places, mask=places < size, other=0.0).to(tl.float32)
    tl.store(parts_at + tl.program_id(0), tl.sum(x * x, axis=0))


def squares(x: Tensor) -> Tensor:
    """The sum of the squares of x, in float32; the order of summing is always the same."""
    number = triton.cdiv(x.numel(), 8192)
    parts = torch.empty(number, device=x.device)
    _squares[(number,)](x, parts, x.numel(), BLOCK=8192, num_warps=8)
    return parts.sum()
