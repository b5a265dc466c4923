"""Hashes of training texts: what is the same text, what is kept of a large corpus, what is found again."""

import numpy as np
import pytest

from heed.data import contamination
from heed.data.contamination import (
    HashCollector,
    TrainedTexts,
    count_seen,
    count_seen_lines,
    count_seen_texts,
    normalize,
    text_hash,
    text_hashes,
)


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


def hashes(**sides):
    return {side: np.sort(text_hashes(texts)) for side, texts in sides.items()}


PAIRS = [("the sea", "das Meer"), ("a house", "ein Haus"), ("the dog", "der Hund")]


@pytest.mark.parametrize("several", [False, True])
def test_pairs_that_were_trained_the_other_way_round_are_seen(several):
    sides = dict(zip(("source", "target"), zip(*PAIRS, strict=True), strict=True))
    trained = TrainedTexts(hashes(**sides), {}, several=several)
    tested = ["das Meer", "Ein Haus!", "der Mond", "a house", "..."], ["The sea", "a hut", "the dog", "eine Hütte", "?"]
    first, second = trained.seen_pairs(*tested)
    assert first.tolist() == [True, several, False, True, False]
    assert second.tolist() == [True, False, several, False, False]
    found = count_seen(trained, tested[0], [tested[1], ["nothing"] * 5])
    assert found == ((3, 2, 4, 5, 1.0, 0) if several else (2, 1, 2, 5, 1.0, 0))


def test_the_texts_of_the_model_that_training_started_from_are_kept_and_counted(tmp_path, monkeypatch):
    first = TrainedTexts(hashes(text=["a line that was read long ago and is long"]), {})
    second = TrainedTexts(hashes(source=["das Meer"], target=["the sea"]), {}).after(first.as_before())
    third = TrainedTexts(hashes(source=["the dog"], target=["der Hund"]), {}).after(second.as_before())
    (tmp_path / contamination.FILE).write_bytes(third.to_bytes())
    trained = contamination.read(tmp_path / contamination.FILE)
    assert trained.known and sorted(trained.sides) == ["before", "source", "target"] and not trained.ends
    assert len(trained.sides["before"]) == 3
    found = count_seen(trained, ["The sea", "the dog", "new"], [["neu"] * 3, ["x", "y", "das Meer!"]])
    assert found == (2, 1, 3, 3, 1.0, 2)
    assert found.describe() == (
        "was trained on texts of 3 of 3 test pairs (2 sources, 1 reference), 2 of them only before fine-tuning: scores "
        "on them say little about unseen text"
    )
    alone = count_seen_texts(trained, ["das Meer", "the dog", "new"])
    assert (
        alone == (2, 3, 1.0, 1)
        and "2 of the 3 test texts, 1 of them only before fine-tuning: scores" in alone.describe()
    )
    lines = count_seen_lines(trained, ["A line that was read long ago, and is long.", "the dog", "new"])
    assert (lines.lines, lines.before) == (1, 1) and "1 of them only before fine-tuning: scores" in lines.describe()


def test_of_many_texts_from_before_a_sample_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(contamination, "MAX_HASHES", 50)
    texts = [f"text {i}" for i in range(120)]
    every = np.sort(text_hashes(texts))
    whole = TrainedTexts(hashes(source=texts[:60], target=texts[60:]), {}).as_before()
    assert whole.sides["before"].tolist() == every[:50].tolist() and whole.ends == {"before": int(every[50])}
    end = int(every[20])
    cut = TrainedTexts(hashes(source=texts), {"source": end, "target": end + 1}).as_before()
    assert cut.sides["before"].tolist() == every[:20].tolist() and cut.ends == {"before": end}
    after = TrainedTexts(hashes(source=["a"]), {}).after(cut)
    assert after.share("source") == end / 2**64
    found = count_seen_texts(after, [text for text in texts if text_hash(text) < end] + ["a"])
    assert found[:2] == (21, 21) and found.before == 20
    assert " test texts at least, 20 of them only before fine-tuning, judging by " in found.describe()
    for odd in (0, 2**64):
        assert len(TrainedTexts(hashes(source=texts[:3]), {"source": odd}).as_before().sides["before"]) == 3 * bool(odd)


def test_that_the_texts_from_before_are_not_known_is_kept(tmp_path):
    trained = TrainedTexts(hashes(source=["a"]), {}).after(contamination.NOT_KNOWN)
    (tmp_path / contamination.FILE).write_bytes(trained.to_bytes())
    again = contamination.read(tmp_path / contamination.FILE)
    assert not again.known and list(again.sides) == ["source"]
    tuned = TrainedTexts(hashes(source=["b"]), {}).after(again.as_before())
    assert not tuned.known and tuned.seen("before", ["a", "b"]).tolist() == [True, False]


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
