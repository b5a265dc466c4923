"""Recurrent sequence to sequence: by its formulas, step by step, in any batch, and from nothing but its vector."""

import dataclasses
import itertools

import pytest
import torch
from torch import nn

from heed.convert.ctranslate2 import able
from heed.data.batching import collate
from heed.data.packing import pack
from heed.decoding.beam import beam_search
from heed.decoding.cuda import weights
from heed.kernels import fused_stack
from heed.models.folder import load, save
from heed.models.seq2seq import PRESETS, SCORES, Seq2Seq, Seq2SeqConfig
from heed.nn.recurrent import State
from heed.tasks.sequence_loss import CrossEntropy, RDrop

SIZES = {"dim": 6, "hidden": 8, "encoder_layers": 2, "decoder_layers": 2, "max_length": 30, "dropout": 0.0}
LOOKING = [{"attention": name, "order": order} for name in SCORES for order in ("bahdanau", "luong")]
KINDS = [
    {"attention": "off", "bidirectional": False, "cell": "lstm"},
    {"attention": "off", "bidirectional": False, "cell": "gru", "reverse_source": True},
    {"attention": "off", "bidirectional": True, "cell": "rnn"},
    {"attention": "additive", "order": "bahdanau", "cell": "gru"},
    {"attention": "dot", "order": "luong", "cell": "lstm", "encoder_layers": 1},
    {"attention": "general", "order": "luong", "feeding": True, "cell": "lstm"},
    {"attention": "content", "order": "luong", "feeding": True, "bidirectional": False, "reverse_source": True},
    {"attention": "scaled-dot", "order": "bahdanau", "cell": "rnn", "tied": "none", "source_vocab_size": 17},
]
VALID = torch.arange(7) < torch.tensor([[7], [4], [6]])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def ids(kind):
    return "-".join(str(value) for value in kind.values())


def drawn(std=0.4, **kind):
    """All weights drawn, biases too: at their initial values most mistakes pass."""
    model = Seq2Seq(Seq2SeqConfig(vocab_size=20, **{**SIZES, **kind})).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=std)
    return model


@pytest.fixture(params=KINDS, ids=ids)
def model(request):
    return drawn(**request.param)


def tokens(*shape):
    return torch.randint(3, 17, shape)


def same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def cell(rnn, x, memory):
    """One step through all layers of a recurrent network, by its cells, each of which has a test of its own."""
    _, state = rnn.step(x[None], State([tuple(part[None] for part in own) for own in memory]))
    return [tuple(part[0] for part in own) for own in state.layers]


def plainly(model, source, target):
    """The scores for one sentence by the papers' formulas, one step and one place at a time."""
    c, d = model.config, model.decoder
    w = dict(model.named_parameters())
    x = (model.source_tokens or model.tokens).weight[source] * c.dim**0.5
    h, last = model.encoder(x.flip(0)[None] if c.reverse_source else x[None])
    h = h[0].flip(0) if c.reverse_source else h[0]
    s = [tuple(part[0] for part in own) for own in last.layers]
    if "bridge.through.weight" in w:  # one vector, of which each layer has its part
        vector = torch.tanh(w["bridge.through.weight"] @ last.top[0] + w["bridge.through.bias"])
        each = iter(vector.split(c.hidden))
        s = [tuple(next(each) for _ in range(d.rnn.parts)) for _ in range(c.decoder_layers)]
    said, scores, alphas = torch.zeros(c.dim).double(), [], []

    def look(query):
        energy = [d.score(query[None, None], d.score.keys(hj[None, None]))[0, 0, 0].exp() for hj in h]
        alphas.append(torch.stack(energy) / sum(energy))
        return sum(alpha * hj for alpha, hj in zip(alphas[-1], h, strict=True))

    for token in target:
        y = model.tokens.weight[token] * c.dim**0.5
        if c.attention == "off":
            s = cell(d.rnn, y, s)
            said = w["decoder.out.weight"] @ s[-1][0] + w["decoder.out.bias"]
        elif c.order == "bahdanau":
            context = look(s[-1][0])
            s = cell(d.rnn, torch.cat([y, context]), s)
            said = torch.tanh(w["decoder.out.weight"] @ torch.cat([s[-1][0], context, y]) + w["decoder.out.bias"])
        else:
            s = cell(d.rnn, torch.cat([y, said]) if c.feeding else y, s)
            context = look(s[-1][0])
            said = torch.tanh(w["decoder.out.weight"] @ torch.cat([context, s[-1][0]]) + w["decoder.out.bias"])
        scores.append((model.output or model.tokens).weight @ said + model.bias)
    return torch.stack(scores), alphas


