"""Fused layers and their kernels, run by Triton's interpreter: outputs and gradients are those of plain layers."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import copy, warnings
import torch
from heed.data.packing import pack
from heed.models.transformer import Transformer, TransformerConfig
from heed.kernels import fused_model as models
from heed.kernels import fused_stack, linear, residual_norm
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
"""

LAYERS = """
from heed.tasks.sequence_loss import CrossEntropy
import torch.nn.functional as F
SIZES = [(3, 5), (1, 1), (16, 17), (2, 31)]
batch = pack([[9] * (a - 1) for a, _ in SIZES], [[7] * (b - 1) for _, b in SIZES], slots=1)
for norm, activation in (("post", F.silu), ("pre", F.relu)):
    config = TransformerConfig(vocab_size=20, dim=32, heads=2, hidden=40, encoder_layers=1, decoder_layers=1,
                               max_length=40, dropout=0.0, norm=norm)
    plain = Transformer(config)
    for part in plain.modules():
        if hasattr(part, "activation"): part.activation = activation
    for weight in plain.parameters(): torch.nn.init.normal_(weight, std=0.2, generator=generator)
    fused = copy.deepcopy(plain)
    assert fused_stack.supports(fused)
    named = dict(fused.named_parameters())
    models.use_fused_layers(fused)
    losses = [CrossEntropy(0.1)(model, batch) for model in (plain, fused)]
    torch.testing.assert_close(losses[0].total, losses[1].total, rtol=1e-5, atol=1e-4)
    for loss in losses: loss.total.backward()
    for name, weight in plain.named_parameters():
        torch.testing.assert_close(weight.grad, named[name].grad, rtol=1e-4, atol=1e-4 * float(weight.grad.abs().max() + 1), msg=name)
print("the same")
"""

MULTILINGUAL = """
from heed.models.m2m100 import M2M100, M2M100Config
from heed.models.mbart import MBart, MBartConfig
from heed.tasks.sequence_loss import CrossEntropy
SHAPE = dict(vocab_size=20, dim=32, heads=2, hidden=40, encoder_layers=1, decoder_layers=1, max_length=40, dropout=0.0, attention_dropout=0.0)
batch = pack([[9] * 2, [8, 4] * 7], [[7] * 4, [5] * 16], slots=1)
for kind, config in ((M2M100, M2M100Config), (MBart, MBartConfig)):
    plain = kind(config(**SHAPE))
    for weight in plain.parameters(): torch.nn.init.normal_(weight, std=0.2, generator=generator)
    fused = copy.deepcopy(plain)
    named = dict(fused.named_parameters())
    models.use_fused_layers(fused)
    losses = [CrossEntropy(0.1)(model, batch) for model in (plain, fused)]
    torch.testing.assert_close(losses[0].total, losses[1].total, rtol=1e-5, atol=1e-4)
    for loss in losses: loss.total.backward()
    for name, weight in plain.named_parameters():
        torch.testing.assert_close(weight.grad, named[name].grad, rtol=1e-4, atol=1e-4 * float(weight.grad.abs().max() + 1), msg=name)
print("the same")
"""

DROPOUT = """
norm = torch.nn.LayerNorm(24)
torch.nn.init.normal_(norm.weight, generator=generator)
x, y, y_bias = draw(60, 24).requires_grad_(), draw(60, 24).requires_grad_(), draw(24).requires_grad_()
torch.manual_seed(1)
total, out = residual_norm.add_norm(x, y, y_bias, norm, 0.25)
kept = ((total - x).abs() > 0).float()
assert abs(float(kept.mean()) - 0.75) < 0.05, kept.mean()
torch.testing.assert_close(total, x + (y + y_bias) * kept / 0.75)
weight, other = draw(60, 24), draw(60, 24)
found = torch.autograd.grad((out * weight).sum() + (total * other).sum(), (x, y, y_bias, norm.weight, norm.bias))
again = x + (y + y_bias) * kept / 0.75
loss = (torch.nn.functional.layer_norm(again, (24,), norm.weight, norm.bias) * weight).sum() + (again * other).sum()
for one, two in zip(found, torch.autograd.grad(loss, (x, y, y_bias, norm.weight, norm.bias)), strict=True):
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)
torch.manual_seed(1)
assert torch.equal(residual_norm.add_norm(x, y, y_bias, norm, 0.25)[0], total)
assert not torch.equal(residual_norm.add_norm(x, y, y_bias, norm, 0.25)[0], total)

up = torch.nn.Linear(24, 40)
for kind, function in ((linear.RELU, torch.relu), (linear.GELU, torch.nn.functional.gelu), (linear.SWISH, torch.nn.functional.silu)):
    out, _ = linear.linear_activation(x, up, kind, 0.25)
    kept = (out != 0).float()
    plain = function(up(x)) * kept / 0.75
    torch.testing.assert_close(out, plain, rtol=1e-5, atol=1e-5)
    weight = draw(60, 40)
    wanted = torch.autograd.grad((plain * weight).sum(), (x, up.weight, up.bias))
    for one, two in zip(torch.autograd.grad((out * weight).sum(), (x, up.weight, up.bias)), wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)
print("the same")
"""

