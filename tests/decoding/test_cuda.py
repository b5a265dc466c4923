"""Search with fixed shapes, as it runs on a card: what the plain search finds, token by token."""

import random
from itertools import chain

import pytest
import torch
from torch import nn

from heed.decoding import limits
from heed.decoding.beam import beam_search
from heed.decoding.cuda import weights
from heed.decoding.cuda.buffers import Rules, Size
from heed.decoding.cuda.search import Machine, rounded, search
from heed.decoding.ranking import PENALTIES, STOPPING
from heed.decoding.sample import greedy, stepwise_search
from heed.models.bart import Bart, BartConfig
from heed.models.marian import Marian, MarianConfig
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.models.transformer import Transformer, TransformerConfig

FIRST, LAST = 2, 3
SIZES = {
    "vocab_size": 41, "dim": 32, "heads": 2, "hidden": 48, "encoder_layers": 1, "decoder_layers": 2, "max_length": 40,
}  # fmt: skip
MODELS = {
    "pre": lambda: Transformer(TransformerConfig(**SIZES, norm="pre", tied="none", output_bias=True)),
    "post": lambda: Transformer(TransformerConfig(**SIZES, source_vocab_size=30, tied="target", positions="learned")),
    "marian": lambda: Marian(MarianConfig(**SIZES)),
    "bart": lambda: Bart(BartConfig(**SIZES)),
    "pegasus": lambda: Pegasus(PegasusConfig(**SIZES)),
}


def drawn(name):
    """A float64 model whose searches end at different lengths."""
    torch.manual_seed(1)
    model = MODELS[name]().double().eval().requires_grad_(False)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.25)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.normal_(module.weight, mean=1, std=0.2)
    return model


def texts(chance, number):
    return [[*(chance.randrange(4, 30) for _ in range(chance.randint(0, 7))), LAST] for _ in range(number)]


def rules(**changes):
    usual = Rules(FIRST, LAST, (), (), 0, False, False, 4, 1, 0.6, PENALTIES["wu"], "exact")
    chosen = usual._replace(**changes)
    return chosen._replace(stop="first") if chosen.beams == 1 else chosen


def plain(model, sources, most, r):
    """The same by the search that any model can be asked."""
    source = nn.utils.rnn.pad_sequence([torch.tensor(own) for own in sources], batch_first=True)
    valid = torch.arange(source.shape[1]) < torch.tensor([len(own) for own in sources])[:, None]
    most = torch.tensor(most)
    kept = [limits.ban_tokens(r.never)] if r.never else []
    kept += [limits.min_length(r.least, LAST)] if r.least else []
    kept += [limits.force_begin(r.begin)] if r.begin else []
    kept += [limits.force_end(most, LAST)] if r.force_end else []
    more = {
        "first": FIRST, "last": LAST, "alpha": r.alpha, "penalty": r.penalty, "rules": kept,
        "renormalize": r.renormalize,
    }  # fmt: skip
    state = model.start(source, valid)
    if r.beams == 1:
        return stepwise_search(model, state, most, greedy, **more)
    return beam_search(model, state, most, beams=r.beams, nbest=r.nbest, stop=STOPPING[r.stop], **more)


def the_same(one, other):
    assert [[h.tokens for h in own] for own in one] == [[h.tokens for h in own] for own in other]
    for a, b in zip(chain.from_iterable(one), chain.from_iterable(other), strict=True):
        torch.testing.assert_close(
            torch.tensor([a.score, *a.scores]), torch.tensor([b.score, *b.scores]), rtol=0, atol=1e-10
        )
        assert type(b.score) is float
        assert {type(i) for i in b.tokens} == {int}


CASES = [
    {"beams": 1},
    {"beams": 1, "force_end": True, "never": (0, 1, 2), "alpha": 1.0},
    {"beams": 5, "nbest": 5},
    {"stop": "heuristic", "penalty": PENALTIES["length"], "alpha": 1.0, "force_end": True, "never": (0,)},
    {"stop": "first", "nbest": 2, "penalty": PENALTIES["length"], "renormalize": True, "never": (0, 1), "least": 3},
    {"beams": 3, "begin": (7, 9), "nbest": 3, "least": 5},
    {"beams": 2, "alpha": 0.0, "begin": (8,), "stop": "heuristic"},
    {"beams": 4, "nbest": 4, "alpha": 1.5, "penalty": PENALTIES["length"], "least": 4},
]


