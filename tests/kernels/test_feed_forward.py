"""The fused feed-forward network, run by Triton's interpreter: outputs and gradients are those of plain layers."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

PROGRAM = """
import torch
from torch import nn
from heed.kernels import feed_forward, gradient_buffers, linear
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
def same(found, wanted):
    for one, two in zip(found, wanted, strict=True): torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)

up, down = nn.Linear(24, 40), nn.Linear(40, 24, bias=False)
for weight in (*up.parameters(), *down.parameters()): nn.init.normal_(weight, std=0.2, generator=generator)
leaves = (up.weight, up.bias, down.weight)
for (block_m, block_n, block_k, group, each), rate, placed in (((16, 32, 8, 3, 2), 0.25, False), ((16, 16, 16, 2, 1), 0.0, True),
                                                      ((64, 64, 32, 1, 9), 0.25, True)):
    feed_forward.TILE.update(block_m=block_m, block_n=block_n, block_k=block_k, group_m=group, programs_per_sm=each)
    x, weight, other = draw(37, 24).requires_grad_(), draw(37, 24), draw(37, 24)
    memory = torch.full((sum(own.numel() for own in leaves),), 7.0)
    if placed:
        for own, part in zip(leaves, memory.split([own.numel() for own in leaves])): gradient_buffers.attach_buffer(own, part.view_as(own))
    torch.manual_seed(1)
    y, again = feed_forward.feed_forward(x, up, down, rate)
    found = torch.autograd.grad((y * weight).sum() + (again * other).sum(), (x, *leaves))
    torch.manual_seed(1)  # layer by layer, with the same seed
    z, again = linear.linear_activation(x, up, linear.RELU, rate)
    assert not rate or 0.2 < float((z == 0).float().mean() - (up(x) <= 0).float().mean()) * 2 < 0.3
    plain = (torch.relu(up(x)) * (z != 0) / (1 - rate)) @ down.weight.T
    same([y, *found], [down(z), *torch.autograd.grad((plain * weight).sum() + (x * other).sum(), (x, *leaves))])
    if placed:  # they were written to their buffers
        assert torch.equal(torch.cat([own.flatten() for own in found[1:]]), memory)
        assert [own.data_ptr() for own in found[1:]] == [own.gradient_buffer.memory.data_ptr() for own in leaves]
        for own in leaves: del own.gradient_buffer

memory = torch.zeros(1 + 24 * 40)
assert feed_forward.supports(down.weight) and feed_forward.supports(memory[:-1].view(24, 40))
assert not feed_forward.supports(memory[1:].view(24, 40)) and not feed_forward.supports(torch.zeros(24, 42)) and not feed_forward.supports(torch.zeros(22, 40))
class FakeCudaTensor(torch.Tensor):  # looks as if on a GPU
    is_cuda = True
for able, wanted in (((8, 0), False), ((8, 9), False), ((9, 0), True), ((10, 0), False), ((12, 0), False)):
    torch.cuda.get_device_capability = lambda device: able
    assert feed_forward.supports(torch.zeros(24, 40).as_subclass(FakeCudaTensor)) == wanted, able
print("the same")
"""


def test_one_product_gives_what_plain_layers_give():
    assert_same(PROGRAM)
