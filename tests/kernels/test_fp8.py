"""Layers in 8-bit floats: what plain ones give, rounded. Kernels are run by Triton's interpreter."""

import pytest
import torch

from heed.kernels import fp8, fused_model
from heed.models.vit import ViT, ViTConfig
from tests.interpreted import assert_same

BEGIN = """
import torch
import numpy as np
import triton.language as tl
from torch import nn
from triton.runtime import interpreter
from heed.kernels import fp8, fp8_rows, fused_model
from heed.kernels.fp8 import FP8, Fp8Linear, Fp8MLP, Rows
from heed.models.vit import ViT, ViTConfig
from heed.nn.transformer import MLP, PreNorm
torch.set_grad_enabled(False)
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
plain = interpreter._convert_float
def convert(data, source, wanted, rounding):  # the interpreter's own loses what a rounded mantissa carries
    if wanted is tl.float8e4nv: return torch.from_numpy(np.ascontiguousarray(data)).to(FP8).view(torch.uint8).numpy()
    return plain(data, source, wanted, rounding)
interpreter._convert_float = convert
products = []
def emulated(x, weight, scale, bias, dtype):  # cuBLAS multiplies them on a GPU alone
    products.append(len(x.values))
    y = (x.values.float() @ weight.float().T) * x.scale * scale
    return (y if bias is None else y + bias).to(dtype)
fp8.product = emulated
fp8_rows.TILE.update(block_m=32, block_n=32, block_k=32)
def rounded(x, scale=None):
    scale = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / 448 if scale is None else scale
    return (x / scale).to(FP8).float() * scale
def near(found, wanted, most):
    off = float((found - wanted).norm() / wanted.norm())
    assert off < most, off
gelu = nn.GELU(approximate="tanh")
def random(module, std=1.0):
    for weight in module.parameters(): nn.init.normal_(weight, std=std, generator=generator)
    return module
def vit(**changes):
    sizes = dict(labels=3, channels=1, size=12, patch=2, dim=32, heads=2, hidden=48, layers=2)
    return random(ViT(ViTConfig(**{**sizes, **changes})), 0.3).eval()
def fast(model):
    made = fused_model.half_precision_copy(model, torch.float32)
    made.stack = fp8.Fp8Stack(made.stack)
    return made
"""

KERNELS = """
for width in (24, 48, 600):
    x, y, bias, norm = draw(7, width), draw(7, width), draw(width), random(nn.LayerNorm(width))
    total, values, scale, bound = fp8_rows.norm_rows(x, norm, (y, bias), (3.0, 0.5))
    torch.testing.assert_close(total, x + y + bias)
    wanted = norm(total)
    near(values.float() * scale, rounded(wanted), 0.002)  # a number in the middle of two may be rounded either way
    torch.testing.assert_close(scale, wanted.abs().amax(1, keepdim=True) / 448)
    torch.testing.assert_close(bound, (3 * wanted.norm(dim=1, keepdim=True) + 0.5) / 448, rtol=0.01, atol=0)
    again, values, scale, bound = fp8_rows.norm_rows(x, norm)
    assert again is x and bound is None
    near(values.float() * scale, rounded(norm(x)), 0.002)
nn.init.zeros_(norm.weight), nn.init.zeros_(norm.bias)
_, values, scale, bound = fp8_rows.norm_rows(x, norm, None, (3.0, 0.0))
assert not values.float().any() and scale.isfinite().all() and (bound == 0).all()

for rows, depth, width in ((37, 48, 80), (1, 16, 16), (70, 96, 48)):
    x, weight, bias = draw(rows, depth), draw(width, depth), draw(width)
    scale, weight_scale, bound = (own.abs().amax(dim=1, keepdim=True) / 448 for own in (x, weight, 100 * x))
    values, weight_values = (x / scale).to(FP8), (weight / weight_scale).to(FP8)
    found = fp8_rows.linear_gelu(values, scale, bound, weight_values, weight_scale[:, 0].contiguous(), bias)
    wanted = gelu((values.float() * scale) @ (weight_values.float() * weight_scale).T + bias)
    assert found.dtype == FP8 and found.shape == wanted.shape
    near(found.float() * bound, rounded(wanted, bound), 0.002)
print("the same")
"""

