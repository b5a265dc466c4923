"""One text as a stream: every token once, in its order."""

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.data import streams
from heed.data.batching import DataPosition
from heed.data.streams import IGNORED, Windows, join_lines, row_count
from heed.vocabularies import words
from heed.vocabularies.sentencepiece import SubwordsConfig

LINES = ["the cat sat", "", "on the mat", "the dog"]


def epoch(windows: Windows, number: int = 0) -> list:
    return [windows.make(DataPosition(number, i)) for i in range(len(windows))]


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 9), st.integers(0, 3))
def test_every_token_is_expected_once_after_the_one_before_it(size, rows, length, number):
    ids = np.arange(10, 10 + size)
    found = epoch(Windows(ids, 3, rows=rows, length=length, seed=1), number)
    pairs = [
        (t, e) for w in found for t, e in zip(w.tokens.flatten().tolist(), w.expected.flatten().tolist(), strict=True)
    ]
    due = sorted((e, t) for t, e in pairs if e != IGNORED)
    assert due == [(token, 3 if token == 10 else token - 1) for token in ids.tolist()]
    assert sum(w.count for w in found) == size
    assert [w.begins for w in found] == [True] + [False] * (len(found) - 1)


def test_a_row_continues_where_its_last_window_ended():
    windows = epoch(Windows(np.arange(100), 3, rows=4, length=10))
    for one, other in pairwise(windows):
        assert (other.tokens[:, 0] == one.expected[:, -1]).all()


def test_each_epoch_starts_elsewhere_and_the_same_seed_at_the_same_offset():
    first = [[tuple(w.expected.flatten().tolist()) for w in epoch(Windows(np.arange(50), 3, rows=2, length=5, seed=s), n)]
             for s, n in ((1, 1), (1, 1), (1, 2), (2, 1))]  # fmt: skip
    assert first[0] == first[1]
    assert first[0] != first[2] != first[3] != first[0]


def test_the_offset_of_an_epoch_is_drawn_from_its_seed_and_number():
    for seed, number in ((1, 1), (1, 2), (2, 1)):
        first = Windows(np.arange(50), 3, rows=2, length=5, seed=seed).make(DataPosition(number, 0)).expected[0, 0]
        assert first == np.random.default_rng([seed, number]).integers(50)
    assert Windows(np.arange(50), 3, rows=2, length=5, seed=1).make(DataPosition(0, 0)).expected[0, 0] == 0


def test_starting_at_a_position_continues_there():
    windows = Windows(np.arange(50), 3, rows=2, length=5, seed=1)
    whole = list(islice(windows.start(DataPosition()), 12))
    for i in (0, 4, 5, 6):
        again = next(windows.start(whole[i][0]))
        assert again[0] == whole[i + 1][0]
        assert (again[1].tokens == whole[i + 1][1].tokens).all()


def test_processes_share_the_rows():
    whole = epoch(Windows(np.arange(97), 3, rows=6, length=5))
    parts = [epoch(Windows(np.arange(97), 3, rows=6, length=5, share=(rank, 3))) for rank in range(3)]
    for i, window in enumerate(whole):
        assert np.concatenate([part[i].tokens for part in parts]).tolist() == window.tokens.tolist()
        assert sum(part[i].count for part in parts) == window.count
    with pytest.raises(ValueError, match="6 rows, which 4 processes cannot divide evenly"):
        Windows(np.arange(97), 3, rows=6, length=5, share=(0, 4))


def test_a_prepared_text_holds_all_lines_with_their_ends(tmp_path):
    vocabulary = words.learn(LINES, SubwordsConfig(kind="words", least=1))
    found = streams.build(tmp_path / "stream", iter(LINES), vocabulary, held_out=2)
    assert found.ids.tolist() == join_lines(vocabulary.encode(LINES), 3).tolist()
    assert len(found) == sum(len(line.split()) + 1 for line in LINES)
    assert (found.unknown, found.longest, found.report.read, found.report.held_out) == (0, 3, 6, 2)
    rare = words.learn(LINES, SubwordsConfig(kind="words", least=2))
    assert "5 of them (41.7 %) unknown words" in streams.build(tmp_path / "rare", LINES, rare).summary()


def test_a_text_without_a_word_is_refused(tmp_path):
    vocabulary = words.learn(LINES, SubwordsConfig(kind="words"))
    with pytest.raises(ValueError, match="3 lines but no words"):
        streams.build(tmp_path / "stream", ["", " ", ""], vocabulary)
    assert not (tmp_path / "stream").exists()


def test_rows_by_the_budget():
    assert row_count(10_000, 700, 35) == 20
    assert row_count(100, 700, 35) == 2
    assert row_count(10, 700, 35) == 1
    with pytest.raises(ValueError, match=r"training\.batch_tokens is 20; it must hold at least one window"):
        row_count(100, 20, 35)