@pytest.mark.parametrize("name", MODELS)
def test_it_finds_what_the_plain_search_finds(name):
    """One machine for all: what was searched before in the same rooms does not matter."""
    model, chance, lengths = drawn(name), random.Random(name), set()
    machine = Machine(weights.read(model, torch.float64))
    for case in CASES[list(MODELS).index(name) % 2 :: 2] if name != "post" else CASES:
        sources, r = texts(chance, chance.choice([1, 3, 6])), rules(**case)
        most = [chance.randint(len(r.begin) + 1, 12) for _ in sources]
        found = search(machine, sources, most, r)
        the_same(plain(model, sources, most, r), found)
        lengths |= {len(h.tokens) for own in found for h in own}
    assert len(lengths) > 5


def test_it_goes_on_until_nothing_better_can_come():
    """A power of the length so high that what is long wins: stopping a step too soon shows."""
    model, chance = drawn("marian"), random.Random(5)
    model.bias[LAST] += 2.0
    machine = Machine(weights.read(model, torch.float64))
    sources, results = texts(chance, 12), {}
    for stop in STOPPING:
        r = rules(beams=2, alpha=1.3, penalty=PENALTIES["length"], stop=stop)
        results[stop] = search(machine, sources, [24] * 12, r)
        the_same(plain(model, sources, [24] * 12, r), results[stop])
    assert results["exact"] != results["heuristic"] != results["first"]


def test_sentences_that_are_left_move_to_a_smaller_room():
    model, chance = drawn("marian"), random.Random(1)
    machine, other = (Machine(weights.read(model, torch.float64)) for _ in range(2))
    other.smallest = 10**6
    sources, r = texts(chance, 11), rules(beams=3, nbest=2, least=20)
    most = [chance.randint(1, 4) for _ in range(7)] + [12, 6, 14, 9]
    found = search(machine, sources, most, r)
    assert [size.sentences for size in machine.rooms] == [12, 4, 2, 1]
    assert [size.sentences for size in other.rooms] == []
    the_same(found, search(other, sources, most, r))
    assert [size.sentences for size in other.rooms] == [12]
    the_same(plain(model, sources, most, r), found)


def test_a_larger_search_makes_new_ground_and_smaller_ones_stay_on_it():
    model, chance = drawn("pre"), random.Random(2)
    machine = Machine(weights.read(model, torch.float64))
    for number, longest in ((1, 5), (4, 39), (2, 8), (1, 5)):
        sources, r = texts(chance, number), rules()
        found = search(machine, sources, [longest] * number, r)
        the_same(plain(model, sources, [longest] * number, r), found)
        if longest == 39:
            ground = machine.ground
    assert machine.ground is ground
    assert set(machine.rooms) == {Size(4, 4, 64), Size(2, 4, 32), Size(1, 4, 32)}


def test_rooms_that_were_not_used_for_long_are_given_up():
    machine = Machine(weights.read(drawn("pre"), torch.float64))
    machine.most_rooms = 2
    for number in (3, 2, 3, 1):
        search(machine, [[5, LAST]] * number, [4] * number, rules())
    assert [size.sentences for size in machine.rooms] == [3, 1]


def test_sizes_of_rooms():
    assert [rounded(n) for n in (1, 7, 8, 9, 15, 17, 100, 1000, 1024, 1025)] == [
        1, 7, 8, 10, 16, 20, 112, 1024, 1024, 1280,
    ]  # fmt: skip
    assert all(n <= rounded(n) <= 1.25 * n for n in range(1, 5000))


def test_only_models_of_known_parts_are_known():
    for name in MODELS:
        assert weights.known(drawn(name))
    assert not weights.known(nn.Linear(2, 2))
    model = drawn("pre")
    model.decoder.layers[0].mlp.body.up = nn.Sequential(model.decoder.layers[0].mlp.body.up)
    assert not weights.known(model)
    model = drawn("marian")
    model.encoder.layers[0].attention.body.kernel = lambda *parts, **more: None
    assert not weights.known(model)
    model = drawn("post")
    model.decoder.norm = nn.LayerNorm(32)
    assert not weights.known(model)
    model = drawn("bart")
    model.__class__ = type("Other", (Bart,), {"project": lambda self, x: x})
    assert not weights.known(model)


def test_weights_are_copies():
    model = drawn("post")
    read = weights.read(model, torch.float64)
    before = [read.output.clone(), read.target.layers[0][0].into.weight.clone(), read.target.places.clone()]
    for weight in model.parameters():
        weight.zero_()
    assert torch.equal(before[1], read.target.layers[0][0].into.weight)
    assert torch.equal(before[2], read.target.places)
    assert torch.equal(before[0], read.output)
