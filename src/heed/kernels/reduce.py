"""Sums that many programs have left in parts: added up in an order that is always the same, and written where they are wanted."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _folded(parts_at, one_at, two_at, three_at, count, WIDTH, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """The sums over the parts of a group: of the first, the second, the third."""
    group = tl.program_id(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    exists = column < WIDTH
    parts_at += group * count * WIDTH
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, count, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < count)[:, None] & exists[None, :]
        total += tl.load(parts_at + row[:, None] * WIDTH + column[None, :], mask=there, other=0.0)
    found = tl.sum(total, axis=0)
    if group == 0:
        tl.store(one_at + column, found.to(one_at.dtype.element_ty), mask=exists)
    elif group == 1:
        tl.store(two_at + column, found.to(two_at.dtype.element_ty), mask=exists)
    else:
        tl.store(three_at + column, found.to(three_at.dtype.element_ty), mask=exists)


FOLD = {"columns": 16, "rows": 256, "warps": 8}


def folded(parts: Tensor, memory: Sequence[Tensor | None], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """The sums of (groups, parts, width) over the parts, at most three groups, where they are wanted or in new tensors."""
    groups, count, width = parts.shape
    out = [parts.new_empty(width, dtype=dtype) if own is None else own for own in memory]
    rows = min(FOLD["rows"], triton.next_power_of_2(count))
    _folded[(triton.cdiv(width, FOLD["columns"]), groups)](
        parts, *out, *out[-1:] * (3 - groups), count, width, COLUMNS=FOLD["columns"], ROWS=rows, num_warps=FOLD["warps"],
    )  # fmt: skip
    return out
