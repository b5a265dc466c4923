"""Sums over rows in two steps, in a fixed order: programs leave partial sums, which are added up here."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _column_sums(partials_ptr, one_ptr, two_ptr, three_ptr, count, WIDTH, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """Sum the partials of one group into its output."""
    group = tl.program_id(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    column_mask = column < WIDTH
    partials_ptr += group * count * WIDTH
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, count, ROWS):
        row = first + tl.arange(0, ROWS)
        mask = (row < count)[:, None] & column_mask[None, :]
        total += tl.load(partials_ptr + row[:, None] * WIDTH + column[None, :], mask=mask, other=0.0)
    sums = tl.sum(total, axis=0)
    if group == 0:
        tl.store(one_ptr + column, sums.to(one_ptr.dtype.element_ty), mask=column_mask)
    elif group == 1:
        tl.store(two_ptr + column, sums.to(two_ptr.dtype.element_ty), mask=column_mask)
    else:
        tl.store(three_ptr + column, sums.to(three_ptr.dtype.element_ty), mask=column_mask)


TILE = {"columns": 16, "rows": 256, "warps": 8}


def column_sums(partials: Tensor, buffers: Sequence[Tensor | None], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Sum (groups, partials, width) over the partials, into buffers or new tensors. At most three groups."""
    groups, count, width = partials.shape
    out = [partials.new_empty(width, dtype=dtype) if buffer is None else buffer for buffer in buffers]
    rows = min(TILE["rows"], triton.next_power_of_2(count))
    _column_sums[(triton.cdiv(width, TILE["columns"]), groups)](
        partials, *out, *out[-1:] * (3 - groups), count, width, COLUMNS=TILE["columns"], ROWS=rows,
        num_warps=TILE["warps"],
    )  # fmt: skip
    return out
