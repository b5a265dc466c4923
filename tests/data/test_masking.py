"""Masked words, measured on 100,000 tokens against their definition. Bounds are five standard deviations or more."""

import numpy as np
import pytest

from heed.data.masking import LONGEST, Masking, ordinary_ids, uniform, word_starts
from heed.vocabularies import wordpiece
from tests.data.mixed import training

VOCAB, SPECIAL, MASK, ROWS, LENGTH = 500, 6, 4, 800, 125


def corrupt(seed=1, **options):
    """Rows of tokens, of which a few are special, corrupted; the rows before and after, and what was chosen, as one text."""
    random = np.random.default_rng(seed)
    masking = Masking(MASK, np.arange(VOCAB) >= SPECIAL, **options)
    before = random.integers(0, VOCAB, (ROWS, LENGTH))
    after, chosen = np.empty_like(before), np.zeros(before.shape, dtype=bool)
    for i, row in enumerate(before):
        after[i], positions = masking(row, np.zeros(LENGTH, dtype=bool), np.random.default_rng([seed, i]))
        chosen[i, positions] = True
        assert (np.diff(positions) > 0).all()
    return before, after, chosen


def within(count, total, share, deviations=5.0):
    """Whether a count of independent draws is near its mean."""
    return abs(count - total * share) <= deviations * np.sqrt(total * share * (1 - share))


@pytest.mark.parametrize("starts", [None, np.arange(VOCAB) % 3 > 0], ids=["tokens", "whole words"])
def test_fifteen_in_a_hundred_are_hidden_of_which_eighty_become_the_mask_and_ten_another_token(starts):
    before, after, chosen = corrupt(word_starts=starts)
    ordinary, hidden = int((before >= SPECIAL).sum()), int(chosen.sum())
    assert ordinary > 98_000
    # the number of a row is its share, rounded up or down at random; of whole words a few may not fit in the end
    rounding = 5 * np.sqrt(ROWS / 4)
    assert 0.15 * ordinary - rounding - (0 if starts is None else 0.02 * hidden) <= hidden <= 0.15 * ordinary + rounding
    masked, same = after == MASK, after == before
    assert within((chosen & masked).sum(), hidden, 0.8)
    assert within((chosen & same).sum(), hidden, 0.1)
    assert within((chosen & ~same & ~masked).sum(), hidden, 0.1)


def test_special_tokens_are_never_hidden_and_never_drawn_and_no_token_replaces_itself():
    before, after, chosen = corrupt(masked=0.0, random=1.0)
    assert (before[chosen] >= SPECIAL).all() and (after[chosen] >= SPECIAL).all()
    assert (after[chosen] != before[chosen]).all() and (after[~chosen] == before[~chosen]).all()
    drawn = np.bincount(after[chosen], minlength=VOCAB)[SPECIAL:]
    mean = chosen.sum() / (VOCAB - SPECIAL)
    assert (abs(drawn - mean) < 6.5 * np.sqrt(mean)).all()  # every ordinary token is as likely as any other


def test_a_word_is_hidden_whole_or_not_at_all():
    starts = np.arange(VOCAB) % 3 > 0
    for spans in (False, True):
        before, _, chosen = corrupt(word_starts=starts, spans=spans)
        continues = (before >= SPECIAL) & ~starts[before]
        continues[:, 1:] &= before[:, :-1] >= SPECIAL
        inner = continues[:, 1:]
        assert inner.sum() > 10_000 and (chosen[:, 1:][inner] == chosen[:, :-1][inner]).all()


def test_spans_have_geometric_lengths_and_are_corrupted_alike():
    before, _, chosen = corrupt(word_starts=np.ones(VOCAB, dtype=bool), spans=True)
    assert abs(chosen.sum() / (before >= SPECIAL).sum() - 0.15) < 0.001
    runs = [len(run) for row in chosen for run in "".join("x" if one else " " for one in row).split()]
    assert 2.5 < np.mean(runs) < 4.5 and np.mean(np.array(runs) == 1) < 0.5  # single tokens have runs of 1.2
    alone = corrupt(share=0.02, word_starts=np.ones(VOCAB, dtype=bool), spans=True)
    for was, now, hidden in zip(*alone, strict=True):
        kinds = {int(kind) for kind in np.where(now == MASK, 0, np.where(now == was, 1, 2))[hidden]}
        assert len(kinds) <= 2  # a row has one span, or two of which the last was shortened
    assert max(runs) <= 3 * LONGEST


def test_a_corruption_depends_on_its_generator_alone():
    one, two = corrupt(), corrupt()
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert not (corrupt(seed=2)[2] == one[2]).all()


def test_the_ordinary_tokens_of_a_vocabulary_are_all_but_the_special_ones():
    vocabulary = wordpiece.learn(training(), 500)[0]
    ordinary, pieces = ordinary_ids(vocabulary), vocabulary.pieces(range(len(vocabulary)))
    assert [piece for piece, own in zip(pieces, ordinary, strict=True) if not own] == [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
    ]  # fmt: skip
    starts = word_starts(vocabulary)
    [ids] = vocabulary.encode(["readings of it"])
    assert starts[ids[0]] and starts[ids].sum() == 3 < len(ids)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"share": 1.2}, "task.share is 1.2; it must be from 0 to 1"),
        ({"masked": 0.8, "random": 0.3}, "task.masked is 0.8, task.random is 0.3; together they must be at most 1"),
    ],
)
def test_shares_that_cannot_be_are_refused(options, says):
    with pytest.raises(ValueError) as error:
        Masking(MASK, np.ones(VOCAB, dtype=bool), **options)
    assert str(error.value) == says


def test_numbers_of_a_row_depend_on_nothing_but_the_seed_and_the_row():
    drawn = uniform((1, 2), np.arange(2000), 50)
    assert np.array_equal(drawn[[7, 3]], uniform((1, 2), np.array([7, 3]), 50))
    assert np.array_equal(drawn[:, :9], uniform((1, 2), np.arange(2000), 9))
    assert len(np.unique(np.concatenate([drawn, uniform((1, 3), np.arange(2000), 50)]))) == 200_000
    assert drawn.min() >= 0 and drawn.max() < 1
    counts = np.histogram(drawn, 20, (0, 1))[0]
    assert (abs(counts - 5000) < 5 * np.sqrt(5000)).all()
    for one, other in ((drawn[:, :-1], drawn[:, 1:]), (drawn[:-1], drawn[1:])):  # neighbours are independent
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5 / np.sqrt(one.size)


def test_all_rows_at_once_are_what_each_is_alone():
    random = np.random.default_rng(5)
    masking = Masking(MASK, np.arange(VOCAB) >= SPECIAL)
    rows = random.integers(0, VOCAB, (20, LENGTH))
    rows[4, 30:] = 0  # special tokens, as padding is
    drawn = random.random((20, masking.draws(LENGTH)))
    source, places, hidden = masking.rows(rows, drawn)
    assert hidden[4].sum() < 6 < hidden[5].sum()
    for i in range(20):
        one = masking.rows(rows[i : i + 1], drawn[i : i + 1])
        assert all(np.array_equal(part[i], own[0]) for part, own in zip((source, places, hidden), one, strict=True))
        assert (rows[i, places[i, hidden[i]]] >= SPECIAL).all()
