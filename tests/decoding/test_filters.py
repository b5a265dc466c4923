"""What sampling leaves of a distribution: each filter against its definition, against transformers, and in what is drawn."""

import math
import zlib

import pytest
import torch
from transformers.generation import logits_process as theirs

from heed.decoding.config import DecodingConfig
from heed.decoding.limits import no_repeat_ngram
from heed.decoding.repetition import penalize, with_repetition_penalty
from heed.decoding.sample import filter_min_p, filter_top_k_top_p, filter_typical, random_sampling, stepwise_search
from tests.decoding.test_sample import Fixed, Nothing

P = [0.3, 0.22, 0.17, 0.12, 0.08, 0.06, 0.03, 0.02]
STREAMS, STEPS = 1000, 20


def keep(probabilities, kept):
    left = [p if i in kept else 0.0 for i, p in enumerate(probabilities)]
    return [p / sum(left) for p in left]


def top_k(p, k):
    return keep(p, sorted(range(len(p)), key=lambda i: -p[i])[:k])


def top_p(p, mass):
    kept, held = [], 0.0
    for i in sorted(range(len(p)), key=lambda i: -p[i]):
        if held < mass and p[i]:
            kept.append(i)
            held += p[i]
    return keep(p, kept)


def min_p(p, share):
    return keep(p, [i for i, own in enumerate(p) if own >= share * max(p)])


def typical_p(p, mass):
    entropy = -sum(own * math.log(own) for own in p if own)
    order = sorted((i for i, own in enumerate(p) if own), key=lambda i: abs(-math.log(p[i]) - entropy))
    kept, held = [], 0.0
    for i in order:
        if held < mass:
            kept.append(i)
            held += p[i]
    return keep(p, kept)


def temperature(p, t):
    powers = [own ** (1 / t) for own in p]
    return [own / sum(powers) for own in powers]


