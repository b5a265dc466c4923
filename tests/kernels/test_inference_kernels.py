"""Kernels for passes without gradients, run by Triton's interpreter: they give what plain layers give."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import torch
import torch.nn.functional as F
from torch import nn
from heed.kernels import fused_feed_forward, fused_model, fused_stack, linear_activation, linear_norm, window_attention
from heed.kernels.linear_norm import Tile
from heed.nn.packing import WindowMask, attend_windows
from heed.nn.transformer import gelu_tanh
torch.set_grad_enabled(False)
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
def layers(*made):
    for weight in (weight for layer in made for weight in layer.parameters()): nn.init.normal_(weight, std=0.3, generator=generator)
    return made
def same(found, wanted, rtol=1e-5, atol=1e-5):
    for one, two in zip(found, wanted, strict=True): torch.testing.assert_close(one, two, rtol=rtol, atol=atol)
"""

LINEAR = """
for width, depth, rows, tile in ((48, 40, 37, Tile(16, 16, 2, 4)), (16, 24, 1, Tile(16, 32, 2, 4)), (64, 48, 32, Tile(32, 16, 3, 4))):
    layer, norm = layers(nn.Linear(depth, width), nn.LayerNorm(width, eps=1e-3))
    x, y = draw(rows, width) + 5, draw(rows, depth)  # a mean far from zero
    total = x + layer(y)
    same(linear_norm.linear_norm(y, layer.weight, layer.bias, x, norm, tile=tile), (total, norm(total)))
    same(linear_norm.linear_norm(y, layer.weight, layer.bias, x, norm, total=False, tile=tile)[1:], (norm(total),))
    total = x[:7].repeat(6, 1)[:rows] + layer(y)  # its rows are repeated
    same(linear_norm.linear_norm(y, layer.weight, layer.bias, x[:7], norm, tile=tile), (total, norm(total)))
assert [linear_norm.column_block(width) for width in (16, 48, 64, 192, 256, 384)] == [16, 16, 64, 64, 256, 128]
assert not any(map(linear_norm.column_block, (8, 24, 80, 320, 512, 768))), "too narrow, too many blocks, too wide"
assert [linear_norm.supports(torch.zeros(shape)) for shape in ((48, 40), (48, 42), (768, 40))] == [True, False, False]
print("the same")
"""

NETWORK = """
for width, hidden, rows, activation, code in ((48, 64, 37, F.relu, 0), (16, 32, 17, F.gelu, 1), (32, 32, 1, F.silu, 2), (32, 48, 20, gelu_tanh, 3)):
    up, down, norm = layers(nn.Linear(width, hidden), nn.Linear(hidden, width), nn.LayerNorm(width))
    x, before = draw(rows, width), draw(rows, width)
    total = before + down(activation(up(x)))
    found = fused_feed_forward.feed_forward_norm(x, up, code, down, before, norm, Tile(16, 16, 2, 4))
    tile = linear_activation.ProductTile(16, 32, 16, 2, 4, 2, group=2)
    same([linear_activation.linear_activation(x, up.weight, up.bias, code, tile)], [activation(up(x))], atol=2e-5)
    same(found, (total, norm(total)), atol=1e-4)
print("the same")
"""

GELU = """
x = torch.cat([torch.linspace(-12, 12, 507), torch.tensor([-1e4, -30.0, 0.0, 30.0, 1e4])]).view(32, 16)
identity = nn.Linear(16, 16)
identity.weight.copy_(torch.eye(16)), identity.bias.zero_()
found, _ = fused_feed_forward.feed_forward_norm(x, identity, 1, identity, torch.zeros(32, 16), nn.LayerNorm(16), Tile(32, 16, 2, 4))
wanted = F.gelu(x.double())
difference = (found - wanted).abs()
assert difference.max() < 1.5e-5, difference.max()
assert (difference / wanted.abs())[wanted.abs() > 1e-4].max() < 1e-4
print("the same")
"""

WINDOWS = """
for length, rows, heads, head_dim in ((33, 3, 2, 16), (65, 1, 1, 64), (64, 1, 2, 16), (40, 2, 1, 32)):
    qkv, windows = draw(rows * length, 3 * heads * head_dim), WindowMask(rows, length)
    assert window_attention.supports(length)
    same([window_attention.attend_window(qkv, windows, head_dim)], [attend_windows(*qkv.chunk(3, dim=1), windows, head_dim, False)])
assert not any(map(window_attention.supports, (8, 17, 50, 100, 129))), "the last positions would have no smaller tile"
print("the same")
"""

MODELS = """
from heed.models.vit import ViT, ViTConfig
linear_norm.SHORT_TILE = linear_norm.LONG_TILE = fused_feed_forward.TILE = Tile(32, 16, 2, 4)
linear_activation.TILE = linear_activation.ProductTile(32, 32, 16, 2, 4, 1)
calls = []
def spy(module, name):
    plain = getattr(module, name)
    setattr(module, name, lambda *args, **named: (calls.append(name), plain(*args, **named))[1])
spy(linear_norm, "linear_norm"), spy(linear_activation, "linear_activation"), spy(fused_feed_forward, "feed_forward_norm"), spy(window_attention, "attend_window")
sizes = dict(labels=3, size=12, channels=1, patch=2, dim=48, heads=3, hidden=32, layers=2)
for kernels, pooling, wanted in (({"linear", "activation", "attention", "qkv"}, "cls", {"linear_norm": 5, "linear_activation": 3, "attend_window": 1}),
                                 ({"feed-forward"}, "mean", {"linear_norm": 3, "feed_forward_norm": 2}), (set(), "cls", {})):
    model = ViT(ViTConfig(**sizes, pooling=pooling)).eval()
    layers(model)
    x, fused_stack.INFERENCE = draw(2, 1, 12, 12), kernels
    fast = fused_model.half_precision_copy(model, torch.float32)
    calls.clear()
    same([fast.classify_images(x)], [model.classify_images(x)], rtol=1e-4, atol=1e-4)
    assert {name: calls.count(name) for name in calls} == wanted, calls
    body = fast.stack.layers[0].attention.body
    assert body.k.weight.data_ptr() == body.q.weight.data_ptr() + body.q.weight.nbytes
calls.clear()
fused_stack.INFERENCE = {"linear", "attention"}
with torch.enable_grad(): fast.classify_images(x)
assert not calls, "with gradients the kernels for training"
print("the same")
"""

PROGRAMS = {"linear": LINEAR, "network": NETWORK, "gelu": GELU, "windows": WINDOWS, "models": MODELS}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_kernels_without_gradients_give_what_plain_layers_give(program):
    assert_same(BEGIN + program)
