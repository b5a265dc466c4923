"""Greedy decoding and sampling."""

import zlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decoding import limits
from heed.decoding.sample import filter_top_k_top_p, greedy, random_sampling, stepwise_search
from tests.decoding.conftest import Counting

FIRST, LAST = 0, 4
LONGEST = [9, 7, 8]


def search(model, texts, longest, choose=greedy, **options):
    return stepwise_search(model, model.start(*texts), torch.tensor(longest), choose, first=FIRST, last=LAST, **options)


def tokens_of(found):
    return [[h.tokens for h in hypotheses] for hypotheses in found]


def reference_greedy(model, texts, longest):
    """The definition: no cache, no batch, the whole past read again for each token."""
    found = []
    for row, most in enumerate(longest):
        words = [FIRST]
        while len(words) <= most and words[-1] != LAST:
            logits = model(texts[0][row : row + 1], torch.tensor([words]), texts[1][row : row + 1])
            words.append(logits[0, -1].argmax().item())
        found.append([words[1:]])
    return found


def alone(texts, row):
    """One sentence, without its padding."""
    size = int(texts[1][row].sum())
    return [part[row : row + 1, :size] for part in texts]


class Fixed:
    """A model that always has the same distribution."""

    def __init__(self, probabilities):
        self.logits = torch.tensor(probabilities, dtype=torch.double).log()

    def step(self, tokens, state):
        return self.logits.expand(len(tokens), -1)


class Nothing:
    def reorder(self, rows):
        pass


def test_greedy_with_a_cache_is_greedy_without(model, texts):
    assert tokens_of(search(model, texts, [12, 12, 12])) == reference_greedy(model, texts, [12, 12, 12])


def test_greedy_in_a_batch_is_greedy_alone(model, texts):
    together = search(model, texts, LONGEST)
    for row in range(3):
        (only,) = search(model, alone(texts, row), [LONGEST[row]])
        assert tokens_of([only]) == tokens_of([together[row]])
        assert only[0].scores == pytest.approx(together[row][0].scores, abs=1e-10)


def test_greedy_scores_are_those_of_one_pass(model, texts):
    for row, (found,) in enumerate(search(model, texts, LONGEST, alpha=0.8)):
        source, valid = alone(texts, row)
        logp = model(source, torch.tensor([[FIRST, *found.tokens[:-1]]]), valid).log_softmax(-1)[0]
        assert found.scores == pytest.approx(logp[range(len(found.tokens)), found.tokens].tolist(), abs=1e-10)
        assert found.score == pytest.approx(sum(found.scores) / ((5 + len(found.tokens)) / 6) ** 0.8, abs=1e-10)


def test_rows_that_have_ended_leave_the_batch(model, texts):
    counting = Counting(model)
    found = search(counting, texts, [2, 6, 4], rules=[limits.BanTokens([LAST])])
    assert [len(h.tokens) for (h,) in found] == [2, 6, 4]
    assert counting.rows == [3, 3, 2, 2, 1, 1]


@pytest.mark.parametrize(
    "careful", [{"temperature": 1e-6}, {"top_k": 1}, {"top_p": 1e-6}, {"temperature": 5.0, "top_k": 1}], ids=str
)
def test_sampling_with_a_single_choice_is_greedy(model, texts, careful):
    assert tokens_of(search(model, texts, LONGEST, random_sampling([1, 2, 3], **careful))) == reference_greedy(
        model, texts, LONGEST
    )


def test_the_same_seeds_draw_the_same_and_others_do_not(model, texts):
    one, same, other = (
        tokens_of(search(model, texts, LONGEST, random_sampling(s))) for s in ([1, 2, 3], [1, 2, 3], [4, 5, 6])
    )
    assert one == same != other


def test_what_the_seeds_draw_is_the_definition(model, texts):
    """Gumbel's trick with a generator for each sentence: no cache, no batch, the whole past read again for each token."""
    found = tokens_of(search(model, texts, LONGEST, random_sampling([1, 2, 3])))
    for row, seed in enumerate((1, 2, 3)):
        chance, words = torch.Generator().manual_seed(seed), [FIRST]
        while len(words) <= LONGEST[row] and words[-1] != LAST:
            logp = model(texts[0][row : row + 1], torch.tensor([words]), texts[1][row : row + 1])[0, -1].log_softmax(-1)
            uniform = torch.rand(len(logp), generator=chance, dtype=torch.double)
            words.append(int((logp - (-uniform.log()).log()).argmax()))
        assert found[row] == [words[1:]]


