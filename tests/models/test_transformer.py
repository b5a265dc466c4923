"""Our Transformer beside torch's own, from the same weights, in float64."""

import dataclasses

import pytest
import torch
from torch import nn

from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.attention import Attention, record

DIM, HEADS, HIDDEN = 512, 8, 2048  # of real size: small ones hide what large ones show
CONFIG = TransformerConfig(
    vocab_size=97, dim=64, heads=4, hidden=96, encoder_layers=2, decoder_layers=3, max_length=40, dropout=0.1
)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def drawn(module):
    """All weights from N(0, 0.2), norms and biases too: at their initial values most mistakes pass."""
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.2)
    return module.double().eval()


def copy_attention(ours: Attention, theirs: nn.MultiheadAttention):
    for part, weight, bias in zip(
        (ours.q, ours.k, ours.v), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
    ):
        part.weight.data, part.bias.data = weight.data.clone(), bias.data.clone()
    copy(ours.out, theirs.out_proj)


def copy(ours, theirs):
    ours.load_state_dict(theirs.state_dict())


def copy_layer(ours, theirs):
    copy_attention(ours.attention.body, theirs.self_attn)
    copy(ours.attention.norm, theirs.norm1)
    if ours.cross is not None:
        copy_attention(ours.cross.body, theirs.multihead_attn)
        copy(ours.cross.norm, theirs.norm2)
    copy(ours.mlp.body.up, theirs.linear1)
    copy(ours.mlp.body.down, theirs.linear2)
    copy(ours.mlp.norm, theirs.norm3 if ours.cross is not None else theirs.norm2)


def assert_same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


VALID = torch.arange(11) < torch.tensor([[11], [7]])
PAST = torch.ones(9, 9, dtype=torch.bool).triu(1)  # torch's convention here: True is dropped


@torch.no_grad()
def test_attention_is_torchs_multihead_attention():
    theirs = drawn(nn.MultiheadAttention(DIM, HEADS, batch_first=True))
    ours = Attention(DIM, HEADS).double().eval()
    copy_attention(ours, theirs)
    x, memory = torch.randn(2, 9, DIM).double(), torch.randn(2, 11, DIM).double()
    expected, weights = theirs(x, memory, memory, key_padding_mask=~VALID, average_attn_weights=False)
    mask = VALID[:, None, None]
    assert_same(ours(x, memory, mask=mask), expected)
    with record(ours) as maps:
        assert_same(ours(x, memory, mask=mask), expected)
    assert_same(maps[0], weights)
    assert_same(ours(x, causal=True), theirs(x, x, x, attn_mask=PAST, need_weights=False)[0])


@pytest.fixture
def plain_torch():
    """Torch's layers without their shortcut for nested tensors, which gives padding other numbers."""
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(True)


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_layer_encoder_and_decoder_are_those_of_torchs_transformer(norm, plain_torch):
    theirs = drawn(nn.Transformer(DIM, HEADS, 2, 2, HIDDEN, dropout=0.0, batch_first=True, norm_first=norm == "pre"))
    if norm == "post":  # torch adds a norm after the last layer, where post-norm layers need none
        theirs.encoder.norm = theirs.decoder.norm = None
    config = TransformerConfig(
        vocab_size=9, dim=DIM, heads=HEADS, hidden=HIDDEN, encoder_layers=2, decoder_layers=2, norm=norm
    )
    ours = Transformer(config).double().eval()
    for stack, other in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        for layer, their_layer in zip(stack.layers, other.layers, strict=True):
            copy_layer(layer, their_layer)
        if norm == "pre":
            copy(stack.norm, other.norm)
    source, target = torch.randn(2, 11, DIM).double(), torch.randn(2, 9, DIM).double()
    mask = VALID[:, None, None]

    assert_same(
        ours.encoder.layers[0](source, mask=mask), theirs.encoder.layers[0](source, src_key_padding_mask=~VALID)
    )
    memory = theirs.encoder(source, src_key_padding_mask=~VALID)
    assert_same(ours.encoder(source, mask=mask)[VALID], memory[VALID])
    expected = theirs.decoder.layers[0](target, memory, tgt_mask=PAST, memory_key_padding_mask=~VALID)
    assert_same(ours.decoder.layers[0](target, memory, causal=True, memory_mask=mask), expected)
    expected = theirs.decoder(target, memory, tgt_mask=PAST, memory_key_padding_mask=~VALID)
    assert_same(ours.decoder(target, memory, causal=True, memory_mask=mask), expected)