LAYERS = """
layers, x = [random(nn.Linear(48, 32)), random(nn.Linear(48, 16))], draw(37, 48)
_, values, scale, _ = fp8_rows.norm_rows(x, random(nn.LayerNorm(48)))
rows, weight, bias = Rows(values, scale), torch.cat([own.weight for own in layers]), torch.cat([own.bias for own in layers])
wanted, made = (values.float() * scale) @ rounded(weight).T + bias, Fp8Linear(*layers)
torch.testing.assert_close(made(rows), wanted, rtol=1e-4, atol=1e-3)
torch.testing.assert_close(made(rows, slice(32)), wanted[:, :32], rtol=1e-4, atol=1e-3)
torch.testing.assert_close(made(rows, slice(32, None)), wanted[:, 32:], rtol=1e-4, atol=1e-3)
torch.testing.assert_close(Fp8Linear(*layers, bias=False)(rows), wanted - bias, rtol=1e-4, atol=1e-3)

part = random(PreNorm(MLP(48, 64, gelu), nn.LayerNorm(48)))
made, up = Fp8MLP(part), part.body.up
_, *rows = fp8_rows.norm_rows(x, part.norm, None, made.limits)
normed = rows[0].float() * rows[1]
hidden, most = normed @ rounded(up.weight).T + up.bias, 448 * rows[2]
assert (hidden.abs() <= most).all() and (hidden.abs() > most / 10).any(), "all fit, and some are not far below"
worst = up.weight[up.weight.norm(dim=1).argmax()][None].repeat(2, 1)  # the row that comes closest to the bound
worst[1] *= -1
_, *longest = fp8_rows.norm_rows(worst, nn.LayerNorm(48), None, made.limits)
assert ((longest[0].float() * longest[1]) @ rounded(up.weight).T + up.bias).abs().max() <= 448 * longest[2].max()
near(made(Rows(*rows)), part.body(normed) - part.body.down.bias, 0.06)
print("the same")
"""

MODELS = """
import torch.nn.functional as F
def wanted_of(model, x):  # the same by torch's own operators
    x = model.embed(x)
    for layer in model.stack.layers:
        body, mlp = layer.attention.body, layer.mlp.body
        shape, normed = x.shape, rounded(layer.attention.norm(x).flatten(0, 1))
        q, k, v = (F.linear(normed, rounded(own.weight), own.bias).unflatten(0, shape[:2]) for own in (body.q, body.k, body.v))
        heads = [own.unflatten(2, (-1, body.width)).transpose(1, 2) for own in (q, k, v)]
        x = x + body.out(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))
        normed, up = layer.mlp.norm(x).flatten(0, 1), rounded(mlp.up.weight)
        bound = (normed.norm(dim=1, keepdim=True) * (1 + 2**-4) * up.norm(dim=1).max() + mlp.up.bias.abs().max()) / 448
        hidden = rounded(gelu(F.linear(rounded(normed), up, mlp.up.bias)), bound)
        x = x + F.linear(hidden, rounded(mlp.down.weight), mlp.down.bias).unflatten(0, shape[:2])
    return model.head(model.pool(model.stack.norm(x)))
long, plain_windows = [], fp8.attend_windows
fp8.attend_windows = lambda *given: long.append(given) or plain_windows(*given)
cases = [dict(), dict(pooling="mean"), dict(activation="gelu_tanh", path_dropout=0.1), dict(size=24, pooling="mean", layers=1)]
for changes in cases:  # 37, 36, 37 and 144 tokens
    model = vit(**changes)
    side = model.config.size
    x = draw(2, 1, side, side)
    products.clear()
    found, exact = fast(model).classify_images(x), model.classify_images(x)
    near(found, wanted_of(model, x), 0.002)
    near(found, exact, 0.05)
    assert float((found - exact).norm() / exact.norm()) > 0.005, "nothing was rounded"
    tokens = 2 * model.config.max_length
    first = [tokens, tokens, 2, tokens, 2]  # the last layer computes the class token alone
    assert products == (first if model.first is not None else [tokens] * 2 * model.config.layers), products
assert len(long) == 1, "short windows have a kernel of their own"
print("the same")
"""

ALONE = """
model = fast(vit(size=8))
images = draw(3, 1, 8, 8) * torch.tensor([1.0, 1e-3, 1e4])[:, None, None, None]
together = model.classify_images(images)
for i in range(3): torch.testing.assert_close(model.classify_images(images[i : i + 1])[0], together[i], rtol=1e-4, atol=1e-4)
torch.testing.assert_close(model.classify_images(images.flip(0)).flip(0), together, rtol=1e-4, atol=1e-4)
print("the same")
"""

