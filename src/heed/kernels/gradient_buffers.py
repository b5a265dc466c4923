"""Where gradients are written: memory that lies end to end, so that nobody has to bring them together.

A weight that has a place has it as an attribute. Neighbours in memory are one matrix.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


class GradientBuffer:
    """Memory for the gradient of one weight. Who asks first in a pass gets it; whoever else uses the weight makes a tensor."""

    def __init__(self, memory: Tensor):
        self.memory = memory.data  # apart: what is written at neighbours is not written here
        self.clear()

    def clear(self) -> None:
        """Before a pass: it is nobody's, and none has asked."""
        self.full, self.asked = False, 0

    @property
    def whole(self) -> bool:
        """Whether it is what autograd holds for the weight, of the only one who asked: more may be added in place."""
        return self.full and self.asked == 1


def give(weight: Tensor, memory: Tensor) -> GradientBuffer:
    weight.place = GradientBuffer(memory)
    return weight.place


def claim(weight: Tensor) -> Tensor | None:
    """The memory for a gradient, in which nothing else will be written before it is read."""
    place = getattr(weight, "place", None)
    if place is None:
        return None
    place.asked += 1
    return place.memory if weight.requires_grad and place.asked == 1 else None


def neighbours(parts: Sequence[Tensor | None]) -> Tensor | None:
    """One tensor of what lies end to end in memory, without copying it; None where it does not."""
    if any(part is None or not part.is_contiguous() for part in parts):
        return None
    ends = [part.data_ptr() + part.nbytes for part in parts]
    if any(end != part.data_ptr() for end, part in zip(ends, parts[1:], strict=False)):
        return None
    first, rest = parts[0].detach(), parts[0].shape[1:]
    if any(first.untyped_storage().data_ptr() != part.untyped_storage().data_ptr() for part in parts[1:]):
        return None
    return first.as_strided((sum(len(part) for part in parts), *rest), first.stride())


def joined(parts: Sequence[Tensor]) -> Tensor:
    """The same, copied where it must be."""
    found = neighbours(parts)
    return torch.cat([part.detach() for part in parts]) if found is None else found
