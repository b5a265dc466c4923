"""Length penalties and stopping rules: against their definitions, and where they give different results."""

import math

import pytest
import torch

from heed.decoding.beam import beam_search
from heed.decoding.config import DecodingConfig
from heed.decoding.ranking import (
    PENALTIES,
    STOPPING,
    length_power,
    stop_exact,
    stop_first,
    stop_heuristic,
    wu_penalty,
)
from heed.decoding.sample import stepwise_search
from tests.decoding.conftest import Counting
from tests.decoding.test_beam import FIRST, LAST, NO_LIMIT, exhaustive, search

A, END = 0, 2


class ByPosition:
    """A model of three tokens, A, B and END, whose output depends on the position alone."""

    def __init__(self, *probabilities):
        self.logits = torch.tensor(probabilities, dtype=torch.double).log()

    def start(self):
        return Position()

    def step(self, tokens, state):
        state.position += 1
        return self.logits[min(state.position, len(self.logits)) - 1].expand(len(tokens), -1)


class Position:
    position = 0

    def reorder(self, rows):
        pass


def best(model, longest, **options):
    ((found,),) = beam_search(model, model.start(), torch.tensor([longest]), first=A, last=END, alpha=1.0, **options)
    return found


def test_every_setting_has_its_part_and_every_part_its_setting():
    for name, parts in (("penalty", PENALTIES), ("stopping", STOPPING)):
        assert DecodingConfig.__annotations__[name].__args__ == tuple(parts)
    assert PENALTIES[DecodingConfig().penalty] is wu_penalty
    assert STOPPING[DecodingConfig().stopping] is stop_exact


@pytest.mark.parametrize("length", [1, 2, 7])
def test_penalties_are_what_they_are_called(length):
    assert wu_penalty(length, 0.6) == pytest.approx(math.exp(0.6 * math.log((5 + length) / 6)))
    assert length_power(length, 0.6) == pytest.approx(math.exp(0.6 * math.log(length)))
    assert wu_penalty(length, 0.0) == length_power(length, 0.0) == wu_penalty(1, 3.0) == length_power(1, 3.0) == 1


@pytest.mark.parametrize("alpha", [0.6, 1.0, 2.0])
def test_a_wide_beam_finds_the_best_of_all_by_length(model, texts, alpha):
    longest = [4, 1, 3]
    found = search(model, texts, longest, beams=4**3 * 5, nbest=3, alpha=alpha, penalty=length_power)
    for row in range(3):
        scores = [
            (total / len(tokens) ** alpha, tokens) for total, tokens in exhaustive(model, texts, row, longest[row], 0.0)
        ]
        expected = sorted(scores, reverse=True)[:3]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in expected]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in expected], abs=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_an_exact_search_by_length_misses_nothing(model, texts, alpha):
    options = {"beams": 3, "alpha": alpha, "penalty": length_power}
    early, late = Counting(model), Counting(model)
    found = search(early, texts, [15, 9, 12], **options)
    patient = search(late, texts, [15, 9, 12], nbest=NO_LIMIT, **options)
    for (one,), (same, *_) in zip(found, patient, strict=True):  # sums of other batches, rounded otherwise
        assert one.tokens == same.tokens
        assert [one.score, *one.scores] == pytest.approx([same.score, *same.scores], abs=1e-12)
    assert sum(early.rows) < sum(late.rows) or alpha == 2.0


@pytest.mark.parametrize("stop", STOPPING.values())
@pytest.mark.parametrize("penalty", PENALTIES.values())
def test_when_a_sentence_is_done_does_not_depend_on_its_batch(model, texts, stop, penalty):
    options = {"beams": 3, "nbest": 3, "alpha": 1.0, "stop": stop, "penalty": penalty}
    together = search(model, texts, [9, 7, 8], **options)
    for row in range(3):
        size = int(texts[1][row].sum())
        alone = search(model, [part[row : row + 1, :size] for part in texts], [[9, 7, 8][row]], **options)
        assert [h.tokens for h in together[row]] == [h.tokens for h in alone[0]]


def test_the_more_careful_a_search_the_longer_and_the_better(model, texts):
    steps, scores = [], []
    for stop in (stop_first, stop_heuristic, stop_exact):
        counting = Counting(model)
        found = search(counting, texts, [12, 12, 12], beams=4, nbest=4, alpha=1.0, penalty=length_power, stop=stop)
        steps.append(sum(counting.rows))
        scores.append([hypotheses[0].score for hypotheses in found])
    assert steps == sorted(steps)
    assert steps[0] < steps[-1]
    assert all(a <= b <= c for a, b, c in zip(*scores, strict=True))


def test_wu_likes_shorter_sequences_than_length_does():
    model = ByPosition([0.5, 0.2, 0.3], [0.3, 0.2, 0.5], [0.01, 0.01, 0.98])
    short, long = best(model, 5, beams=2, penalty=wu_penalty), best(model, 5, beams=2, penalty=length_power)
    assert short.tokens == [A, END]
    assert short.score == pytest.approx(math.log(0.5 * 0.5) / (7 / 6))
    assert long.tokens == [A, A, END]
    assert long.score == pytest.approx(math.log(0.5 * 0.3 * 0.98) / 3)


def test_the_first_that_end_need_not_be_the_best():
    """After two steps [END] and [A, END] are found; [A, A], unfinished, scores more than [END] as it stands."""
    model = ByPosition([0.5, 0.2, 0.3], [0.3, 0.2, 0.5], [0.01, 0.01, 0.98])
    hasty, careful = (best(model, 5, beams=2, penalty=length_power, stop=stop) for stop in (stop_first, stop_heuristic))
    assert hasty.tokens == [A, END]
    assert careful.tokens == [A, A, END]


def test_an_unfinished_sequence_that_scores_less_as_it_stands_may_still_win():
    """The log of 0.4 is less than that of 0.6, but over ten tokens, of which nine cost next to nothing, it is more."""
    model = ByPosition([0.4, 1e-9, 0.6], [0.99, 1e-9, 0.01])
    guess, proof = (best(model, 10, beams=1, penalty=length_power, stop=stop) for stop in (stop_heuristic, stop_exact))
    assert guess.tokens == [END]
    assert proof.tokens == [A] * 10
    assert proof.score == pytest.approx(math.log(0.4 * 0.99**9) / 10)


def test_greedy_search_scores_by_its_penalty(model, texts):
    for penalty in PENALTIES.values():
        found = stepwise_search(
            model, model.start(*texts), torch.tensor([9, 7, 8]), first=FIRST, last=LAST, alpha=0.8, penalty=penalty
        )
        for (h,) in found:
            assert h.score == pytest.approx(sum(h.scores) / penalty(len(h.tokens), 0.8))