ATTENTION = """
from heed.nn.packing import PackedMask, attend_packed
from heed.kernels.short_attention import attend_short
SIZES = [(3, 5), (1, 1), (16, 17), (2, 31)]
packed = pack([[9] * (a - 1) for a, _ in SIZES], [[9] * (b - 1) for _, b in SIZES], slots=1)
for queries, keys, causal in ((packed.offsets, packed.offsets, True), (packed.valid, packed.valid, False),
                              (packed.offsets, packed.valid, False)):
    own = queries is keys
    one = draw(len(queries.positions), 96 if own else 32).requires_grad_()
    other = None if own else draw(len(keys.positions), 64).requires_grad_()
    parts = one.chunk(3, 1) if own else (one, *other.chunk(2, 1))
    ours = attend_short(one, other, (queries.starts, keys.starts), (32, 32), head_dim=16, causal=causal)
    heads = [part.unflatten(1, (2, 16)).transpose(0, 1)[None] for part in parts]
    plain = attend_packed(*heads, PackedMask(queries, keys), causal)[0].transpose(0, 1).flatten(1)
    torch.testing.assert_close(ours, plain, rtol=0, atol=2e-6)
    weight, leaves = draw(*ours.shape), [one] if own else [one, other]
    wanted = torch.autograd.grad((plain * weight).sum(), leaves)
    for a, b in zip(torch.autograd.grad((ours * weight).sum(), leaves), wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=5e-6)

# dropout: with equal scores and one-hot values the output is the weights; the backward pass drops the same ones
starts = torch.tensor([0, 16, 32], dtype=torch.int32)
values = torch.eye(16).repeat(2, 1).requires_grad_()
one = torch.cat([torch.zeros(32, 32), values], dim=1).detach().requires_grad_()
torch.manual_seed(3)
out = attend_short(one, None, (starts, starts), (16, 16), head_dim=16, dropout=0.5)
kept = (out != 0).float()
assert 0.4 < float(kept.mean()) < 0.6
torch.testing.assert_close(out, kept * (2 / 16))
weight = draw(32, 16)
torch.manual_seed(3)
(attend_short(one, None, (starts, starts), (16, 16), head_dim=16, dropout=0.5) * weight).sum().backward()
wanted = torch.cat([(kept[i : i + 16] * (2 / 16)).T @ weight[i : i + 16] for i in (0, 16)])
torch.testing.assert_close(one.grad[:, 32:], wanted, rtol=1e-5, atol=1e-6)
p, d = torch.full((2, 16, 16), 1 / 16), weight.view(2, 16, 16)  # gradients of keys and queries, by hand
dp = d @ one.detach()[:, 32:].view(2, 16, 16).mT * kept.view(2, 16, 16) * 2
ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / 4
torch.testing.assert_close(one.grad[:, :16].view(2, 16, 16), ds @ torch.zeros(2, 16, 16), rtol=0, atol=1e-6)
print("the same")
"""

LOSS = """
from heed.kernels import cross_entropy as kernels
from heed.training.loss_gradients import loss_and_gradient
expected = torch.tensor([3, 0, -1, 40, 17])
for block, each, vocab in ((16, 4, 41), (64, 8, 64), (16, 8, 64), (8192, 8, 41)):  # with a last block beyond the vocabulary, and without
    kernels.BLOCK, kernels.LAUNCH["block"], kernels.LAUNCH["group"] = block, block, each
    for passes, smoothing, agreement in ((1, 0.1, 0.0), (1, 0.0, 0.0), (2, 0.1, 3.0)):
        scores = draw(passes, 5, vocab) * 4 + 20
        scores[:, 1] -= 300  # far from the others
        wanted = loss_and_gradient(scores.double(), expected, smoothing, agreement, None)
        for one, two in zip(kernels.cross_entropy_gradients(scores.clone(), expected, smoothing, agreement), wanted, strict=True):
            torch.testing.assert_close(one, two.float(), rtol=1e-5, atol=4e-5)  # log-probabilities are rounded at logits near -300
    scores, heard = draw(1, 5, vocab) * 4 + 20, draw(6, vocab)[:5] * 5 - 9  # and with a teacher
    for smoothing, share in ((0.1, 0.3), (0.0, 1.0)):
        wanted = loss_and_gradient(scores, expected, smoothing, 0.0, (heard, share))
        for one, two in zip(kernels.cross_entropy_gradients(scores.clone(), expected, smoothing, teacher=(heard, share)), wanted, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=2e-5)
scores, expected = draw(1, 3, 3), torch.tensor([2, 0, -1])  # fewer words than share a maximum
for one, two in zip(kernels.cross_entropy_gradients(scores.clone(), expected, 0.1), loss_and_gradient(scores, expected, 0.1, 0.0, None), strict=True):
    torch.testing.assert_close(one, two, rtol=1e-5, atol=2e-5)
print("the same")
"""


PROGRAMS = {"layers": LAYERS, "multilingual": MULTILINGUAL, "dropout": DROPOUT, "attention": ATTENTION, "loss": LOSS}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_kernels_give_what_plain_parts_give(program):
    assert_same(BEGIN + program)
