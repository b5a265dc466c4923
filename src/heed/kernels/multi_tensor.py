"""Kernels over many tensors at once: concatenation with a cast, and AdamW; and fast casts and norms of one tensor."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.graph import increment_version


@triton.jit
def _locate(starts_ptr, tensors_ptr, blocks_ptr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    """The tensor of a program, its start in the concatenation, the offsets of the program in it, and their mask."""
    tensor, block_start = tl.load(tensors_ptr + tl.program_id(0)), tl.load(blocks_ptr + tl.program_id(0))
    start, end = tl.load(starts_ptr + tensor), tl.load(starts_ptr + tensor + 1)
    if ALIGNED:
        start, end, block_start = tl.multiple_of(start, 8), tl.multiple_of(end, 8), tl.multiple_of(block_start, BLOCK)
    offsets = block_start + tl.arange(0, BLOCK)
    return tensor, start, offsets, offsets < end - start


@triton.jit
def _pointer(addresses_ptr, tensor, ALIGNED: tl.constexpr):
    pointer = tl.load(addresses_ptr + tensor).to(tl.pointer_type(tl.float32))
    return tl.multiple_of(pointer, 16) if ALIGNED else tl.multiple_of(pointer, 4)


class PointerTable:
    """Where each of many tensors starts in their concatenation, and the block of the tensor for each program.

    `aligned`: all start at multiples of 16 bytes, on both sides, so that accesses are as wide as possible.
    """

    BLOCK = 4096

    def __init__(self, tensors: Sequence[Tensor], device: torch.device):
        sizes = torch.tensor([tensor.numel() for tensor in tensors], dtype=torch.int64)
        blocks = (sizes + self.BLOCK - 1) // self.BLOCK
        owner = torch.arange(len(tensors)).repeat_interleave(blocks)  # of each program
        block_starts = (torch.arange(len(owner)) - (blocks.cumsum(0) - blocks)[owner]) * self.BLOCK
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
        self.programs, self.aligned = len(owner), not (starts % 8).any() and _aligned(tensors)
        self.parts = [table.to(device) for table in (starts, owner, block_starts)]


def _aligned(tensors: Sequence[Tensor]) -> bool:
    return not any(tensor.data_ptr() % 16 for tensor in tensors)


def _addresses(tensors: Sequence[Tensor], device: torch.device) -> Tensor:
    return torch.tensor([tensor.data_ptr() for tensor in tensors], dtype=torch.int64).to(device)


@triton.jit
def _gather(addresses_ptr, starts_ptr, tensors_ptr, blocks_ptr, out_ptr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    tensor, start, offsets, mask = _locate(starts_ptr, tensors_ptr, blocks_ptr, ALIGNED, BLOCK)
    value = tl.load(_pointer(addresses_ptr, tensor, ALIGNED) + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + start + offsets, value.to(out_ptr.dtype.element_ty), mask=mask)


class Gather:
    """Concatenate float32 tensors into one of another precision by a single kernel."""

    def __init__(self, tensors: list[Tensor], out: Tensor):
        self.tensors, self.out, self.table = tensors, out, PointerTable(tensors, out.device)
        self.addresses = _addresses(tensors, out.device)

    def __call__(self) -> None:
        _gather[(self.table.programs,)](
            self.addresses, *self.table.parts, self.out, ALIGNED=self.table.aligned, BLOCK=self.table.BLOCK, num_warps=8
        )


@triton.jit
def _adam(
    weights_ptr, firsts_ptr, seconds_ptr, starts_ptr, tensors_ptr, blocks_ptr, grads_ptr, factor_ptr, corrections_ptr,
    rate, decay, one_minus_beta1, one_minus_beta2, eps, ALIGNED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """AdamW. `factor` multiplies the gradients; `corrections` are 1 - beta^step of both moments, for each tensor."""
    tensor, start, offsets, mask = _locate(starts_ptr, tensors_ptr, blocks_ptr, ALIGNED, BLOCK)
    weight_ptr = _pointer(weights_ptr, tensor, ALIGNED) + offsets
    first_ptr = _pointer(firsts_ptr, tensor, ALIGNED) + offsets
    second_ptr = _pointer(seconds_ptr, tensor, ALIGNED) + offsets
    grad = tl.load(grads_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32) * tl.load(factor_ptr)
    weight, first = tl.load(weight_ptr, mask=mask, other=0.0), tl.load(first_ptr, mask=mask, other=0.0)
    second = tl.load(second_ptr, mask=mask, other=0.0)
    weight -= weight * (rate * decay)
    first += one_minus_beta1 * (grad - first)
    second += one_minus_beta2 * (grad * grad - second)
    denominator = tl.sqrt(second) / tl.sqrt(tl.load(corrections_ptr + 2 * tensor + 1)) + eps
    weight -= rate / tl.load(corrections_ptr + 2 * tensor) * first / denominator
    tl.store(weight_ptr, weight, mask=mask)
    tl.store(first_ptr, first, mask=mask)
    tl.store(second_ptr, second, mask=mask)


class Adam:
    """A step of AdamW for float32 tensors with concatenated gradients of any precision: one pass over memory."""

    def __init__(self, weights: Sequence[Tensor], firsts: Sequence[Tensor], seconds: Sequence[Tensor], grads: Tensor):
        self.tensors = (list(weights), list(firsts), list(seconds))
        self.grads, self.table = grads, PointerTable(weights, grads.device)
        self.aligned = self.table.aligned and all(map(_aligned, (*self.tensors[1:], [grads])))
        self.addresses = [_addresses(part, grads.device) for part in self.tensors]

    def __call__(
        self, factor: Tensor, corrections: Tensor, *, rate: float, decay: float, betas: tuple[float, float], eps: float
    ) -> None:
        _adam[(self.table.programs,)](
            *self.addresses, *self.table.parts, self.grads, factor, corrections, rate, decay, 1 - betas[0],
            1 - betas[1], eps, ALIGNED=self.aligned, BLOCK=self.table.BLOCK,
            num_warps=4 if self.aligned else 8,  # narrow accesses need more registers
        )  # fmt: skip
        increment_version(self.tensors[0])  # torch does not see the writes of a kernel, but caches rely on it


@triton.jit
def _cast_copy(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < size, other=0.0)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask=offsets < size)


def cast_copy(x: Tensor, out: Tensor) -> None:
    """Copy with a cast, at twice the speed of torch."""
    _cast_copy[(triton.cdiv(x.numel(), 8192),)](x, out, x.numel(), BLOCK=8192, num_warps=8)


@triton.jit
def _squared_norm(x_ptr, partials_ptr, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < size, other=0.0).to(tl.float32)
    tl.store(partials_ptr + tl.program_id(0), tl.sum(x * x, axis=0))


def squared_norm(x: Tensor) -> Tensor:
    """The sum of x² in float32, always in the same order."""
    programs = triton.cdiv(x.numel(), 8192)
    partials = torch.empty(programs, device=x.device)
    _squared_norm[(programs,)](x, partials, x.numel(), BLOCK=8192, num_warps=8)
    return partials.sum()
