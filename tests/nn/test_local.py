"""Layers that see their neighbours: against a loop over the definition, under a mask, padded and packed."""

import math

import pytest
import torch
from torch import nn

from heed.convert.ctranslate2 import able
from heed.data.batching import collate
from heed.data.packing import pack
from heed.decoding.cuda import weights
from heed.kernels import fused_stack
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn import masks
from heed.nn.attention import Attention, attend, record
from heed.nn.local import Convolution, WindowedAttention, windowed_kernel
from heed.tasks.sequence_loss import CrossEntropy

SOURCE = [[5, 6, 7], [8], list(range(4, 19)), [], [6, 6]]
TARGET = [[7, 8], [9, 10, 11, 12], [5], [13, 14, 15], []]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def randomized(module):
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.2)
    return module.double().eval()


def random(*shape):
    return torch.randn(*shape, dtype=torch.double)


def same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("window", [1, 3, 5])
def test_windowed_attention_is_a_loop_over_neighbours(window):
    layer, x, lengths = randomized(WindowedAttention(8, 2, window)), random(2, 13, 8), (13, 6)
    found = layer(x, mask=masks.key_padding(masks.from_lengths(torch.tensor(lengths), 13)))
    own = layer.attention
    q, k, v = (part(x).unflatten(-1, (2, 4)) for part in (own.q, own.k, own.v))
    for b, length in enumerate(lengths):
        for i in range(length):
            near = range(max(0, i - window // 2), min(length, i + window // 2 + 1))
            heads = []
            for h in range(2):
                e = [math.exp(q[b, i, h] @ k[b, j, h] / 2) for j in near]
                heads.append(sum(w / sum(e) * v[b, j, h] for w, j in zip(e, near, strict=True)))
            same(found[b, i], own.out(torch.cat(heads)))


@torch.no_grad()
@pytest.mark.parametrize("keys", [5, 12, 13, 40])
def test_the_kernel_is_attention_under_the_mask(keys):
    """With few keys it calls plain attention; with many, it computes no score outside the window."""
    q, k, v = (random(2, 3, keys, 4) for _ in range(3))
    valid = masks.from_lengths(torch.tensor([keys, keys // 2]), keys)
    near = masks.build(masks.windowed(3), keys, keys)
    for mask in (near.expand(2, 1, -1, -1), near & valid[:, None, None] | torch.eye(keys, dtype=torch.bool)):
        same(windowed_kernel(3)(q, k, v, mask=mask), attend(q, k, v, mask=mask))
    same(windowed_kernel(3)(q, k, v, mask=near), attend(q, k, v, mask=near))


@torch.no_grad()
def test_a_window_over_everything_is_plain_attention():
    layer, x = randomized(WindowedAttention(8, 2, 13)), random(2, 7, 8)
    plain = Attention(8, 2).double()
    plain.load_state_dict(layer.attention.state_dict())
    same(layer(x), plain(x))


@torch.no_grad()
def test_windowed_attention_can_be_recorded():
    layer, x = randomized(WindowedAttention(8, 2, 3)), random(2, 20, 8)
    mask = masks.key_padding(masks.from_lengths(torch.tensor([20, 9]), 20))
    expected = layer(x, mask=mask)
    with record(layer) as maps:
        same(layer(x, mask=mask)[1, :9], expected[1, :9])
    same(maps[0].sum(-1), torch.ones(2, 2, 20).double())
    assert maps[0][0].triu(2).sum() == maps[0][0].tril(-2).sum() == maps[0][1, :, :9, 9:].sum() == 0


@torch.no_grad()
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_convolution_is_a_loop_over_neighbours(kernel):
    layer, x, lengths = randomized(Convolution(6, kernel)), random(2, 8, 6), (8, 5)
    found = layer(x, mask=masks.key_padding(masks.from_lengths(torch.tensor(lengths), 8)))
    weight, bias = layer.through.weight.unflatten(1, (kernel, 6)), layer.through.bias
    for b, length in enumerate(lengths):
        for i in range(length):
            total = bias.clone()
            for o in range(kernel):
                j = i + o - kernel // 2
                if 0 <= j < length:
                    total += weight[:, o] @ x[b, j]
            same(found[b, i], total[:6] * torch.sigmoid(total[6:]))


@torch.no_grad()
def test_convolution_is_torchs():
    layer, x = randomized(Convolution(6, 5)), random(2, 8, 6)
    theirs = nn.Conv1d(6, 12, 5, padding=2).double()
    theirs.weight.copy_(layer.through.weight.unflatten(1, (5, 6)).transpose(1, 2))
    theirs.bias.copy_(layer.through.bias)
    same(layer(x), nn.functional.glu(theirs(x.mT).mT, dim=-1))


def transformer(encoder, **shape):
    sizes = {"dim": 16, "heads": 2, "hidden": 24, "encoder_layers": 2, "decoder_layers": 2, "max_length": 32}
    return randomized(Transformer(TransformerConfig(vocab_size=20, encoder=encoder, window=3, **sizes, **shape)))


@torch.no_grad()
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("encoder", ["restricted", "convolution"])
def test_padding_and_positions_out_of_reach_change_nothing(encoder, norm):
    """With two layers and windows of three, position 0 sees as far as position 2."""
    model, source = transformer(encoder, norm=norm), torch.randint(3, 20, (2, 15))
    valid = masks.from_lengths(torch.tensor([15, 6]), 15)
    memory = model.encode(source, valid)
    same(memory[1, :6], model.encode(source[1:, :6])[0])
    same(memory[1, :6], model.encode(torch.where(valid, source, 7), valid)[1, :6])
    changed = source.clone()
    changed[0, 3:] = 4
    same(model.encode(changed, valid)[0, 0], memory[0, 0])
    changed[0, 2] = 3 if source[0, 2] != 3 else 4
    assert not torch.allclose(model.encode(changed, valid)[0, 0], memory[0, 0])


@pytest.mark.parametrize("slots", [1, 16])
@pytest.mark.parametrize("encoder", ["restricted", "convolution"])
def test_packed_batches_give_what_padded_batches_give(encoder, slots):
    model, losses, gradients = transformer(encoder), [], []
    for batch in (collate(SOURCE, TARGET), pack(SOURCE, TARGET, slots=slots)):
        model.zero_grad()
        losses.append(CrossEntropy(0.1)(model, batch).total)
        losses[-1].backward()
        gradients.append([weight.grad.clone() for weight in model.parameters()])
    same(losses[1], losses[0])
    for one, other in zip(*gradients, strict=True):
        same(one, other)


@torch.no_grad()
@pytest.mark.parametrize(("encoder", "layers"), [("attention", 2), ("restricted", 2), ("convolution", 0)])
def test_its_attention_can_be_traced(encoder, layers):
    model, batch = transformer(encoder), collate(SOURCE, TARGET)
    trace = model.trace(batch.source, batch.target, batch.valid)
    assert [len(trace.maps[part]) for part in ("encoder", "decoder", "cross")] == [layers, 2, 2]
    assert all(one.shape == (5, 2, 5, 16) for one in trace.maps["cross"])
    same(model.project(trace.output), model(batch.source, batch.target, batch.valid))


@pytest.mark.parametrize("encoder", ["restricted", "convolution"])
def test_fast_paths_for_plain_transformers_refuse_it(encoder):
    """CTranslate2, the search on the GPU, and fused training."""
    sizes = {"dim": 32, "heads": 2, "hidden": 64, "encoder_layers": 1, "decoder_layers": 1}
    plain, other = (Transformer(TransformerConfig(vocab_size=20, encoder=e, **sizes)) for e in ("attention", encoder))
    for supports in (able, weights.supports, fused_stack.supports):
        assert supports(plain) and not supports(other)


@pytest.mark.parametrize("setting", ["window", "kernel"])
def test_an_even_neighbourhood_is_refused(setting):
    with pytest.raises(ValueError, match=f"{setting} is 4; it must be odd, so that the window is symmetric"):
        TransformerConfig(vocab_size=20, **{setting: 4})
