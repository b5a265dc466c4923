"""Layers in 8-bit floats (bench/fp8_layers.py), run by Triton's interpreter: they give what plain ones give, rounded."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import torch
import numpy as np
import triton.language as tl
from torch import nn
from triton.runtime import interpreter
from bench import fp8_kernels, fp8_layers
from bench.fp8_kernels import FP8, Launch, Tile
from bench.fp8_layers import How, Plan, Product, Rows
torch.set_grad_enabled(False)
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
plain = interpreter._convert_float
def convert(data, source, wanted, rounding):  # the interpreter's own loses what a rounded mantissa carries
    if wanted is tl.float8e4nv: return torch.from_numpy(np.ascontiguousarray(data)).to(FP8).view(torch.uint8).numpy()
    return plain(data, source, wanted, rounding)
interpreter._convert_float = convert
def quantized(x):
    scale = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 448
    return (x / scale).to(FP8).float() * scale
def near(found, wanted, most=0.01):  # an e4m3 number has an error of 1/16 at most, so sums have far less
    off = float((found - wanted).norm() / wanted.norm())
    assert off < most, off
TILES = (Tile(16, 32, 16, 2, 4, 2), Tile(32, 16, 32, 2, 4, 0))
"""

KERNELS = """
gelu = nn.GELU(approximate="tanh")
for width, launch in ((24, Launch(2, 1)), (40, Launch(3 + 1, 1))):
    fp8_kernels.LAUNCH.update(norm=launch, quantize=launch, activate=launch)
    x, y, bias, norm = draw(7, width), draw(7, width), draw(width), nn.LayerNorm(width)
    nn.init.normal_(norm.weight, generator=generator), nn.init.normal_(norm.bias, generator=generator)
    total, values, scale, limit = fp8_kernels.norm_to_fp8(x, norm, (y, bias), (3.0, 0.5))
    torch.testing.assert_close(total, x + y + bias)
    wanted = norm(total)
    near(values.float() * scale, quantized(wanted), 0.005)
    torch.testing.assert_close(scale, wanted.abs().amax(1, keepdim=True) / 448)
    torch.testing.assert_close(limit, (3 * wanted.norm(dim=1, keepdim=True) + 0.5) / 448)
    again, values, scale, limit = fp8_kernels.norm_to_fp8(x, norm)
    assert again is x and limit is None
    near(values.float() * scale, quantized(norm(x)), 0.005)
    for active in (False, True):
        values, scale = fp8_kernels.rows_to_fp8(x, gelu=active)
        near(values.float() * scale, quantized(gelu(x) if active else x), 0.005)
values, scale = fp8_kernels.rows_to_fp8(torch.zeros(3, 24))
assert not values.float().any() and scale.isfinite().all()

layers = [nn.Linear(48, 32), nn.Linear(48, 16)]
for part in (*layers[0].parameters(), *layers[1].parameters()): nn.init.normal_(part, generator=generator)
x = draw(37, 48)
rows = Rows(*fp8_kernels.rows_to_fp8(x))
weight, bias = torch.cat([own.weight for own in layers]), torch.cat([own.bias for own in layers])
wanted = (rows.values.float() * rows.scale) @ quantized(weight).T + bias
near(wanted, x @ weight.T + bias, 0.05)
for tile in (None, *TILES):
    made = Product(layers, How(tile))
    torch.testing.assert_close(made(rows), wanted, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(made(rows, bias=False), wanted - bias, rtol=1e-4, atol=1e-3)
    if tile is None: continue
    torch.testing.assert_close(made.with_gelu(rows), gelu(wanted), rtol=1e-4, atol=1e-3)
    a, b = made.limits()
    most = a * x.norm(dim=1, keepdim=True) + b
    assert (wanted.abs() <= most).all() and (wanted.abs() > most / 30).any()
    found = made.with_gelu(rows._replace(bound=most / 448))
    near(found.values.float() * found.scale, gelu(wanted), 0.05)
print("the same")
"""

MODELS = """
from heed.kernels import fused_model
from heed.models.vit import ViT, ViTConfig
one, tile = How(), How(TILES[0])
PLANS = {"cls": (Plan(), Plan(one, one, tile, tile)), "mean": (Plan(down=one), Plan(up=one), Plan(up=tile), Plan(qkv=tile, up=one, down=one))}
sizes = dict(labels=3, channels=1, size=12, patch=2, dim=32, heads=2, hidden=48, layers=2)
for pooling in ("cls", "mean"):
    model = ViT(ViTConfig(**sizes, pooling=pooling)).eval()
    for weight in model.parameters(): nn.init.normal_(weight, std=0.3, generator=generator)
    x = draw(2, 1, 12, 12)
    wanted = model.classify_images(x)
    for plan in PLANS[pooling]:
        fast = fp8_layers.use_fp8(fused_model.half_precision_copy(model, torch.float32), plan)
        found = fast.classify_images(x)
        near(found, wanted, 0.06 if any(plan) else 1e-5)
        assert not any(plan) or not torch.allclose(found, wanted, rtol=1e-3, atol=1e-3), f"nothing was rounded by {plan}"
        bodies = fast.stack.bodies
        assert [own.reads_fp8 for own in bodies] == [plan.qkv is not None, plan.up is not None] * 2
print("the same")
"""

BENCH = """
import contextlib, io
from bench import fp8_candidates, fp8_images
from bench.images import QUICK
data = fp8_candidates.LayerData(QUICK, 2, torch.device("cpu"))
with contextlib.redirect_stdout(io.StringIO()) as said:  # standard output is the answer
    rows = fp8_images.measure_layer(data, TILES[:1], torch.device("cpu"))
assert "failed" not in said.getvalue(), said.getvalue()
for row in rows: assert row["error"] < (1e-4 if row["name"] == "bfloat16" else 0.08), row
parts = ["sum and norm", "rows to e4m3", "GELU to e4m3", "qkv", "out", "up", "up with GELU", "up with GELU, to e4m3", "down"]
assert list(dict.fromkeys(row["part"] for row in rows)) == parts
assert fp8_kernels.LAUNCH["norm"] == fp8_images.fastest(rows, "sum and norm")
plans = fp8_images.plans_of(rows)
assert len(plans) == 10 and plans["qkv, up with GELU, down"].up.tile == TILES[0] and plans["qkv, up, down"].up == How()
print("the same")
"""

PROGRAMS = {"kernels": KERNELS, "models": MODELS, "bench": BENCH}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_layers_in_fp8_give_what_plain_ones_give(program):
    assert_same(BEGIN + program)
