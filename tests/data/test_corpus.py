"""A corpus of token ids: what is in it, and where everything else went."""

import json
import pickle
import random

import numpy as np
import pytest

from heed.data import corpus as corpora
from heed.data.corpus import CHUNK, Corpus
from heed.data.duplicates import SKIP_REASONS, find_skipped
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.vocabularies.ragged import as_ragged


def rejected(folder):
    rows = [line.split("\t") for line in (folder / "rejected.tsv").read_text("utf-8").splitlines()[1:]]
    return [(rule, place) for rule, place, _, _ in rows]


def held(folder):
    return [(line.source, line.target) for line in corpora.read_held_out(folder)]


def test_ids_are_what_the_subwords_say(made, learned, pairs):
    assert len(made) == len(pairs)
    for side, texts in zip((made.source, made.target), zip(*pairs, strict=True), strict=True):
        assert [ids.tolist() for ids in map(side.__getitem__, range(len(made)))] == learned.encode(texts)
        assert side.lengths.tolist() == [len(ids) for ids in learned.encode(texts)]
        assert side.ids.dtype == np.uint16


def test_the_text_comes_along_where_it_is_asked_for(made, pairs, lines, build, tmp_path):
    assert [(made.source.text[i], made.target.text[i]) for i in range(len(pairs))] == pairs
    assert build(tmp_path / "corpus", lines[:5]).source.text is None


ROWS = [[3, 0, 179, 3, 50], [179], [0], []]


@pytest.mark.parametrize("rows", ROWS)
def test_rows_taken_at_once_are_those_taken_one_by_one(made, rows):
    for side in (made.source, made.target):
        found = side.take(np.array(rows, dtype=np.int32))
        assert (len(found), found.ids.dtype) == (len(rows), side.ids.dtype)
        assert [row.tolist() for row in found] == [side[i].tolist() for i in rows]
        texts = side.text.take(np.array(rows, dtype=np.int64))
        assert [row.tobytes().decode() for row in texts] == [side.text[i] + " " for i in rows]
        assert texts.count(ord(" ")).tolist() == [len(side.text[i].split()) for i in rows]


def test_rows_are_counted_and_merged():
    rows = as_ragged([[1, 2], [], [2, 2, 3], [2]])
    assert rows.count(2).tolist() == [1, 0, 2, 1]
    assert [row.tolist() for row in rows.merge(np.array([2, 0, 1, 1]))] == [[1, 2], [], [2, 2, 3], [2]]
    assert [row.tolist() for row in rows.merge(np.array([0, 3, 1]))] == [[], [1, 2, 2, 2, 3], [2]]
    assert [row.tolist() for row in as_ragged([])] == []
    assert as_ragged(rows) is rows


def test_a_corpus_opens_the_same_files_in_another_process(made):
    other = pickle.loads(pickle.dumps(made))
    assert other.report == made.report
    assert np.array_equal(other.target.ids, made.target.ids)


ODD = [
    ("", "leer", "empty"),
    ("empty", " \u3000", "empty"),
    ("", "", "empty"),
    ("same  text", "same text ", "same"),
    ("the dog sees the sea.", "der  Hund sieht das Meer. ", "duplicate"),
    ("the sea " * 40, "das Meer " * 40, "length"),
    ("bread", "das Meer das Meer das Meer das Meer das Meer das Meer", "ratio"),
]


def test_every_rule_is_counted_and_its_pairs_are_recorded(lines, build, tmp_path):
    odd = [Line(source, target, f"odd.en:{i}") for i, (source, target, _) in enumerate(ODD)]
    corpus = build(tmp_path / "corpus", [*lines, *odd, lines[3]], max_length=60, max_ratio=5.0)
    expected = {"empty": 3, "same": 1, "duplicate": 2, "length": 1, "ratio": 1}
    assert {rule: count for rule, count in corpus.report.taken.items() if count} == expected
    assert (corpus.report.read, corpus.report.kept) == (len(lines) + 8, len(lines))
    places = [(rule, f"odd.en:{i}") for i, (_, _, rule) in enumerate(ODD)]
    assert sorted(rejected(tmp_path / "corpus")) == sorted([*places, ("duplicate", lines[3].location)])
    says = "3 for an empty side, 1 for the same text on both sides, 2 for a duplicate pair, 1 for a side"
    assert corpus.report.describe().startswith(says)


def test_filters_that_are_off_reject_nothing(lines, build, tmp_path):
    odd = [Line("same", "same", "a:1"), lines[0]]
    corpus = build(tmp_path / "corpus", [*lines, *odd], same=False, duplicates=False)
    assert corpus.report.kept == corpus.report.read == len(lines) + 2


def test_every_pair_is_kept_filtered_or_held_out_also_beyond_a_chunk(lines, learned, tmp_path, monkeypatch):
    assert len(lines) < CHUNK
    monkeypatch.setattr(corpora, "CHUNK", 7)
    odd = [Line(source, target, "odd") for source, target, _ in ODD]
    mixed = random.Random(1).choices([*lines, *odd], k=300)
    counts = []
    config = FiltersConfig(max_length=60, max_ratio=5.0)
    for holdout in (0, 1, 20, 100):
        folder = tmp_path / f"corpus-{holdout}"
        skip = find_skipped(mixed, config, holdout)
        corpus = corpora.build(folder, lambda: mixed, (learned, learned), config, skip=skip, progress=counts.append)
        report, held_out = corpus.report, held(folder) if holdout else []
        assert len(held_out) == holdout
        assert report.kept + sum(report.taken.values()) + len(held_out) == report.read == 300
        assert len(corpus) == report.kept
        assert sum(report.taken.values()) == len(rejected(folder))
    assert counts[:3] == [7, 14, 21]
    assert counts[-1] == 300


