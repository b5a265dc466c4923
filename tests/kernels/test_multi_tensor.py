"""Kernels over many tensors, run by Triton's interpreter: they give what torch gives."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

PROGRAM = """
import torch
from heed.kernels import multi_tensor, reduce
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)

for sizes in ([(16, 8), (5000,), (8,)], [(3, 5), (9000,), (1,)], []):  # aligned, not aligned, and empty
    parts = [draw(*size) for size in sizes]
    out = torch.full((sum(part.numel() for part in parts),), 7.0)
    gather = multi_tensor.Gather(parts, out)
    gather()
    assert torch.equal(out, torch.cat([torch.empty(0), *(part.flatten() for part in parts)]))
    assert gather.table.aligned == (sizes != [(3, 5), (9000,), (1,)])
assert not multi_tensor.PointerTable([draw(17)[1:]], torch.device("cpu")).aligned  # it starts at four bytes

for size in (0, 1, 8192, 20_001):
    x, out = draw(size), torch.zeros(size)
    torch.testing.assert_close(multi_tensor.squared_norm(x), x.square().sum())
    multi_tensor.cast_copy(x, out)
    assert torch.equal(out, x)

for groups, count, width in ((1, 5, 40), (3, 300, 24), (2, 1, 16)):
    parts = draw(groups, count, width)
    wanted = parts.sum(1)
    for one, two in zip(reduce.column_sums(parts, [None] * groups), wanted, strict=True): torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
    memory = torch.zeros(width)
    found = reduce.column_sums(parts, [memory, *[None] * (groups - 1)], torch.float64)
    assert found[0] is memory and all(own.dtype == torch.float64 for own in found[1:])
    torch.testing.assert_close(memory, wanted[0], rtol=1e-4, atol=1e-5)
print("the same")
"""


def test_one_kernel_for_many_tensors_gives_what_torch_gives():
    assert_same(PROGRAM)