SHAPES = [
    {},
    {"norm": "pre"},
    {"positions": "learned"},
    {"positions": "none"},
    {"tied": "none", "source_vocab_size": 31},
    {"tied": "target", "source_vocab_size": 31, "output_bias": True},
]


@pytest.fixture(params=SHAPES, ids=str)
def model(request):
    return drawn(Transformer(dataclasses.replace(CONFIG, **request.param)))


def tokens(*shape):
    return torch.randint(1, 31, shape)


@torch.no_grad()
def test_cached_steps_give_what_one_pass_gives(model):
    source, target, valid = tokens(2, 11), tokens(2, 7), VALID
    state = model.start(source, valid)
    steps = [model.step(target[:, t], state) for t in range(7)]
    assert_same(torch.stack(steps, dim=1), model(source, target, valid))


@torch.no_grad()
def test_padding_does_not_matter(model):
    source, target = tokens(1, 7), tokens(1, 5)
    alone = model(source, target)
    padded = torch.cat([source, tokens(1, 4)], dim=1)
    assert_same(model(padded, target, VALID[1:]), alone)


@torch.no_grad()
def test_the_future_does_not_matter(model):
    source, target = tokens(1, 7), tokens(1, 6)
    other = torch.cat([target[:, :4], tokens(1, 2) % 5 + 40], dim=1)
    assert_same(model(source, target)[:, :4], model(source, other)[:, :4])


@torch.no_grad()
def test_order_in_the_batch_does_not_matter(model):
    source, target = tokens(3, 7), tokens(3, 5)
    assert_same(model(source.flip(0), target.flip(0)).flip(0), model(source, target))


@torch.no_grad()
def test_the_order_of_words_matters_unless_there_are_no_positions(model):
    source, target = tokens(1, 7), tokens(1, 5)
    difference = (model(source.flip(1), target) - model(source, target)).abs().max()
    assert difference < 1e-12 if model.config.positions == "none" else difference > 1e-3


@torch.no_grad()
def test_without_positions_words_in_another_order_have_the_same_states():
    model = drawn(Transformer(dataclasses.replace(CONFIG, positions="none")))
    source = torch.tensor([[5, 6, 7]])
    assert_same(model.encode(source.flip(1)), model.encode(source).flip(1))


def test_embeddings_times_the_root_of_dim_plus_positions():
    model = Transformer(CONFIG).eval()
    seen = model._embed(model.tokens, torch.tensor([[5, 6]]), model.positions(0, 2), None)
    expected = model.tokens.weight[[5, 6]] * 8 + model.positions.waves[:2]
    torch.testing.assert_close(seen[0], expected)


def test_sinusoids_are_equations_7_and_8():
    waves = Transformer(CONFIG).positions.waves
    for pos, i in [(0, 0), (3, 0), (17, 5), (39, 31)]:
        angle = torch.tensor(pos / 10000 ** (2 * i / 64), dtype=torch.float64)
        assert waves[pos, 2 * i].item() == pytest.approx(angle.sin().item(), abs=1e-6)
        assert waves[pos, 2 * i + 1].item() == pytest.approx(angle.cos().item(), abs=1e-6)


def test_initial_weights_are_of_the_paper():
    model = Transformer(dataclasses.replace(CONFIG, vocab_size=2000, dim=256, hidden=1024))
    assert model.tokens.weight.std().item() == pytest.approx(256**-0.5, rel=0.02)
    up = model.encoder.layers[0].mlp.body.up
    bound = (6 / (256 + 1024)) ** 0.5
    assert 0.99 * bound < up.weight.abs().max().item() <= bound
    assert (up.bias == 0).all()


def test_tied_weights_are_counted_once():
    count = {tied: sum(p.numel() for p in Transformer(dataclasses.replace(CONFIG, tied=tied)).parameters())
             for tied in ("all", "target", "none")}  # fmt: skip
    assert count["none"] - count["target"] == count["target"] - count["all"] == 97 * 64


def test_two_vocabularies_cannot_share_a_matrix():
    with pytest.raises(ValueError, match="tied is 'all', but the source has 31 subwords and the target 97"):
        Transformer(dataclasses.replace(CONFIG, source_vocab_size=31))


def test_heads_must_divide_dim():
    with pytest.raises(ValueError, match=r"dim \(64\) is not a multiple of heads \(5\)"):
        Transformer(dataclasses.replace(CONFIG, heads=5))
