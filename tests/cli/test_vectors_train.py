"""heed vectors train"""

import pytest

from heed.data.vectors import read

LINES = ["the cat eats fish today", "the dog eats meat today", "a cat and a dog are playing", "they played all day", ""]


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(LINES * 12) + "\nonce\n", "utf-8")
    return tmp_path / "text.txt"


SMALL = ("--dim", 6, "--epochs", 2, "--min-count", 2, "--window", 2)


@pytest.mark.parametrize("method", ["skipgram", "glove", "fasttext"])
def test_a_text_gives_vectors_that_heed_reads(heed, text, method):
    out = text.with_name("words.vec")
    code, _, err = heed("vectors", "train", text, "--out", out, "--method", method, *SMALL)
    assert code == 0
    assert (
        "61 lines (12 of them empty), 253 words; 15 different words occur at least 2 times, 1 rarer ones are dropped"
        in err
    )
    assert "loss per pair by epoch: " in err and f"15 vectors: {out}" in err
    found = read(out)
    assert found.words[:4] == ["a", "cat", "dog", "eats"] and found.matrix.shape == (15, 6)
    assert "once" not in found.words
    again = text.with_name("again.vec")
    assert heed("vectors", "train", text, "--out", again, "--method", method, *SMALL)[0] == 0
    assert again.read_bytes() == out.read_bytes()
    assert out.with_name("words.ngrams.bin").exists() == (method == "fasttext")
    assert heed("vectors", out, "--near", "cat", "--analogy", "cat", "fish", "dog")[0] == 0


def test_fasttext_gives_a_vector_to_a_word_it_has_not_seen(heed, text):
    out = text.with_name("words.vec")
    assert heed("vectors", "train", text, "--out", out, "--method", "fasttext", *SMALL)[0] == 0
    code, shown, err = heed("vectors", out, "--near", "plays", "--count", 3)
    assert code == 0
    # playing and played have <pl pla lay <pla play <play
    ngrams = out.with_name("words.ngrams.bin")
    assert err == f"plays is not in {out}: its vector is the mean of 6 of its n-grams, from {ngrams}."
    assert "near plays" in shown
    code, _, err = heed("vectors", out, "--near", "xyz")
    assert code == 1
    assert f"xyz is not in {out}, and nothing is spelled like it; {ngrams} has none of its n-grams" in err
    ngrams.unlink()
    code, _, err = heed("vectors", out, "--near", "plays")
    assert code == 1
    assert err.endswith(f"; fastText's n-grams, which give every word a vector, would be in {ngrams}")


def test_vectors_of_another_method_do_not_keep_old_ngrams(heed, text):
    out = text.with_name("words.vec")
    for method, there in (("fasttext", True), ("skipgram", False)):
        assert heed("vectors", "train", text, "--out", out, "--method", method, *SMALL)[0] == 0
        assert out.with_name("words.ngrams.bin").exists() == there


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--window", 0], "window is 0; it must be at least 1"),
        (["--min-count", 0], "--min-count is 0; it must be at least 1"),
        (
            ["--min-count", 99],
            "no word occurs 99 times in the text: keep rarer words too, or use more text; --min-count is 99",
        ),
        (["--out", "."], "--out . is a folder; give a file name, for example words.vec"),
    ],
)
def test_what_cannot_be_trained_is_a_sentence(heed, text, words, says):
    text.write_text("\n".join(LINES[:3] * 12) + "\n", "utf-8")
    out = [] if "--out" in words else ["--out", text.with_name("words.vec")]
    code, _, err = heed("vectors", "train", text, *out, *words)
    assert code == 1
    assert says in err
    assert not text.with_name("words.vec").exists()


def test_a_text_of_no_word_or_one(heed, tmp_path):
    (tmp_path / "none.txt").write_text("\n\n")
    code, _, err = heed("vectors", "train", tmp_path / "none.txt", "--out", tmp_path / "words.vec")
    assert code == 1
    assert err == f"heed: {tmp_path}/none.txt: there are no words in the text"
    (tmp_path / "one.txt").write_text("a a a a a b\n")
    code, _, err = heed("vectors", "train", tmp_path / "one.txt", "--out", tmp_path / "words.vec")
    assert code == 1
    assert "the text has only one word that is frequent enough, 'a': vectors need at least two" in err


def test_the_help_of_train_is_its_own(heed, capsys):
    with pytest.raises(SystemExit):
        heed("vectors", "train", "--help")
    shown = capsys.readouterr().out
    assert shown.startswith("usage: heed vectors train") and "--min-count" in shown and "--picture" not in shown


def test_a_world_to_train_on(heed, tmp_path):
    code, out, _ = heed("phrasebook", "--world", "--out", tmp_path, "--train", 30)
    assert (code, out.strip()) == (0, str(tmp_path / "train.txt"))
    assert len((tmp_path / "train.txt").read_text().splitlines()) == 30
    code, _, err = heed("phrasebook", "--world", "--articles", "--out", tmp_path)
    assert code == 1 and "--articles and --world are different corpora" in err
