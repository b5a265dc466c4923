"""Whole words as a vocabulary."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.vocabularies import folder, words
from heed.vocabularies.sentencepiece import SubwordsConfig
from heed.vocabularies.vocabulary import Vocabulary
from heed.vocabularies.words import Words

TEXTS = ["the cat sat on the mat", "the dog sat", "a cat <unk> </s>"]


def learned(texts=TEXTS, **changes) -> Words:
    return words.learn(texts, SubwordsConfig(kind="words", **changes))


def test_words_are_ordered_by_how_often_they_occur_and_the_rare_are_unknown():
    found = learned()
    assert found.words == ["<pad>", "<unk>", "<s>", "</s>", "the", "cat", "sat"]
    assert found.counts == [0, 6, 0, 3, 3, 2, 2]  # unknown: on, mat, dog, a, <unk> and </s>
    assert isinstance(found, Vocabulary)
    assert len(learned(size=5)) == 5
    assert "mat" in learned(least=1).ids


def test_special_tokens_in_a_text_are_unknown_words_and_unk_is_the_unknown_word():
    found = learned()
    assert found.encode(["the <unk> </s> <s> <pad> cat"]) == [[4, 1, 1, 1, 1, 5]]
    assert found.decode([2, 4, 1, 5, 3, 0]) == "the <unk> cat"
    assert found.pieces([2, 4, 1, 3]) == ["<s>", "▁the", "▁<unk>", "</s>"]


def test_text_is_lowercased_and_normalized():
    found = learned(["CAFE\u0301 café"], lower=True)
    assert found.encode(["Café"]) == [[4]]
    assert found.decode([4]) == "café"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('He said, "I don\'t know (really)!"', ["He", "said", ",", '"', "I", "don't", "know", "(", "really", ")", "!", '"']),
        ("It cost $1,000.50 at 10:30; well-known.", ["It", "cost", "$", "1,000.50", "at", "10:30", ";", "well-known", "."]),
        ("나는 책을 읽어요.", ["나는", "책을", "읽어요", "."]),
        ("a <unk> b", ["a", "<unk>", "b"]),
    ],
)  # fmt: skip
def test_punctuation_is_split_from_words_and_joined_again(text, parts):
    found = learned([text], cut="punctuation", least=1)
    assert found.split(text) == parts
    ids = found.encode([text])[0]
    assert found.decode(ids) == text
    assert "".join(found.pieces(ids)).replace("▁", " ").strip() == text
    assert sum(piece.startswith("▁") for piece in found.pieces(ids)) == len(text.split())


@given(st.lists(st.sampled_from(["the", "cat", ",", "x", "세", "<unk>"]), max_size=8))
def test_what_is_known_comes_back(parts):
    text = " ".join(parts)
    assert learned([text, "a"], least=1).decode(learned([text, "a"], least=1).encode([text])[0]) == text


@pytest.mark.parametrize("joint", [True, False])
def test_a_folder_gives_back_what_was_put_into_it(tmp_path, joint):
    one = learned(cut="punctuation", lower=True)
    other = one if joint else learned(["b b b"])
    names = folder.write(tmp_path, (one, other))
    found = folder.read(tmp_path, names)
    assert [part.key() for part in found] == [one.key(), other.key()]
    assert (found[0] is found[1]) == joint
    assert (found[0].words, found[0].counts, found[0].cut, found[0].lower) == (
        one.words,
        one.counts,
        "punctuation",
        True,
    )
    assert pickle.loads(pickle.dumps(one)).encode(TEXTS) == one.encode(TEXTS)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("the\t3\n", "its first line is 'the"),
        ("heed-words\tcut=letters\tlower=true\n", "is not a Heed word list"),
        ("heed-words\tcut=spaces\tlower=true\n<pad>\t0\n", "the first words must be <pad>, <unk>, <s>, </s>"),
        ("heed-words\tcut=spaces\tlower=true\n<pad>\t0\n<unk>\t0\n<s>\t0\n</s>\t0\nthe three\n", "line 6, is 'the three'"),
        ("heed-words\tcut=spaces\tlower=true\n<pad>\t0\n<unk>\t0\n<s>\t0\n</s>\t0\na\t1\na\t1\n", "'a' occurs twice"),
    ],
)  # fmt: skip
def test_a_damaged_list_is_refused(tmp_path, content, error):
    (tmp_path / "words.txt").write_text(content)
    with pytest.raises(ValueError, match=error):
        words.load(tmp_path / "words.txt")


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"least": 0}, "subwords.least is 0"), ({"size": 4}, "subwords.size is 4; 4 are special tokens, so it must be at least 5"), ({"least": 9}, "no word occurs 9 times")],
)  # fmt: skip
def test_settings_that_leave_nothing_are_refused(changes, error):
    with pytest.raises(ValueError, match=error):
        learned(**changes)
