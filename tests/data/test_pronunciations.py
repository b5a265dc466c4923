"""Pronouncing dictionaries: what is read, and what a model learns from."""

import lzma

import pytest

from heed.cli.main import main
from heed.data import pronunciations

DICTIONARY = """\
;;; invented
blorf B L AO1 R F
blorf(2) B L ER1 F # of another place
blorf's B L AO1 R F S
'zim Z IH1 M
3zim TH R IY1 Z IH1 M
"""


@pytest.fixture
def dictionary(tmp_path):
    path = tmp_path / "words.dict"
    path.write_text(DICTIONARY, encoding="utf-8", newline="\n")
    return path


def many(count):
    return {f"w{'a' * i}": [f"W {'AH0 ' * i}".strip(), *(["W"] if i % 3 == 0 and i else [])] for i in range(count)}


def test_variants_comments_and_stress_are_read(dictionary, tmp_path):
    found = pronunciations.read(dictionary)
    assert list(found) == ["blorf", "blorf's", "'zim", "3zim"]
    assert found["blorf"] == ["B L AO1 R F", "B L ER1 F"]
    assert pronunciations.read(dictionary, stress=False)["'zim"] == ["Z IH M"]
    (tmp_path / "words.dict.xz").write_bytes(lzma.compress(DICTIONARY.upper().encode()))
    assert pronunciations.read(tmp_path / "words.dict.xz") == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("blorf\n", "line 1, is 'blorf'; it must be a word and its phonemes"),
        ("a AH0\nblorf b l\n", "line 2, is 'blorf b l'; it must be"),
        (";;; nothing\n", "has no words"),
    ],
)
def test_what_is_no_dictionary_is_refused(tmp_path, text, said):
    (tmp_path / "bad").write_text(text, encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match=said):
        pronunciations.read(tmp_path / "bad")


def test_no_word_is_in_two_parts():
    words = many(200) | {"3zim": ["Z"]}
    parts = pronunciations.split(words, valid=10, test=30)
    assert [len(own) for own in parts] == [160, 10, 30]
    assert sorted(sum(parts, [])) == sorted(word for word in words if word != "3zim")  # noqa: RUF017 (three short lists)
    assert parts == pronunciations.split(words, valid=10, test=30) != pronunciations.split(words, 10, 30, seed=1)
    assert [len(own) for own in pronunciations.split(words)] == [176, 4, 20]
    with pytest.raises(ValueError, match="the dictionary has 200 words of letters"):
        pronunciations.split(words, valid=100, test=100)


def test_files_are_parallel_and_the_test_has_all_pronunciations(tmp_path):
    words = many(60)
    parts = pronunciations.split(words, valid=5, test=20)
    names = pronunciations.write(tmp_path, words, parts)
    read = {path.name: path.read_text("utf-8").splitlines() for path in tmp_path.iterdir()}
    assert names == ["test.phonemes", "test.2.phonemes"] and len(read) == 7
    pairs = list(zip(read["train.letters"], read["train.phonemes"], strict=True))
    assert pairs == [(" ".join(word), own) for word in parts.train for own in words[word]]
    for i, word in enumerate(parts.test):
        assert read["test.letters"][i].replace(" ", "") == word
        assert list(dict.fromkeys(read[name][i] for name in names)) == words[word]
    assert read["valid.phonemes"] == [words[word][0] for word in parts.valid]


def test_the_command_shows_a_text_or_writes_files(dictionary, tmp_path, capsys):
    assert main(["phonemes", str(dictionary), "Blorf's, 'zim!"]) == 0
    assert capsys.readouterr().out == "B L AO1 R F S , | Z IH1 M !\n"
    assert main(["phonemes", str(dictionary), "--out", str(tmp_path / "g2p"), "--no-stress"]) == 0
    assert "1 words to train on, 1 to validate on, 1 to test on" in capsys.readouterr().out
    assert main(["phonemes", str(dictionary)]) != 0
    assert "give a text to pronounce, or --out FOLDER" in capsys.readouterr().err
