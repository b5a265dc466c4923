"""Kernels for passes without gradients, run by Triton's interpreter: they give what plain layers give."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import torch
from torch import nn
from heed.kernels import fused_model, window_attention
from heed.nn.packing import WindowMask, attend_windows
torch.set_grad_enabled(False)
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
def same(found, wanted, rtol=1e-5, atol=1e-5):
    for one, two in zip(found, wanted, strict=True): torch.testing.assert_close(one, two, rtol=rtol, atol=atol)
"""

WINDOWS = """
for length, rows, heads, head_dim in ((33, 3, 2, 16), (65, 1, 1, 64), (64, 1, 2, 16), (40, 2, 1, 32)):
    qkv, windows = draw(rows * length, 3 * heads * head_dim), WindowMask(rows, length)
    assert window_attention.supports(length)
    same([window_attention.attend_window(qkv, windows, head_dim)], [attend_windows(*qkv.chunk(3, dim=1), windows, head_dim, False)])
assert not any(map(window_attention.supports, (8, 17, 31, 50, 100, 128, 129))), "no tile, or none that is smaller for the last positions"
print("the same")
"""

MODELS = """
from heed.models.vit import ViT, ViTConfig
calls, plain = [], window_attention.attend_window
window_attention.attend_window = lambda *given: (calls.append(given), plain(*given))[1]
sizes = dict(labels=3, channels=1, patch=2, dim=32, heads=2, hidden=16, layers=2)
for size, pooling, wanted in ((12, "cls", 1), (12, "mean", 2), (4, "mean", 0)):  # the last layer has one query; 4 patches are too few
    model = ViT(ViTConfig(**sizes, size=size, pooling=pooling)).eval()
    for weight in model.parameters(): nn.init.normal_(weight, std=0.3, generator=generator)
    x, fast = draw(2, 1, size, size), fused_model.half_precision_copy(model, torch.float32)
    calls.clear()
    same([fast.classify_images(x)], [model.classify_images(x)], rtol=1e-4, atol=1e-4)
    assert len(calls) == wanted, calls
    body = fast.stack.layers[0].attention.body
    assert body.k.weight.data_ptr() == body.q.weight.data_ptr() + body.q.weight.nbytes
    if size == 12 and pooling == "cls":
        calls.clear()
        with torch.enable_grad(): fast.classify_images(x)
        assert not calls, "with gradients the kernel for training"
print("the same")
"""

PROGRAMS = {"windows": WINDOWS, "models": MODELS}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_kernels_without_gradients_give_what_plain_layers_give(program):
    assert_same(BEGIN + program)
