"""The search of the GPU, here on the CPU: it finds what the plain search finds, token by token."""

import random
from itertools import chain

import pytest
import torch
from torch import nn

from heed.decoding import limits
from heed.decoding.beam import beam_search
from heed.decoding.cuda import weights
from heed.decoding.cuda.buffers import SearchRules, Size
from heed.decoding.cuda.search import SearchRunner, rounded, search
from heed.decoding.ranking import PENALTIES, STOPPING
from heed.decoding.sample import greedy, stepwise_search
from heed.models.bart import Bart, BartConfig
from heed.models.m2m100 import M2M100, M2M100Config
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
    "m2m100": lambda: M2M100(M2M100Config(**SIZES)),
}


def randomized(name):
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
    usual = SearchRules(FIRST, LAST, (), (), 0, False, False, 4, 1, 0.6, PENALTIES["wu"], "exact")
    chosen = usual._replace(**changes)
    return chosen._replace(stop="first") if chosen.beams == 1 else chosen


def plain(model, sources, most, r):
    """The same by the search for any model."""
    source = nn.utils.rnn.pad_sequence([torch.tensor(own) for own in sources], batch_first=True)
    valid = torch.arange(source.shape[1]) < torch.tensor([len(own) for own in sources])[:, None]
    most = torch.tensor(most)
    kept = [limits.BanTokens(r.never)] if r.never else []
    kept += [limits.min_length(r.min_length, LAST)] if r.min_length else []
    kept += [limits.force_begin(r.prefix)] if r.prefix else []
    kept += [limits.force_end(most, LAST)] if r.force_end else []
    more = {
        "first": FIRST, "last": LAST, "alpha": r.alpha, "penalty": r.penalty, "rules": kept,
        "renormalize": r.renormalize,
    }  # fmt: skip
    state = model.start(source, valid)
    if r.beams == 1:
        return stepwise_search(model, state, most, greedy, **more)
    return beam_search(model, state, most, beams=r.beams, nbest=r.nbest, stop=STOPPING[r.stop], **more)


def assert_same(one, other):
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
    {
        "stop": "first",
        "nbest": 2,
        "penalty": PENALTIES["length"],
        "renormalize": True,
        "never": (0, 1),
        "min_length": 3,
    },
    {"beams": 3, "prefix": (7, 9), "nbest": 3, "min_length": 5},
    {"beams": 2, "alpha": 0.0, "prefix": (8,), "stop": "heuristic"},
    {"beams": 4, "nbest": 4, "alpha": 1.5, "penalty": PENALTIES["length"], "min_length": 4},
]


@pytest.mark.parametrize("name", MODELS)
def test_it_finds_what_the_plain_search_finds(name):
    """One runner for all cases: earlier searches in the same buffers do not matter."""
    model, chance, lengths = randomized(name), random.Random(name), set()
    runner = SearchRunner(weights.read(model, torch.float64))
    for case in CASES[list(MODELS).index(name) % 2 :: 2] if name != "post" else CASES:
        sources, r = texts(chance, chance.choice([1, 3, 6])), rules(**case)
        most = [chance.randint(len(r.prefix) + 1, 12) for _ in sources]
        found = search(runner, sources, most, r)
        assert_same(plain(model, sources, most, r), found)
        lengths |= {len(h.tokens) for own in found for h in own}
    assert len(lengths) > 4


def test_it_continues_until_nothing_better_can_come():
    """With a length penalty so high that long hypotheses win, stopping a step too soon shows."""
    model, chance = randomized("marian"), random.Random(5)
    model.bias[LAST] += 2.0
    runner = SearchRunner(weights.read(model, torch.float64))
    sources, results = texts(chance, 12), {}
    for stop in STOPPING:
        r = rules(beams=2, alpha=1.3, penalty=PENALTIES["length"], stop=stop)
        results[stop] = search(runner, sources, [24] * 12, r)
        assert_same(plain(model, sources, [24] * 12, r), results[stop])
    assert results["exact"] != results["heuristic"] != results["first"]


def test_unfinished_sentences_move_to_smaller_buffers():
    model, chance = randomized("marian"), random.Random(1)
    runner, other = (SearchRunner(weights.read(model, torch.float64)) for _ in range(2))
    other.shrink_above = 10**6
    sources, r = texts(chance, 11), rules(beams=3, nbest=2, min_length=20)
    most = [chance.randint(1, 4) for _ in range(7)] + [12, 6, 14, 9]
    found = search(runner, sources, most, r)
    assert [size.sentences for size in runner.buffers] == [12, 4, 2, 1]
    assert [size.sentences for size in other.buffers] == []
    assert_same(found, search(other, sources, most, r))
    assert [size.sentences for size in other.buffers] == [12]
    assert_same(plain(model, sources, most, r), found)


def test_a_larger_search_makes_a_new_pool_and_smaller_ones_reuse_it():
    model, chance = randomized("pre"), random.Random(2)
    runner = SearchRunner(weights.read(model, torch.float64))
    for number, longest in ((1, 5), (4, 39), (2, 8), (1, 5)):
        sources, r = texts(chance, number), rules()
        found = search(runner, sources, [longest] * number, r)
        assert_same(plain(model, sources, [longest] * number, r), found)
        if longest == 39:
            pool = runner.pool
    assert runner.pool is pool
    assert set(runner.buffers) == {Size(4, 4, 64), Size(2, 4, 32), Size(1, 4, 32)}


def test_the_least_recently_used_buffers_are_freed():
    runner = SearchRunner(weights.read(randomized("pre"), torch.float64))
    runner.max_buffers = 2
    for number in (3, 2, 3, 1):
        search(runner, [[5, LAST]] * number, [4] * number, rules())
    assert [size.sentences for size in runner.buffers] == [3, 1]


def test_sizes_of_buffers():
    assert [rounded(n) for n in (1, 7, 8, 9, 15, 17, 100, 1000, 1024, 1025)] == [
        1, 7, 8, 10, 16, 20, 112, 1024, 1024, 1280,
    ]  # fmt: skip
    assert all(n <= rounded(n) <= 1.25 * n for n in range(1, 5000))


def test_only_models_of_supported_parts_are_supported():
    for name in MODELS:
        assert weights.supports(randomized(name))
    assert not weights.supports(nn.Linear(2, 2))
    model = randomized("pre")
    model.decoder.layers[0].mlp.body.up = nn.Sequential(model.decoder.layers[0].mlp.body.up)
    assert not weights.supports(model)
    model = randomized("marian")
    model.encoder.layers[0].attention.body.kernel = lambda *parts, **more: None
    assert not weights.supports(model)
    model = randomized("post")
    model.decoder.norm = nn.LayerNorm(32)
    assert not weights.supports(model)
    model = randomized("bart")
    model.__class__ = type("Other", (Bart,), {"project": lambda self, x: x})
    assert not weights.supports(model)


def test_no_positions_are_a_table_of_zeros():
    read = weights.read(Transformer(TransformerConfig(**SIZES, positions="none")), torch.float32)
    for side in (read.source, read.target):
        assert side.positions.shape == (40, 32) and not side.positions.any()


def test_weights_are_copies():
    model = randomized("post")
    read = weights.read(model, torch.float64)
    before = [read.output.clone(), read.target.layers[0][0].project_in.weight.clone(), read.target.positions.clone()]
    for weight in model.parameters():
        weight.zero_()
    assert torch.equal(before[1], read.target.layers[0][0].project_in.weight)
    assert torch.equal(before[2], read.target.positions)
    assert torch.equal(before[0], read.output)
