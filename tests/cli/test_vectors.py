"""heed vectors"""

import gzip

import numpy as np
import pytest

from heed.data.vectors import read, write
from heed.lab import word_map

WORDS = ["남자", "여자", "왕", "여왕", "왕관", "[bold]"]
MAN, WOMAN, ROYAL, OTHER = np.eye(4, dtype=np.float32)
ROWS = np.stack([MAN, WOMAN, MAN + ROYAL, WOMAN + ROYAL, ROYAL, OTHER - MAN])


@pytest.fixture
def file(tmp_path):
    write(tmp_path / "ko.vec", WORDS, ROWS)
    return tmp_path / "ko.vec"


def rows(out):
    """The words and the numbers of the tables."""
    lines = [line.split() for line in out.splitlines()]
    return [(line[0], line[1]) for line in lines if len(line) == 2 and line[1].lstrip("-").startswith(("0.", "1."))]


def test_the_nearest_words_come_first(heed, file):
    code, out, err = heed("vectors", file, "--near", "왕", "--near", "[bold]", "--count", 3)
    assert (code, err) == (0, "")
    assert "near 왕" in out and "near [bold]" in out
    assert rows(out)[:3] == [("남자", "0.707"), ("왕관", "0.707"), ("여왕", "0.500")]
    assert len(rows(out)) == 6


def test_a_man_is_to_a_king_as_a_woman_is_to_a_queen(heed, file):
    code, out, _ = heed("vectors", file, "--analogy", "남자", "왕", "여자", "--count", 1)
    assert code == 0
    assert "남자 : 왕 = 여자 : ?" in out
    assert [word for word, _ in rows(out)] == ["여왕"]


def test_a_word_that_is_not_there_is_said_with_what_was_meant(heed, file):
    without = f"; fastText's n-grams, which give every word a vector, would be in {file.with_name('ko.ngrams.bin')}"
    code, out, err = heed("vectors", file, "--near", "여앙")
    assert (code, out) == (1, "")
    assert err == f"heed: 여앙 is not in {file}: did you mean 여왕 or 여자?{without}"
    code, _, err = heed("vectors", file, "--analogy", "남자", "zzz", "여자")
    assert (code, err) == (1, f"heed: zzz is not in {file}, and nothing is spelled like it{without}")


def test_what_is_in_a_file_is_told(heed, tmp_path):
    path = tmp_path / "odd.txt.gz"
    path.write_bytes(gzip.compress(b"3 2\na 3 4\na 1 1\n"))
    code, out, _ = heed("vectors", path)
    said = " ".join(out.split())
    assert code == 0
    for part in ("text with a header (word2vec, fastText)", "dimension 2", "words 1", "mean length 5.000"):
        assert part in said
    assert f"{path} declares 3 words in its header and has 2." in said
    assert "1 duplicate words" in said


@pytest.mark.parametrize("name", ["copy.bin", "copy.vec.gz"])
def test_a_file_is_written_in_another_format(heed, file, name):
    code, _, err = heed("vectors", file, "--out", file.with_name(name))
    assert (code, err) == (0, f"6 vectors: {file.with_name(name)}")
    found = read(file.with_name(name))
    assert found.words == WORDS
    np.testing.assert_array_equal(found.matrix, ROWS)


def test_the_vectors_of_a_model_are_looked_at_and_written(heed, trained, tmp_path):
    from safetensors.torch import load_file

    from heed.vocabularies.sentencepiece import LAST, load

    code, _, _ = heed("vectors", trained, "--out", tmp_path / "own.vec")
    assert code == 0
    found = read(tmp_path / "own.vec")
    weights = load_file(trained / "model" / "model.safetensors")["tokens.weight"].numpy()
    vocabulary = load(trained / "model" / "subwords.spm")
    assert found.words == vocabulary.pieces(range(LAST + 1, len(vocabulary)))
    np.testing.assert_array_equal(found.matrix, weights[LAST + 1 :])
    word = next(word for word in found.words if word.startswith("▁") and len(word) > 2)
    own = heed("vectors", trained, "--near", word.removeprefix("▁"), "--count", 4)
    other = heed("vectors", tmp_path / "own.vec", "--near", word, "--count", 4)
    assert own[0] == 0
    assert rows(own[1]) == rows(other[1]) != []
    assert "dimension 16" in " ".join(heed("vectors", trained)[1].split())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["no.vec"], "no.vec: no such file"),
        (["FILE", "--near", "왕", "--count", "0"], "--count is 0; it must be at least 1"),
        (["FILE", "--words", "왕"], "--words selects words to plot: add --picture"),
        (["FILE", "--side", "source"], "--side is for models; FILE is a file"),
        (["FILE", "--picture", "map.png"], "--picture: choose the words to plot with --words, --near or --analogy"),
        (["FILE", "--picture", "map.gif", "--words", "왕", "여왕", "남자"], "'map.gif' must end in .png or .svg"),
        (["FILE", "--picture", "map.png", "--words", "왕", "여왕"], "A plot needs at least 3 words, and there are 2"),
    ],
)
def test_what_makes_no_sense_is_said(heed, file, words, sentence):
    code, _, err = heed("vectors", *(file if word == "FILE" else word for word in words))
    assert code == 1
    assert sentence.replace("FILE", str(file)) in err


def test_words_are_drawn_with_arrows_for_analogies(heed, file):
    from PIL import Image

    for name in ("map.png", "map.svg"):
        code, _, err = heed("vectors", file, "--analogy", "남자", "왕", "여자", "--picture", file.with_name(name))
        assert (code, err) == (0, f"Map: {file.with_name(name)}")
    with Image.open(file.with_name("map.png")) as picture:
        assert picture.size == (1118, 936)
    assert b"<svg" in file.with_name("map.svg").read_bytes()


def test_a_map_shows_what_differs_most_whatever_the_sign_and_size():
    rows = np.random.default_rng(1).normal(size=(9, 5))
    points, shares = word_map.project(rows)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    spread, directions = np.linalg.eigh(np.cov(unit.T))
    np.testing.assert_allclose(shares, spread[::-1][:2] / spread.sum(), atol=1e-10)
    by_hand = (unit - unit.mean(0)) @ directions[:, ::-1][:, :2]
    np.testing.assert_allclose(np.abs(points), np.abs(by_hand), atol=1e-10)
    np.testing.assert_allclose(word_map.project(3 * rows)[0], points, atol=1e-10)
    assert word_map.project(np.ones((4, 1)))[0].tolist() == [[0, 0]] * 4
