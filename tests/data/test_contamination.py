"""Hashes of training texts: what is the same text, what is kept of a large corpus, what is found again."""

import numpy as np
import pytest

from heed.data import contamination
from heed.data.contamination import HashCollector, count_seen, count_seen_texts, normalize, text_hash, text_hashes


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The sea.", "the  SEA", True),
        ("don't", "Don’t!", True),
        ("これ は 本 です 。", "これは本です", True),
        ("Straße", "STRASSE", True),
        ("ＡＢＣ", "abc", True),
        ("cafe\u0301", "café", True),
        ("the sea", "the seas", False),
        ("की", "का", False),  # vowel signs are no punctuation
        ("1 + 2", "1 = 2", False),
    ],
)
def test_case_white_space_and_punctuation_make_no_difference(one, other, same):
    assert (normalize(one) == normalize(other)) == same
    assert (text_hash(one) == text_hash(other)) == same


def test_texts_without_letters_are_no_texts():
    assert text_hash("...") == text_hash("") == contamination.NO_TEXT
    hashes = text_hashes(["...", "a", "b"])
    assert contamination.occurs_in(hashes, text_hashes(["?", "A"])).tolist() == [False, True, False]


@pytest.mark.parametrize("limit", [1, 10, 99, 100, 1000])
def test_of_many_texts_the_smallest_hashes_stay(limit):
    texts = [f"text {i % 100}" for i in range(250)]
    collector = HashCollector(limit)
    for text in [*texts, "!"]:
        collector.add(text)
    every = np.unique(text_hashes(texts))
    assert collector.finish().tolist() == every[:limit].tolist()
    assert collector.end == (int(every[limit]) if limit < 100 else None)


def test_what_is_written_is_read(tmp_path):
    sides = {"source": HashCollector(), "target": HashCollector(50)}
    for i in range(200):
        sides["source"].add(f"text {i}")
        sides["target"].add(f"Text {i}")
    contamination.write(tmp_path / contamination.FILE, sides)
    trained = contamination.read(tmp_path / contamination.FILE)
    tested = [f"TEXT, {i}" for i in range(190, 210)]
    assert trained.seen("source", tested).tolist() == [True] * 10 + [False] * 10
    assert trained.share("source") == 1.0
    assert 0.1 < trained.share("target") < 0.5  # about 50 of 200
    found = count_seen(trained, tested, [["x"] * 20, ["y"] * 20])
    assert (found.sources, found.references, found.either, found.total) == (10, 0, 10, 20)
    assert found.describe().startswith(
        "was trained on texts of 10 of 20 test pairs (10 sources, 0 references) at least"
    )
    assert found._replace(share=1.0).describe().endswith("references): scores on them say little about unseen text")
    alone = count_seen_texts(trained, tested)
    assert alone == (10, 20, 1.0, 0) and alone.describe().startswith("was trained on 10 of the 20 test texts: scores")
    assert "test texts at least, judging by 25.0% of the training texts:" in alone._replace(share=0.25).describe()
    expected = text_hashes(f"Text {i}" for i in range(200))
    assert trained.seen("target", [f"text {i}" for i in range(200)]).sum() == 50
    assert trained.sides["target"].tolist() == np.sort(expected)[:50].tolist()


def test_a_damaged_file_is_an_error(tmp_path):
    (tmp_path / contamination.FILE).write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"trained-texts\.safetensors is damaged .* remove it, or copy it again"):
        contamination.read(tmp_path / contamination.FILE)


def test_the_file_of_a_run_is_found_from_its_model_too(tmp_path):
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "run" / "copy").mkdir()
    assert contamination.find(tmp_path / "run") is None
    (tmp_path / "run" / contamination.FILE).touch()
    assert contamination.find(tmp_path / "run") == contamination.find(tmp_path / "run" / "model")
    assert contamination.find(tmp_path / "run" / "copy") is None
