"""Sentences that join a running batch find what each finds alone, in float64."""

import pytest
import torch

from heed.data.batching import by_length
from heed.decoding.beam import beam_steps
from heed.decoding.ensemble import Ensemble
from heed.decoding.refill import RefilledBatch
from heed.decoding.sample import stepwise_steps
from heed.decoding.steps import run
from heed.nn import masks
from tests.decoding.conftest import Counting

FIRST, LAST = 0, 4
SIZES = [4, 1, 3, 2, 5, 3, 1, 2, 4, 5, 2, 1, 3]
LONGEST = [9, 2, 14, 3, 6, 1, 12, 5, 2, 16, 8, 4, 7]  # so that some finish early in each batch
SOURCES = torch.randint(1, 5, (len(SIZES), max(SIZES)), generator=torch.Generator().manual_seed(3))
SEARCHES = {
    "greedy": lambda longest: stepwise_steps(longest, first=FIRST, last=LAST),
    "beams": lambda longest: beam_steps(longest, first=FIRST, last=LAST, beams=3, nbest=2),
}


def begin(model, make):
    """What begins the search of some of the sources."""

    def of(rows):
        longest = max(SIZES[row] for row in rows)
        valid = masks.from_lengths(torch.tensor([SIZES[row] for row in rows]), longest)
        return model.start(SOURCES[rows, :longest], valid), make(torch.tensor([LONGEST[row] for row in rows]))

    return of


def in_batches(model, make, batches):
    """What each sentence finds in a batch without refilling."""
    found = {}
    for rows in batches:
        state, search = begin(model, make)(rows)
        found |= zip(rows, run(search, model, state), strict=True)
    return [found[row] for row in range(len(SIZES))]


def check(found, expected):
    for own, one in zip(found, expected, strict=True):
        assert [h.tokens for h in own] == [h.tokens for h in one]
        for a, b in zip(own, one, strict=True):
            assert [a.score, *a.scores] == pytest.approx([b.score, *b.scores], abs=1e-10)


@pytest.mark.parametrize("make", SEARCHES.values(), ids=SEARCHES)
def test_each_sentence_finds_what_it_finds_alone(model, make):
    alone = in_batches(model, make, [[row] for row in range(len(SIZES))])
    for budget in (10, 20):
        check(RefilledBatch(model, begin(model, make), SIZES, budget).run(), alone)


def test_an_ensemble_does_too(model, other):
    both, make = Ensemble([model, other]), SEARCHES["beams"]
    batches = by_length(SIZES, 15)
    check(RefilledBatch(both, begin(both, make), SIZES, 15).run(), in_batches(both, make, batches))


def test_a_batch_is_filled_up_and_never_too_large(model):
    filled, plain, make = Counting(model), Counting(model), SEARCHES["greedy"]
    RefilledBatch(filled, begin(filled, make), SIZES, 20).run()
    in_batches(plain, make, by_length(SIZES, 20))
    assert max(filled.rows) <= 20 // min(SIZES)
    assert sum(filled.rows) == sum(plain.rows)
    assert len(filled.rows) < len(plain.rows)


def test_no_sentences_have_no_results(model):
    assert RefilledBatch(model, begin(model, SEARCHES["greedy"]), [], 10).run() == []