ORDER = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "typical_p": typical_p}
OPTIONS = [
    {}, {"temperature": 0.7}, {"temperature": 1.8}, {"top_k": 3}, {"top_p": 0.75}, {"min_p": 0.25}, {"typical_p": 0.6},
    {"temperature": 1.5, "top_k": 7, "top_p": 0.95, "min_p": 0.2, "typical_p": 0.7},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_twenty_thousand_draws_follow_the_stated_distribution(options):
    expected = P
    for name, define in ORDER.items():  # in the order that is documented
        expected = define(expected, options[name]) if name in options else expected
    seeds = [zlib.crc32(repr((7, number)).encode()) for number in range(STREAMS)]
    choose, longest = random_sampling(seeds, **options), torch.full((STREAMS,), STEPS)
    found = stepwise_search(Fixed(P), Nothing(), longest, choose, first=0, last=-1)
    counts = torch.bincount(torch.tensor([h.tokens for (h,) in found]).flatten(), minlength=len(P)).double()
    due = torch.tensor(expected, dtype=torch.double) * STREAMS * STEPS
    assert counts.sum() == 20_000 and (counts[due == 0] == 0).all()
    square = ((counts - due)[due > 0] ** 2 / due[due > 0]).sum().item()
    degrees = int((due > 0).sum()) - 1
    chance = torch.special.gammaincc(torch.tensor(degrees / 2).double(), torch.tensor(square / 2).double())
    assert degrees >= 2 and chance > 0.001


def draw(rows=50, vocab=40, seed=0):
    return 3 * torch.randn(rows, vocab, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("ours", "other"),
    [
        (lambda x: filter_top_k_top_p(x, 7, 1.0), theirs.TopKLogitsWarper(7)),
        (lambda x: filter_top_k_top_p(x, 0, 0.8), theirs.TopPLogitsWarper(0.8)),
        (lambda x: filter_min_p(x, 0.1), theirs.MinPLogitsWarper(0.1)),
        (lambda x: filter_min_p(x, 1.0), theirs.MinPLogitsWarper(1.0)),
        (lambda x: filter_typical(x, 0.3), theirs.TypicalLogitsWarper(0.3)),
        (lambda x: filter_typical(x, 0.9), theirs.TypicalLogitsWarper(0.9)),
    ],
)
def test_each_filter_is_that_of_transformers(ours, other):
    logits = draw()
    expected, found = other(None, logits).softmax(dim=-1), ours(logits).softmax(dim=-1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert ((found > 0).sum(dim=-1) < logits.shape[-1]).all()


def test_all_of_them_in_the_order_of_transformers():
    logits = draw(seed=1)
    warpers = [
        theirs.TemperatureLogitsWarper(1.7), theirs.TopKLogitsWarper(20), theirs.TopPLogitsWarper(0.9),
        theirs.MinPLogitsWarper(0.03), theirs.TypicalLogitsWarper(0.8),
    ]  # fmt: skip
    expected = logits
    for own in warpers:
        expected = own(None, expected)
    found = filter_top_k_top_p((logits / 1.7).log_softmax(dim=-1), 20, 0.9)
    found = filter_typical(filter_min_p(found, 0.03), 0.8)
    torch.testing.assert_close(found.softmax(dim=-1), expected.softmax(dim=-1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("penalty", [1.2, 0.5])
def test_the_repetition_penalty_is_that_of_transformers_through_a_search(penalty):
    """Also while rows leave the batch and change their order, and with what was read before."""
    logits, before = draw(3, 6, seed=2), [[0, 1], [3], [5, 5, 2]]

    class Rows:
        def __init__(self):
            self.index = torch.arange(3)

        def reorder(self, rows):
            self.index = self.index[rows]

    class Model:
        def step(self, tokens, state):
            return logits[state.index]

    model, state = with_repetition_penalty(Model(), Rows(), penalty, before)
    state.reorder(torch.tensor([2, 0, 1]))
    texts, processor = [before[2], before[0], before[1]], theirs.RepetitionPenaltyLogitsProcessor(penalty)
    for rows, said in (([0, 1, 2], [1, 1, 4]), ([1, 2], [3, 0]), ([1], [2])):
        state.reorder(torch.tensor(rows))
        texts = [[*texts[row], token] for row, token in zip(rows, said, strict=True)]
        found = model.step(torch.tensor(said), state)
        for row, text in enumerate(texts):
            own = logits[state.state.index[row]][None]
            torch.testing.assert_close(found[row], processor(torch.tensor([text]), own)[0], rtol=0, atol=1e-12)


def test_a_penalty_of_one_is_no_penalty():
    model, state = Fixed(P), Nothing()
    assert with_repetition_penalty(model, state, 1.0, [[1]]) == (model, state)
    logits = draw(2, 5)
    assert torch.equal(penalize(logits, torch.ones(2, 5, dtype=torch.bool), 1.0), logits)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_no_n_gram_of_prompt_and_text_comes_twice_as_in_transformers(n):
    chance = torch.Generator().manual_seed(n)
    prompts = [torch.randint(0, 4, (length,), generator=chance).tolist() for length in (1, 4, 9)]
    rule, processor = no_repeat_ngram(n, prompts), theirs.NoRepeatNGramLogitsProcessor(n)
    for length in range(7):
        tokens = torch.randint(0, 4, (3, length), generator=chance)
        for sentence in (torch.tensor([0, 1, 2]), torch.tensor([2, 2, 0])):
            banned = torch.zeros(3, 5, dtype=torch.bool)
            rule(banned, tokens, sentence)
            for row, i in enumerate(sentence.tolist()):
                text = torch.tensor([[*prompts[i], *tokens[row].tolist()]])
                expected = processor(text, torch.zeros(1, 5)) == -torch.inf
                assert banned[row].tolist() == expected[0].tolist()


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"min_p": 1.5}, r"min_p is 1\.5; it must be at least 0 \(off\) and at most 1"),
        ({"min_p": -0.1}, "min_p is -0.1; it must be at least 0"),
        ({"min_p": math.nan}, "min_p is nan"),
        ({"typical_p": 0.0}, "typical_p is 0.0; it must be above 0 and at most 1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is 0.0; it must be above 0 and at most 100"),
        ({"repetition_penalty": math.inf}, "repetition_penalty is inf"),
    ],
)
def test_settings_out_of_range_are_refused(settings, error):
    with pytest.raises(ValueError, match=error):
        DecodingConfig(**settings)