EXTREMES = """
for norms, weights in ((1e20, 1), (1, 1e20), (1e-20, 1), (1, 1e-20)):  # their squares have no place in float32
    generator.manual_seed(3)
    x, model = draw(2, 1, 8, 8), vit(size=8, layers=1)
    layer = model.stack.layers[0].mlp
    layer.norm.weight *= norms
    layer.norm.bias *= norms
    layer.body.up.weight *= weights
    layer.body.up.weight[3] = 0
    layer.body.up.bias *= norms * weights
    layer.body.down.weight /= norms * weights
    near(fast(model).classify_images(x), model.classify_images(x), 0.05)
nan, infinite, huge = float("nan"), float("inf"), 3e38
for damage, name in ((nan, "attention.norm"), (nan, "mlp.body.up"), (infinite, "attention.body.k"), (infinite, "mlp.body.down"), (huge, "mlp.norm"), (huge, "mlp.body.up")):
    model = vit(size=8, layers=1)
    model.stack.layers[0].get_submodule(name).weight.view(-1)[5] = damage
    without, found = fused_model.half_precision_copy(model, torch.float32).classify_images(x), fast(model).classify_images(x)
    assert without.isfinite().all() or not found.isfinite().all(), (damage, name)  # nothing is hidden
    assert damage == huge or not found.isfinite().any(), (damage, name)
print("the same")
"""

PROGRAMS = {"kernels": KERNELS, "layers": LAYERS, "models": MODELS, "each image": ALONE, "extremes": EXTREMES}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_layers_in_fp8_give_what_plain_ones_give(program):
    pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")
    assert_same(BEGIN + program)


@pytest.mark.parametrize(
    ("changes", "able"),
    [
        ({}, True), ({"activation": "gelu_tanh"}, True), ({"path_dropout": 0.1}, True), ({"pooling": "mean"}, True),
        ({"activation": "relu"}, False), ({"hidden": 24}, False), ({"layer_scale": 0.1}, False),
        ({"qkv_bias": False}, False), ({"heads": 4}, False),
    ],
)  # fmt: skip
def test_only_what_has_kernels_is_supported(changes, able):
    sizes = {"labels": 3, "size": 4, "patch": 2, "dim": 32, "heads": 2, "hidden": 48, "layers": 1, **changes}
    with torch.device("meta"):
        model = ViT(ViTConfig(**sizes))
        assert fp8.supports(model) is able
        assert fused_model.supports(model) or not able


def test_models_that_do_not_declare_it_are_not_supported():
    class Other(ViT):
        pass

    assert not fp8.supports(Other(ViTConfig(labels=3, size=4, patch=2, dim=32, heads=2, hidden=48, layers=1)))


def test_which_devices_can(monkeypatch):
    gpu = torch.device("cuda")
    too_old = "it needs an NVIDIA GPU since Hopper (compute capability 9.0)"
    assert fp8.unavailable(torch.device("cpu")) == "it only runs on a GPU, and the model is on cpu"
    for capability, able in (((8, 9), False), ((9, 0), True), ((12, 0), True)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, own=capability: own)
        monkeypatch.setattr(fp8, "find_spec", lambda name: name)
        assert fp8.unavailable(gpu) == (None if able else too_old)
    monkeypatch.setattr(fp8, "find_spec", lambda name: None)
    assert fp8.unavailable(gpu) == "Triton is not installed (pip install triton)"
    monkeypatch.setattr(torch.version, "hip", "6.0")
    assert fp8.unavailable(gpu) == too_old


def test_what_is_multiplied_by_cublas(monkeypatch):
    """Its arguments: the operator itself needs a GPU."""
    given = {}

    def multiply(x, weight, **options):
        given.update(options)
        scales = options["scale_a"] * options["scale_b"]
        return (x.float() @ weight.float() * scales + options["bias"]).to(options["out_dtype"])

    monkeypatch.setattr(torch, "_scaled_mm", multiply)
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(32, 48), torch.randn(5, 32)
    scale = x.abs().amax(dim=1, keepdim=True) / 448
    rows = fp8.Rows((x / scale).to(fp8.FP8), scale)
    found = fp8.Fp8Linear(layer)(rows)
    wanted = layer(x).detach()
    assert float((found - wanted).norm() / wanted.norm()) < 0.05 and found.dtype == torch.float32
    assert given["use_fast_accum"] and given["scale_b"].shape == (1, 48) and given["scale_b"].is_contiguous()
