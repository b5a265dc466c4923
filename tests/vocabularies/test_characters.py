"""Text by characters and by bytes comes back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.vocabularies import characters, folder
from heed.vocabularies.characters import Bytes, Characters
from heed.vocabularies.codes import code_id, codes_of
from heed.vocabularies.sentencepiece import SPECIAL_TOKENS, SubwordsConfig
from heed.vocabularies.transcripts import TranscriptCharacters

TEXTS = ["to be,  or", " not\tto be", "세상"]


def learned(kind: str, codes=(), **settings) -> Characters:
    return characters.learn(kind, TEXTS, SubwordsConfig(kind=kind, **settings), codes)


@given(st.text())
def test_bytes_are_those_of_utf_8(text):
    if any(0xD800 <= ord(character) < 0xE000 for character in text):
        return
    ids = Bytes().encode([text])[0]
    assert bytes(i - 4 for i in ids) == text.encode() and Bytes().decode(ids) == text


@pytest.mark.parametrize("kind", ["characters", "bytes"])
@pytest.mark.parametrize("codes", [[], ["Poems", "o"]])
def test_a_folder_gives_back_what_was_put_into_it(tmp_path, kind, codes):
    own = learned(kind, [f"<{code}>" for code in codes])
    found, other = folder.read(tmp_path, folder.write(tmp_path, (own, own)))
    assert found is other and type(found) is type(own) and found.key() == own.key() and len(found) == len(own)
    assert found.codes == own.codes == codes_of(found)
    assert found.encode(TEXTS) == own.encode(TEXTS)
    assert [found.decode([*own.codes.values(), 2, *ids, 3]) for ids in own.encode(TEXTS)] == TEXTS
    assert set(own.codes.values()) | set(SPECIAL_TOKENS.never) == set(own.special.never)


def test_characters_are_in_the_order_of_frequency_and_others_unknown():
    vocabulary = learned("characters")
    assert len(vocabulary) == 4 + len(set("".join(TEXTS)))
    assert vocabulary.characters[:2] == [" ", "o"]
    assert vocabulary.encode(["ox"]) == [[5, 1]] and vocabulary.decode([5, 1]) == "o\ufffd"
    assert vocabulary.pieces(vocabulary.encode(["o b"])[0]) == ["o", "▁", "b"]
    assert learned("characters", size=6).characters == [" ", "o"]
    assert Bytes().pieces(Bytes().encode(["é a"])[0]) == ["<0xC3>", "<0xA9>", "▁", "a"]


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"subwords.size is 4; 4 are special tokens, so it must be at least 5"):
        learned("characters", size=4)
    with pytest.raises(ValueError, match="the control code is 'two words'; it must be one word"):
        learned("bytes", ["two words"])
    with pytest.raises(ValueError, match="no such file"):
        characters.load(tmp_path / "none")
    for content, error in {
        "{}": "is not a vocabulary of characters",
        '{"kind": "bytes", "characters": ["a"], "codes": []}': "is damaged: its characters do not match",
        '{"kind": "characters", "characters": ["a", "a"], "codes": []}': "is damaged: its characters do not match",
    }.items():
        (tmp_path / "characters.json").write_text(content)
        with pytest.raises(ValueError, match=error):
            characters.load(tmp_path / "characters.json")


def test_a_code_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"the model has no control code 'Peoms'; did you mean Poems\?$"):
        code_id(learned("bytes", ["Poems", "News"]), "Peoms")
    with pytest.raises(ValueError, match=r"the model has no control code 'X'; it has News, Poems$"):
        code_id(learned("bytes", ["Poems", "News"]), "X")
    with pytest.raises(ValueError, match="'X', but the model has no control codes: leave it out"):
        code_id(learned("bytes"), "X")


@pytest.mark.parametrize("own", ["aba", ["a", "b"], None])
def test_the_characters_of_transcripts_are_different_ones(own):
    says = "config.json: transcript.characters is .*; it must be a string of different characters"
    with pytest.raises(ValueError, match=says):
        TranscriptCharacters.read({"characters": own}, "config.json: transcript")