def test_what_a_sentence_draws_does_not_depend_on_its_batch(model, texts):
    together = tokens_of(search(model, texts, LONGEST, random_sampling([11, 12, 13], temperature=1.5, top_p=0.9)))
    for row in range(3):
        choose = random_sampling([11 + row], temperature=1.5, top_p=0.9)
        assert tokens_of(search(model, alone(texts, row), [LONGEST[row]], choose)) == [together[row]]


def test_scores_are_the_models_whatever_the_temperature_and_the_rules(model, texts):
    choose, rules = random_sampling([1, 2, 3], temperature=3.0, top_k=3), [limits.BanTokens([2])]
    for row, (found,) in enumerate(search(model, texts, LONGEST, choose, rules=rules)):
        source, valid = alone(texts, row)
        logp = model(source, torch.tensor([[FIRST, *found.tokens[:-1]]]), valid).log_softmax(-1)[0]
        assert found.scores == pytest.approx(logp[range(len(found.tokens)), found.tokens].tolist(), abs=1e-10)


def counts_of(probabilities, draws, steps, **options):
    """How often each token is drawn in so many streams, `steps` times from each."""
    seeds = [zlib.crc32(repr((1, number)).encode()) for number in range(draws)]  # as a translator makes them
    found = stepwise_search(
        Fixed(probabilities),
        Nothing(),
        torch.full((draws,), steps),
        random_sampling(seeds, **options),
        first=0,
        last=-1,
    )
    said = torch.tensor([h.tokens for (h,) in found]).flatten()
    return torch.bincount(said, minlength=len(probabilities)).double()


P = torch.tensor([0.4, 0.25, 0.2, 0.1, 0.05], dtype=torch.double)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, P),
        ({"temperature": 2.0}, P**0.5),
        ({"temperature": 0.5}, P**2),
        ({"top_k": 3}, torch.tensor([0.4, 0.25, 0.2, 0, 0], dtype=torch.double)),
        ({"top_p": 0.7}, torch.tensor([0.4, 0.25, 0.2, 0, 0], dtype=torch.double)),
        ({"top_k": 3, "top_p": 0.7}, torch.tensor([0.4, 0.25, 0, 0, 0], dtype=torch.double)),
    ],
    ids=str,
)
def test_tokens_are_drawn_as_often_as_they_are_likely(options, expected):
    expected = expected / expected.sum()
    counts = counts_of(P.tolist(), draws=1500, steps=2, **options)
    assert (counts[expected == 0] == 0).all()
    due = 3000 * expected[expected > 0]
    assert ((counts[expected > 0] - due) ** 2 / due).sum() < 18.5  # chi-square of 4: one in a thousand is above


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 1000), min_size=2, max_size=8, unique=True),
    st.integers(0, 9),
    st.integers(1, 99).map(lambda n: n / 100 + 0.00037),
)
def test_the_filter_keeps_the_fewest_tokens_that_are_enough(weights, top_k, top_p):
    left = sorted(range(len(weights)), key=lambda i: -weights[i])[: top_k or len(weights)]
    kept, held = [], 0.0
    for i in left:
        if held < top_p:
            kept.append(i)
            held += weights[i] / sum(weights[j] for j in left)
    logp = torch.tensor([weights], dtype=torch.double).log().log_softmax(-1)
    found = filter_top_k_top_p(logp, top_k, top_p)
    assert (found[0] > -torch.inf).nonzero().flatten().tolist() == sorted(kept)
    torch.testing.assert_close(found[0, kept], logp[0, kept])


def test_a_rule_binds_greedy_search_and_sampling(model, texts):
    rules = [limits.BanTokens([2, 3])]
    for choose in (greedy, random_sampling([1, 2, 3], temperature=2.0)):
        for (found,) in search(model, texts, [12, 12, 12], choose, rules=rules):
            assert not {2, 3} & set(found.tokens)
    assert any({2, 3} & set(h.tokens) for (h,) in search(model, texts, [12, 12, 12]))
