"""The vocabulary of GPT-2: every text comes back, and what cannot be read is named."""

import pytest

from heed.vocabularies import gpt2
from tests.data.mixed import lines, training


@pytest.fixture(scope="module")
def learned():
    return gpt2.learn(training(), 400)[0]


def test_every_text_comes_back(learned, tmp_path):
    gpt2.write(tmp_path, (learned, learned))
    read = gpt2.read(tmp_path)[0]
    for text in map(learned.clean, [*lines(), "😀 \u2581 naïve", "<pad>"]):
        assert read.decode(read.encode([text])[0]) == text
    assert read.key() == learned.key() and len(read) == 400


def test_the_end_of_a_text_is_no_part_of_it(learned):
    end = learned.encode([gpt2.END])[0]
    assert end == [learned.special.last] and learned.decode([*learned.encode(["a b"])[0], *end]) == "a b"


def test_what_is_missing_or_damaged_is_named(learned, tmp_path):
    with pytest.raises(
        ValueError, match=r"has no tokenizer.json, and no vocab.json with merges.txt: it cannot read text"
    ):
        gpt2.read(tmp_path)
    gpt2.write(tmp_path, (learned, learned))
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    with pytest.raises(ValueError, match=r"vocab.json is damaged"):
        gpt2.read(tmp_path)
    with pytest.raises(
        ValueError, match=r"a GPT-2 vocabulary of 200 could not be learned: the bytes and <\|endoftext\|> alone are 257"
    ):
        gpt2.learn(training(), 200)
