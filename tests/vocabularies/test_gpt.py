"""The vocabulary of GPT: what it keeps of a text, and what cannot be read is named."""

import json
import re

import pytest

from heed.vocabularies import gpt
from tests.data.mixed import lines, training


@pytest.fixture(scope="module")
def learned():
    return gpt.learn(training(), 500)[0]


def test_it_is_read_as_it_was_written(learned, tmp_path):
    gpt.write(tmp_path, (learned, learned))
    read = gpt.read(tmp_path)[0]
    assert read.encode(lines()) == learned.encode(lines())
    assert read.key() == learned.key() and len(read) == 500 and read.special == learned.special


def test_words_come_back_in_lower_case_with_spaces_around_punctuation(learned):
    ids = learned.encode(["The dog, a Café!"])[0]
    assert learned.decode(ids) == "the dog , a cafe !" and learned.special.unknown not in ids
    assert "".join(learned.pieces(ids)) == "▁the▁dog▁,▁a▁cafe▁!"


def test_no_text_has_the_end_of_a_line(learned):
    last = learned.special.last
    assert all(last not in ids for ids in learned.encode([*lines(), "a\nb", "\n</w>"]))
    assert learned.pieces([last]) == ["▁<0x0A>"]


def test_what_is_missing_or_damaged_is_named(learned, tmp_path):
    with pytest.raises(
        ValueError, match=r"has no vocab.json with merges.txt, and no tokenizer.json: it cannot read text"
    ):
        gpt.read(tmp_path)
    gpt.write(tmp_path, (learned, learned))
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    with pytest.raises(ValueError, match=r"vocab.json has no '<unk>': it is not the vocabulary of a GPT"):
        gpt.read(tmp_path)
    (tmp_path / "vocab.json").write_text('{"<unk>": 0, "\\n</w>": 1}')
    with pytest.raises(ValueError, match=r"vocab.json is damaged"):
        gpt.read(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b c\n")
    with pytest.raises(
        ValueError, match=r"merges.txt: merge 1 is 'a b c'; a merge must be two pieces separated by a space"
    ):
        gpt.read(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "merges": []}}))
    with pytest.raises(ValueError, match=r"tokenizer.json is not BPE with </w>, the vocabulary of a GPT"):
        gpt.read(tmp_path)
    with pytest.raises(ValueError, match=r"a GPT vocabulary of 50 could not be learned: <unk>, the characters and the"):
        gpt.learn(training(), 50)


def test_the_least_size_is_said_and_is_enough():
    texts = ["ab ba", "abc"]
    with pytest.raises(ValueError, match=r"the line end alone are \d+") as said:
        gpt.learn(texts, 3)
    least = int(re.search(r"alone are (\d+)", str(said.value))[1])
    assert len(gpt.learn(texts, least)[0]) == least
    with pytest.raises(ValueError, match=f"a GPT vocabulary of {least - 1} could not be learned"):
        gpt.learn(texts, least - 1)