def test_held_out_pairs_are_distinct_and_none_is_trained_on(pairs, lines, build, tmp_path):
    twice = [*lines, *lines[:90]]
    for duplicates in (True, False):
        folder = tmp_path / f"corpus-{duplicates}"
        corpus = build(folder, twice, holdout=50, duplicates=duplicates, with_text=True)
        found = held(folder)
        assert len(found) == len(set(found)) == 50
        assert set(found) <= set(pairs)
        trained = [(corpus.source.text[i], corpus.target.text[i]) for i in range(len(corpus))]
        assert not set(trained) & set(found)
        assert set(trained) | set(found) == set(pairs)


def test_what_is_held_out_does_not_depend_on_the_order_of_the_lines(lines, build, tmp_path):
    build(tmp_path / "one", lines, holdout=20)
    build(tmp_path / "other", random.Random(3).sample(lines, len(lines)), holdout=20)
    assert sorted(held(tmp_path / "one")) == sorted(held(tmp_path / "other"))


def test_nothing_is_held_out_whose_text_a_filter_rejects(lines, build, tmp_path):
    odd = [Line("", f"leer {i}", f"odd.en:{i}") for i in range(100)] + [
        Line(f"x{i}", f"x{i}", "odd") for i in range(100)
    ]
    corpus = build(tmp_path / "corpus", [*lines, *odd], holdout=150)
    found = held(tmp_path / "corpus")
    assert len(found) == 150
    assert all(source and source != target for source, target in found)
    assert corpus.report.taken["empty"] == corpus.report.taken["same"] == 100
    assert corpus.report.kept == 30


def test_the_first_of_equal_pairs_stays(lines):
    mixed = random.Random(2).choices(lines[:40], k=500)
    expected = ["duplicate" if line in mixed[:i] else None for i, line in enumerate(mixed)]
    assert [SKIP_REASONS[r] for r in find_skipped(mixed, FiltersConfig())] == expected


def test_sides_are_not_mixed_up_in_a_pair():
    lines = [Line("a", "b c", "1"), Line("b c", "a", "2"), Line("a b", "c", "3"), Line("a", "b  c ", "4")]
    assert find_skipped(lines, FiltersConfig()).tolist() == [0, 0, 0, 1]


def test_a_folder_appears_only_when_it_is_complete(lines, learned, tmp_path):
    folder = tmp_path / "deep" / "corpus"

    def broken():
        yield from lines[:20]
        assert not folder.exists()
        raise ValueError("a line is damaged")

    skip = np.zeros(100, dtype=np.uint8)
    with pytest.raises(ValueError, match="a line is damaged"):
        corpora.build(folder, broken, (learned, learned), FiltersConfig(), skip=skip)
    assert not folder.exists()
    assert not list(folder.parent.iterdir())
    corpora.build(folder, lambda: lines[:20], (learned, learned), FiltersConfig(), skip=skip)
    assert [path.name for path in folder.parent.iterdir()] == ["corpus"]


def test_of_two_runs_that_build_the_same_the_first_wins(lines, build, tmp_path):
    build(tmp_path / "corpus", lines)
    before = (tmp_path / "corpus" / "corpus.json").stat().st_mtime_ns
    assert len(build(tmp_path / "corpus", lines)) == len(lines)
    assert (tmp_path / "corpus" / "corpus.json").stat().st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


def test_a_corpus_of_which_nothing_is_left_is_an_error(build, tmp_path):
    lines = [Line("", "a", "1"), Line("", "b", "2"), Line("c", "c", "3")]
    words = "no training pair is left: of 3, the filters removed 2 for an empty side, 1 for the same text on both sides"
    with pytest.raises(ValueError, match=words):
        build(tmp_path / "corpus", lines)
    assert not list(tmp_path.iterdir())


def test_a_corpus_that_is_all_held_out_is_an_error_that_says_so(lines, build, tmp_path):
    with pytest.raises(ValueError, match=r"no training pair is left: of 9, 9 are held out .*data\.holdout"):
        build(tmp_path / "corpus", lines[:9], holdout=1000)


def test_a_large_vocabulary_takes_four_bytes_a_token(lines, learned, tmp_path):
    class Large(type(learned)):
        def __len__(self):
            return 2**16 + 1

    folder = tmp_path / "corpus"
    large = Large(learned.model)
    corpus = corpora.build(
        folder, lambda: lines[:9], (learned, large), FiltersConfig(), skip=np.zeros(9, dtype=np.uint8)
    )
    assert corpus.target.ids.dtype == np.uint32
    assert json.loads((folder / "corpus.json").read_text())["dtype"] == "uint32"
    assert Corpus(folder).target[0].tolist() == learned.encode([lines[0].target])[0]
