"""Text as phonemes: what is looked up, what is refused, and its file."""

import json

import pytest

from heed.vocabularies import phonemes
from heed.vocabularies.folder import read, write

WORDS = {"blorf": ["B L AO1 R F"], "isn't": ["Z AH0 N T"], "'zim": ["Z IH1 M"], "cafe": ["K AH0 F"]}


@pytest.fixture
def vocabulary():
    return phonemes.of_dictionary(WORDS)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Blorf, isn’t 'zim?", "B L AO1 R F , | Z AH0 N T | Z IH1 M ?"),
        ("cáfe\n CAFE", "K AH0 F | K AH0 F"),
        ("'blorf' (blorf-blorf)", "B L AO1 R F | B L AO1 R F - | B L AO1 R F"),
        ("«…»", ""),
    ],
)
def test_texts_are_read_by_the_dictionary(vocabulary, text, spoken):
    (ids,) = vocabulary.encode([text])
    assert vocabulary.decode(ids) == spoken
    assert vocabulary.pieces(ids) == [{"|": "▁"}.get(piece, piece) for piece in spoken.split()]


def test_a_folder_has_the_same_vocabulary(vocabulary, tmp_path):
    vocabulary.add({"zorp": "Z AO1 F"}, "a model")
    names = write(tmp_path, (vocabulary, vocabulary))
    found, same = read(tmp_path, names)
    assert found is same and found.key() == vocabulary.key() and found.tokens == vocabulary.tokens
    assert found.encode(["zorp blorf."]) == vocabulary.encode(["zorp blorf."])


def test_unknown_words_are_named_and_can_be_added(vocabulary):
    assert vocabulary.missing(["zorp blorf zorp's.", "Zorp!"]) == ["zorp", "zorp's"]
    with pytest.raises(
        ValueError, match="'zorp' has no known pronunciation: give a model for such words, --g2p FOLDER"
    ):
        vocabulary.encode(["blorf zorp"])
    with pytest.raises(ValueError, match="runs/x pronounces 'zorp' as 'Z XX', which are not phonemes of the voice"):
        vocabulary.add({"zorp": "Z XX"}, "runs/x")
    with pytest.raises(ValueError, match="as ''"):
        vocabulary.add({"zorp": ""}, "runs/x")
    vocabulary.add({"zorp": "Z AO1 F"}, "runs/x")
    assert vocabulary.decode(vocabulary.encode(["zorp"])[0]) == "Z AO1 F"


@pytest.mark.parametrize("text", ["blorf 7", "blorf 안녕", "blorf é ß"])
def test_what_is_not_english_words_is_refused(vocabulary, text):
    with pytest.raises(ValueError, match="has no pronunciation: write it as English words"):
        vocabulary.missing([text])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "characters"}, "is not a vocabulary of phonemes"),
        ({"phonemes": ["B", "B"]}, "is not a vocabulary of phonemes"),
        ({"words": {"blorf": 1}}, "is not a vocabulary of phonemes"),
        ({"words": {"blorf": "B QQ"}}, "is damaged"),
    ],
)
def test_a_damaged_file_is_refused(vocabulary, tmp_path, changes, said):
    facts = {**json.loads(vocabulary.text()), **changes}
    (tmp_path / "phonemes.json").write_text(json.dumps(facts), encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match=said):
        phonemes.load(tmp_path / "phonemes.json")
