"""Preallocated memory for gradients, one contiguous buffer for all weights, so that the optimizer need not gather them.

A weight holds its buffer as the attribute `gradient_buffer`. Adjacent buffers can be written as one matrix.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


class GradientBuffer:
    """Memory for the gradient of one weight. The first user in a pass claims it; any other use makes a new tensor."""

    def __init__(self, memory: Tensor):
        self.memory = memory.data  # .data: writing to an adjacent buffer must not bump its version
        self.clear()

    def clear(self) -> None:
        """Before a pass: not claimed yet."""
        self.filled, self.claims = False, 0

    @property
    def complete(self) -> bool:
        """Whether it holds the gradient of the only user so far, so that another may add to it in place."""
        return self.filled and self.claims == 1


def attach_buffer(weight: Tensor, memory: Tensor) -> GradientBuffer:
    weight.gradient_buffer = GradientBuffer(memory)
    return weight.gradient_buffer


def claim_buffer(weight: Tensor) -> Tensor | None:
    """The memory for the gradient of a weight, or None if it has none or another use has claimed it."""
    buffer = getattr(weight, "gradient_buffer", None)
    if buffer is None:
        return None
    buffer.claims += 1
    return buffer.memory if weight.requires_grad and buffer.claims == 1 else None


def adjacent_view(parts: Sequence[Tensor | None]) -> Tensor | None:
    """One tensor over parts that are adjacent in memory, without a copy; None if they are not."""
    if any(part is None or not part.is_contiguous() for part in parts):
        return None
    ends = [part.data_ptr() + part.nbytes for part in parts]
    if any(end != part.data_ptr() for end, part in zip(ends, parts[1:], strict=False)):
        return None
    first, rest = parts[0].detach(), parts[0].shape[1:]
    if any(first.untyped_storage().data_ptr() != part.untyped_storage().data_ptr() for part in parts[1:]):
        return None
    return first.as_strided((sum(len(part) for part in parts), *rest), first.stride())


def concatenated(parts: Sequence[Tensor]) -> Tensor:
    """The parts as one tensor: a view if they are adjacent in memory, else a copy."""
    view = adjacent_view(parts)
    return torch.cat([part.detach() for part in parts]) if view is None else view
