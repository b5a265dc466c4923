"""Documents cut to windows, and windows at random offsets: every token, and which one is read before it."""

from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heed.data import streams
from heed.data.batching import DataPosition, plan, plan_packed
from heed.data.documents import Boundaries, CorpusRange, DocumentBatches, RandomWindows, cut_documents
from heed.data.readers import Line
from heed.data.streams import IGNORED
from heed.vocabularies import words
from heed.vocabularies.sentencepiece import SubwordsConfig

LAST, PAD = 3, 0
TEXT = ["", "a b", "c", "", "", "d", "e f", "  ", "g"]
LINES = [Line(text, text, f"one:{i}", 0) for i, text in enumerate(TEXT, 1)]
LINES += [Line(text, text, f"two:{i}", 1) for i, text in enumerate(["h", "i", "", "j"], 1)]


def documents(sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Tokens that count up from 10, and where each document begins."""
    return np.arange(10, 10 + sum(sizes)), np.cumsum([0, *sizes[:-1]])


def batches(sizes, window=4, grouping=plan_packed, codes=(), corpora=None, **options) -> DocumentBatches:
    ids, starts = documents(sizes)
    corpora = np.zeros(len(sizes), dtype=int) if corpora is None else np.array(corpora)
    pieces = cut_documents(ids, starts, corpora, window, LAST, codes)
    return DocumentBatches(ids, pieces, budget=12, pad=PAD, grouping=grouping, seed=1, **options)


def pairs(batch) -> list[tuple[int, int]]:
    """(token read, token expected after it), padding aside."""
    both = zip(batch.tokens.flatten().tolist(), batch.expected.flatten().tolist(), strict=True)
    return [(token, expected) for token, expected in both if expected != IGNORED]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("file", [0, 9]), ("paragraph", [0, 1, 5, 8, 9, 12]), ("line", [0, 1, 2, 5, 6, 8, 9, 10, 12])],
)
def test_what_a_document_is(kind, expected):
    boundaries = Boundaries(kind)
    assert list(boundaries.watch(LINES)) == [line.source for line in LINES]
    assert boundaries.lines == expected
    assert boundaries.corpora == [int(number >= 9) for number in expected]
    assert boundaries.starts([2] * len(LINES)).tolist() == [2 * number for number in expected]


def test_a_prepared_text_knows_its_documents(tmp_path):
    vocabulary = words.learn([line.source for line in LINES], SubwordsConfig(kind="words", least=1))
    boundaries = Boundaries("paragraph")
    found = streams.build(tmp_path / "stream", boundaries.watch(LINES), vocabulary, documents=boundaries)
    ends = [
        found.ids[start:end].tolist() for start, end in zip(found.documents, [*found.documents[1:], None], strict=True)
    ]
    texts = [["d", "e", "f"], ["g"]]
    assert [[vocabulary.words[i] for i in ids if i != LAST] for ids in ends][2:4] == texts
    assert sum(map(len, ends)) == len(found) and found.corpora.tolist() == [0, 0, 0, 0, 1, 1]


@given(
    st.lists(st.integers(1, 11), min_size=1, max_size=12),
    st.integers(1, 5),
    st.sampled_from([plan, plan_packed]),
    st.integers(0, 2),
)
def test_every_token_is_expected_once_after_the_one_before_it(sizes, window, grouping, epoch):
    made = batches(sizes, window, grouping)
    found = [pair for rows in made.plan(epoch) for pair in pairs(made.make(rows))]
    starts = set(documents(sizes)[1] + 10)
    assert sorted(found, key=lambda pair: pair[1]) == [
        (LAST if token in starts else token - 1, token) for token in range(10, 10 + sum(sizes))
    ]
    assert made.pieces.cut == sum(size > window for size in sizes)
    assert sum(made.make(rows).count for rows in made.plan(epoch)) == sum(sizes)


@pytest.mark.parametrize("grouping", [plan, plan_packed])
def test_every_window_begins_with_the_code_of_its_corpus(grouping):
    made = batches([6, 2, 9], grouping=grouping, codes=[100, None, 102], corpora=[0, 1, 2])
    found = dict((expected, token) for rows in made.plan(0) for token, expected in pairs(made.make(rows)))
    assert [found[token] for token in (10, 14, 16, 18, 22, 26)] == [100, 100, LAST, 102, 102, 102]
    assert all(found[token] == token - 1 for token in (11, 15, 17, 19, 23))


def test_a_corpus_is_read_as_often_as_its_weight_says():
    made = batches([2] * 10, corpora=[0] * 4 + [1] * 6, weights=[2.0, 0.5])
    for epoch in range(2):
        rows = np.concatenate(made.plan(epoch))
        assert np.bincount(made.pieces.corpora[rows]).tolist() == [8, 3]
    both = np.concatenate([np.concatenate(made.plan(epoch)) for epoch in range(2)])
    assert sorted(both[both >= 4].tolist()) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("grouping", [plan, plan_packed])
def test_batches_go_on_from_a_position_and_are_shared(grouping):
    made = batches([3, 9, 1, 4, 4, 2, 7], grouping=grouping)
    whole = list(islice(made.start(DataPosition()), 14))
    for i in (0, 2, 5, 8):
        after, batch = next(made.start(whole[i][0]))
        assert after == whole[i + 1][0] and pairs(batch) == pairs(whole[i + 1][1])
    turns = [made.start(DataPosition(), worker, 2) for worker in range(2)]
    assert [pairs(next(turns[i % 2])[1]) for i in range(6)] == [pairs(batch) for _, batch in whole[:6]]
    parts = [
        batches([3, 9, 1, 4, 4, 2, 7], grouping=grouping, share=(rank, 3)).start(DataPosition()) for rank in range(3)
    ]
    for _, batch in whole:
        own = [next(part)[1] for part in parts]
        assert sorted(pair for part in own for pair in pairs(part)) == sorted(pairs(batch))
        assert sum(part.count for part in own) == batch.count


def test_windows_at_random_offsets_are_parts_of_the_text():
    ids = np.arange(10, 110)
    made = RandomWindows(ids, LAST, rows=4, length=6, seed=1)
    assert len(made) == 4  # 100 tokens, 24 a batch
    offsets = set()
    for index in range(40):
        window = made.make(DataPosition(*divmod(index, 4)))
        assert window.tokens.shape == (4, 6) and window.begins and window.count == 24
        first = window.expected[:, :1]
        assert (window.expected == first + torch.arange(6)).all()
        assert all(token == (LAST if expected == 10 else expected - 1) for token, expected in pairs(window))
        offsets |= set(first.flatten().tolist())
    assert min(offsets) == 10 and max(offsets) <= 104


def test_random_windows_depend_on_seed_and_position_alone():
    made = RandomWindows(np.arange(200), LAST, rows=6, length=5, seed=1)
    whole = list(islice(made.start(DataPosition()), 16))
    assert pairs(next(made.start(whole[9][0]))[1]) == pairs(whole[10][1])
    assert pairs(next(made.start(DataPosition(), 1, 2))[1]) == pairs(whole[1][1])
    parts = [RandomWindows(np.arange(200), LAST, rows=6, length=5, seed=1, share=(rank, 2)) for rank in range(2)]
    assert [pair for part in parts for pair in pairs(part.make(DataPosition(0, 3)))] == pairs(
        made.make(DataPosition(0, 3))
    )
    other = RandomWindows(np.arange(200), LAST, rows=6, length=5, seed=2)
    assert pairs(other.make(DataPosition())) != pairs(whole[0][1])


def test_random_windows_lie_in_one_corpus_and_begin_with_its_code():
    corpora = [CorpusRange(0, 50, 3.0, 1000), CorpusRange(50, 100)]
    made = RandomWindows(np.arange(10, 110), LAST, rows=8, length=10, seed=1, corpora=corpora)
    assert len(made) == 2  # 3 x 50 + 50 tokens, 80 a batch
    rows = [row for index in range(50) for row in made.make(DataPosition(index // 2, index % 2)).tokens.tolist()]
    inside = [row for row in rows if row[0] == 1000]
    assert 0.68 < len(inside) / len(rows) < 0.82  # 3 of 4
    assert all(row[1] >= 10 and row[-1] < 60 for row in inside)
    assert all(row[1] >= 60 and row[-1] < 110 and row[0] in (LAST, row[1] - 1) for row in rows if row[0] != 1000)
    with pytest.raises(ValueError, match=r"a corpus has 5 tokens, but task.window is 10: lower it"):
        RandomWindows(np.arange(100), LAST, rows=8, length=10, corpora=[CorpusRange(0, 5)])
