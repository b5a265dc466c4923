"""How much text a corpus has, and roughly how many tokens, before there is a vocabulary."""

import pytest

from heed.data.readers import Line
from heed.runs.text_amount import LETTERS, SIGNS, SYLLABLES, Amount, estimated_tokens, measure
from heed.vocabularies import sentencepiece
from heed.vocabularies.sentencepiece import SubwordsConfig
from tests import fixed_pairs


@pytest.mark.parametrize(
    ("text", "letters", "syllables", "signs"),
    [
        ("", 0, 0, 0),
        ("a cat sat", 9, 0, 0),
        ("schöne Grüße – größer", 21, 0, 0),
        ("кошка", 5, 0, 0),
        ("고양이가 3마리", 2, 6, 0),
        ("猫が2匹いるよ。", 2, 0, 6),
        ("ドイツ語の𠮷", 0, 0, 6),
        ("我有一只猫。", 1, 0, 5),
    ],
)
def test_the_tokens_of_a_text_go_by_its_scripts(text, letters, syllables, signs):
    expected = 1 + letters / LETTERS + syllables / SYLLABLES + signs / SIGNS
    assert estimated_tokens(text) == pytest.approx(expected)


def test_a_corpus_counts_in_an_epoch_as_often_as_its_weight_says():
    lines = [Line("ab", "cdef", "1"), Line("가나", "x" * 10, "2", 1), Line("", "y", "3", 1)]
    whole = measure(lines, [1.0, 1.0])
    assert whole[:3] == (3, 19, 19.0)
    own = measure(lines[:1])
    assert own == (1, 6, 6.0, pytest.approx(2 + 6 / LETTERS))
    weighted = measure(lines, [2.0, 0.5])
    assert weighted[:2] == whole[:2], "text that is read twice is no more text"
    assert weighted.read == 2 * 6 + 0.5 * 13
    assert weighted.tokens == pytest.approx(2 * own.tokens + 0.5 * (whole.tokens - own.tokens))


def test_a_larger_vocabulary_has_fewer_tokens():
    amount = Amount(1, 4, 4.0, 100.0)
    assert amount.tokens_with(8000) == 100
    assert amount.tokens_with(16_000) == pytest.approx(90.1, abs=0.1) and amount.tokens_with(4000) > 110


def test_the_estimate_is_near_the_tokens_of_a_vocabulary():
    """Korean and English sentences, of which four characters a token would be far too few."""
    pairs = fixed_pairs.pairs("train", 400)
    lines = [Line(pair.source, pair.target, "") for pair in pairs]
    texts = [text for line in lines for text in line[:2]]
    vocabulary = sentencepiece.learn(texts, SubwordsConfig(), 1200)
    tokens = sum(map(len, vocabulary.encode(texts))) + len(texts)
    assert 0.85 < tokens / measure(lines).tokens_with(1200) < 1.15 < tokens / (sum(map(len, texts)) / 4)