@torch.no_grad()
@pytest.mark.parametrize("kind", [*KINDS, *LOOKING], ids=ids)
def test_it_is_its_formulas_and_padding_changes_nothing(kind):
    model, source, target = drawn(**kind), tokens(3, 7), tokens(3, 5)
    found = model(source, target, VALID)
    watched = model.trace(source, target, VALID)
    same(model.project(watched.output), found)
    for row, length in enumerate((7, 4, 6)):
        expected, alphas = plainly(model, source[row, :length], target[row])
        same(found[row], expected)
        if alphas:
            same(watched.maps["cross"][0][row, 0, :, :length], torch.stack(alphas))
            assert watched.maps["cross"][0][row, 0, :, length:].abs().sum() == 0
    other = model(torch.where(VALID, source, 5), target, VALID)
    assert torch.equal(found, other)


@torch.no_grad()
def test_steps_give_what_one_pass_gives(model):
    source, target = tokens(3, 7), tokens(3, 6)
    state = model.start(source, VALID)
    steps = [model.step(target[:, t], state) for t in range(6)]
    same(torch.stack(steps, dim=1), model(source, target, VALID))


@torch.no_grad()
def test_rows_change_places_as_a_search_has_them(model):
    source, target, rows = tokens(3, 7), tokens(3, 6), torch.tensor([2, 0, 2, 1])
    state = model.start(source, VALID)
    for t in range(3):
        model.step(target[:, t], state)
    state.reorder(rows)
    steps = [model.step(target[rows, t], state) for t in range(3, 6)]
    same(torch.stack(steps, dim=1), model(source, target, VALID)[rows, 3:])


@torch.no_grad()
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3], KINDS[5]], ids=ids)
def test_beam_search_with_enough_beams_finds_the_best_of_all(kind):
    """Of five tokens, at most three long: all 5 + 25 + 125 are tried."""
    model = Seq2Seq(Seq2SeqConfig(vocab_size=5, **{**SIZES, **kind})).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.9)
    source = torch.tensor([[1, 2, 3, 4], [3, 3, 1, 0]])
    valid = torch.tensor([[True] * 4, [True] * 3 + [False]])
    state = model.start(source, valid)
    found = beam_search(model, state, torch.tensor([3, 3]), first=0, last=4, beams=64, alpha=0.0)
    for row in range(2):
        words = list(itertools.product(range(5), repeat=3))
        inputs = torch.tensor([[0, *own[:-1]] for own in words])
        logp = model(source[[row] * 125], inputs, valid[[row] * 125]).log_softmax(-1)
        said = [own[: own.index(4) + 1] if 4 in own else own for own in words]
        every = {own: sum(logp[i, t, token].item() for t, token in enumerate(own)) for i, own in enumerate(said)}
        best = max(every, key=every.get)
        assert tuple(found[row][0].tokens) == best and abs(found[row][0].score - every[best]) < 1e-10


@pytest.mark.parametrize("kind", KINDS[:3], ids=ids)
def test_from_the_source_nothing_but_the_vector_reaches_the_decoder(kind):
    """Another source with the same vector gives the same; and no state but the one it ended in has a gradient."""
    model, target = drawn(**kind), tokens(2, 5)
    memory = model.encode(tokens(2, 7))
    assert (memory.values, memory.keys, memory.mask) == (None, None, None)
    said = model.decode(target, memory)
    other = model.encode(tokens(2, 3))
    assert not torch.allclose(model.decode(target, other), said)
    assert torch.equal(model.decode(target, dataclasses.replace(other, start=memory.start)), said)

    states = []
    model.encoder.register_forward_hook(lambda module, given, out: states.append(out[0].retain_grad() or out[0]))
    model(tokens(2, 7), target).sum().backward()
    assert states[0].grad is None or states[0].grad.abs().sum() == 0


@pytest.mark.parametrize("attention", SCORES)
def test_with_attention_every_state_of_the_encoder_reaches_the_decoder(attention):
    model = drawn(attention=attention)
    states = []
    model.encoder.register_forward_hook(lambda module, given, out: states.append(out[0].retain_grad() or out[0]))
    model(tokens(2, 7), tokens(2, 5)).square().sum().backward()
    assert (states[0].grad.abs().sum(dim=-1) > 0).all()


