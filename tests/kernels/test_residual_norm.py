"""Fused norms, by Triton's interpreter: what torch gives in float64, with dropout as its hash is defined."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import torch
import torch.nn.functional as F
from heed.kernels import linear, reduce, residual_norm
reduce.TILE["columns"] = 4096  # the interpreter is slow with many programs
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
SEED = [2**31 - 2, 123456789]
def kept(size, threshold):  # by Python's integers
    full, (one, other) = 2**32 - 1, SEED
    for place in range(size):
        h = ((place ^ one) * 0x9E3779B1) & full
        h = ((h ^ (h >> 15) ^ other) * 0x85EBCA6B) & full
        h = ((h ^ (h >> 13)) * 0xC2B2AE35) & full
        yield (h ^ (h >> 16)) >> 8 >= threshold
def keeps(shape, threshold): return torch.tensor(list(kept(shape.numel(), threshold))).view(shape)
def part(width):
    norm = torch.nn.LayerNorm(width)
    for weight in norm.parameters(): torch.nn.init.normal_(weight, generator=generator)
    return norm
def seeded(): residual_norm.DRAWN_SEEDS.append(torch.tensor(SEED, dtype=torch.int32))
def close(found, wanted, off=1e-5, **words): torch.testing.assert_close(found.double(), wanted, rtol=off, atol=off, **words)
"""

NORMS = """
def case(rows, width, dropout, ends, mean=0.0, off=1e-5, path=(0.0, 1)):
    x, y, y_bias, norm = draw(rows, width) + mean, draw(rows, width), draw(width), part(width)
    own = [leaf.requires_grad_() for leaf in (x, y, y_bias, norm.weight, norm.bias)]
    for rate in (dropout, path[0]):
        if rate: seeded()
    found = residual_norm.add_norm(x, y, y_bias, norm, dropout, path=path, share=True)
    exact = [leaf.detach().double().requires_grad_() for leaf in own]
    grown = keeps(x.shape, int(dropout * 2**24)) / (1 - dropout) if dropout else 1.0
    if path[0]:
        sequences = torch.tensor(list(kept(-(-rows // path[1]), int(path[0] * 2**24))))
        grown = grown * (sequences / (1 - path[0])).repeat_interleave(path[1])[:rows, None]
    total = exact[0] + (exact[1] + exact[2]) * grown
    if mean: total = total + (found[0].detach().double() - total.detach())  # what it is as it was rounded
    wanted = total, F.layer_norm(total, (width,), *exact[3:], norm.eps)
    names = f"{rows} rows of {width}, dropout {dropout}, {ends}, mean {mean}"
    for one, two in zip(found, wanted, strict=True): close(one, two, off, msg=lambda words: f"{names}: {words}")
    output_grads = [draw(rows, width) for _ in ends]
    found = torch.autograd.grad([found[i] for i in ends], own, output_grads, allow_unused=True)
    wanted = torch.autograd.grad([wanted[i] for i in ends], exact, [d.double() for d in output_grads], allow_unused=True)
    for name, one, two in zip(("x", "y", "y_bias", "weight", "bias"), found, wanted, strict=True):
        two = torch.zeros_like(one, dtype=torch.float64) if two is None else two
        close(one, two, off * 4, msg=lambda words: f"{names}, to {name}: {words}")

case(7, 24, 0.3, (0, 1))  # a program a row
case(40, 24, 0.0, (0, 1), path=(0.5, 5))  # whole sequences are left out
case(12, 24, 0.3, (0, 1), path=(0.5, 3))
residual_norm.program_count = lambda rows, rows_each, limit: 3  # now some have three rows, or two, or one, or none
for rows, width, dropout, ends in (
    (7, 24, 0.0, (0, 1)), (8, 24, 0.3, (1,)), (7, 64, 0.3, (0, 1)), (5, 64, 0.0, (1,)), (4, 5, 0.3, (0,)), (2, 5, 0.0, (0, 1)),
    (2, 1, 0.0, (1,)), (4, 512, 0.1, (1,)), (4, 1000, 0.1, (0, 1)), (4, 4096, 0.1, (0, 1)),
): case(rows, width, dropout, ends)
for ends in [(1,), (0, 1)]: case(4, 500, 0.3, ends, mean=1000.0, off=1e-3)  # thousand times its spread away

for rows, width in ((7, 24), (4, 512)):
    x, norm, d = draw(rows, width).requires_grad_(), part(width), draw(rows, width)
    own = x, norm.weight, norm.bias
    exact = [leaf.detach().double().requires_grad_() for leaf in own]
    wanted = F.layer_norm(exact[0], (width,), *exact[1:], norm.eps)
    found = residual_norm.layer_norm(x, norm)
    close(found, wanted)
    for one, two in zip(torch.autograd.grad(found, own, d), torch.autograd.grad(wanted, exact, d.double()), strict=True):
        close(one, two, 4e-5)
print("the same")
"""

DROPOUT = """
ones, zeros, norm = torch.ones(4, 250), torch.zeros(4, 250), part(250)
for threshold in (1, 2**22, 2**23, 2**24 - 1):  # kernels call `keep_mask`, or load the seed once
    wanted = keeps(ones.shape, threshold)
    seed, dropout = torch.tensor(SEED, dtype=torch.int32), threshold / 2**24
    assert torch.equal(linear.activate(ones, linear.RELU, seed, threshold, 1.0) > 0, wanted), threshold
    seeded()
    y = ones.clone().requires_grad_()
    total, _ = residual_norm.add_norm(zeros, y, zeros[0], norm, dropout)
    assert torch.equal(total > 0, wanted), threshold
    (back,) = torch.autograd.grad(total, y, ones)
    assert torch.equal(back > 0, wanted), threshold
    torch.testing.assert_close(back, wanted / (1 - dropout))
print("the same")
"""


@pytest.mark.parametrize("program", [NORMS, DROPOUT], ids=["norms", "dropout"])
def test_kernels_give_what_torch_gives(program):
    assert_same(BEGIN + program)