@torch.no_grad()
def test_a_reversed_source_is_read_from_its_end():
    """What the encoder ends in is that of the turned source, and what stands at a place is still of that place."""
    kind = {"attention": "dot", "bidirectional": False, "cell": "gru"}
    plain, source = drawn(**kind), tokens(3, 7)
    turned = Seq2Seq(dataclasses.replace(plain.config, reverse_source=True)).double().eval()
    turned.load_state_dict(plain.state_dict())
    for row, length in enumerate((7, 4, 6)):
        expected = plain.encode(source[row : row + 1, :length].flip(1))
        found = turned.encode(source[row : row + 1], VALID[row : row + 1])
        same(found.start.top, expected.start.top)
        same(found.values[:, :length], expected.values.flip(1))


SOURCE = [[5, 6, 7], [8], [9, 10, 11, 12, 13, 14], [], [6, 6]]
TARGET = [[7, 8], [9, 10, 11, 12], [5], [13, 14, 15], []]


@pytest.mark.parametrize("slots", [1, 16])
def test_sentences_end_to_end_give_what_rows_give(model, slots):
    losses, gradients = [], []
    for batch in (collate(SOURCE, TARGET), pack(SOURCE, TARGET, slots=slots)):
        model.zero_grad()
        losses.append(CrossEntropy(0.1)(model, batch))
        losses[-1].total.backward()
        gradients.append([weight.grad.clone() for weight in model.parameters()])
    same(losses[1].total, losses[0].total)
    same(losses[1].nll, losses[0].nll)
    assert losses[0].count == losses[1].count
    for one, other in zip(*gradients, strict=True):
        same(one, other)


def test_r_drop_takes_it_too(model):
    assert RDrop(0.1, 5.0)(model, collate(SOURCE, TARGET)).total.isfinite()


@torch.no_grad()
def test_in_training_dropout_falls_on_what_is_read_and_on_what_is_said():
    model, source, target = drawn(dropout=0.5).train(), tokens(3, 7), tokens(3, 50)
    given = []
    model.dropout.register_forward_hook(lambda module, args, out: given.append(args[0].shape[:2]))
    said = model.decode(target, model.encode(source, VALID))
    assert given == [(3, 7), (3, 50), (3, 50)]
    assert 0.4 < (said == 0).double().mean() < 0.6  # what comes from a tanh is not zero else
    assert (model.eval().decode(target, model.encode(source, VALID)) != 0).all()


@torch.no_grad()
def test_a_folder_gives_back_the_model(model, tmp_path):
    save(tmp_path, model.float(), {})
    again, source, target = load(tmp_path).eval(), tokens(3, 7), tokens(3, 5)
    assert again.config == model.config
    assert torch.equal(again(source, target, VALID), model(source, target, VALID))


def test_what_is_made_for_transformers_leaves_it_alone(model):
    """The engines for CTranslate2 and the GPU, and fused training."""
    assert not able(model) and not weights.supports(model) and not fused_stack.supports(model)


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3], KINDS[4]], ids=ids)
def test_it_learns_to_copy(kind):
    sizes = {"dim": 12, "hidden": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    model = Seq2Seq(Seq2SeqConfig(vocab_size=9, **kind | sizes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    sources = [list(word) for word in itertools.product(range(4, 7), repeat=2)]
    batch = collate(sources, sources)
    for _ in range(60):
        loss = CrossEntropy(0.0)(model, batch)
        (loss.total / loss.count).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.total / loss.count < 0.05


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hidden": 7}, "hidden is 7; it must be even"),
        ({"feeding": True}, "feeding is true, which needs order = 'luong'"),
        ({"feeding": True, "order": "luong", "attention": "off"}, "feeding is true"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be at least 0 and below 1"),
        ({"decoder_layers": 0}, "decoder_layers is 0; it must be at least 1"),
    ],
)
def test_what_cannot_be_built_is_said(change, says):
    with pytest.raises(ValueError, match=says):
        Seq2SeqConfig(vocab_size=20, **{**SIZES, **change})


def test_one_vocabulary_for_both_sides_must_be_one():
    with pytest.raises(ValueError, match="tied is 'all', but the source has 30 subwords and the target 20"):
        Seq2Seq(Seq2SeqConfig(vocab_size=20, source_vocab_size=30))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_a_size_that_both_directions_of_the_encoder_can_halve(preset):
    config = Seq2SeqConfig(vocab_size=9, **PRESETS[preset], bidirectional=True)
    assert config.hidden in (config.dim, 2 * config.dim)
