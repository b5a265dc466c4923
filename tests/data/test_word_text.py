"""Words of a text, their pairs and counts, against plain loops; n-grams by hand."""

from collections import Counter

import numpy as np
import pytest

from heed.data.vectors.word_text import cooccurrences, index_ngrams, ngrams, read_words, skipgram_pairs

LINES = ["a b c a b", "", "b a d", "c", "a a, b!"]


def test_words_by_count_and_what_was_dropped():
    text = read_words(LINES, 2)
    assert text.words == ["a", "b", "c"]
    assert text.counts.tolist() == [5, 4, 2]
    assert [text.words[i] for i in text.ids] == ["a", "b", "c", "a", "b", "b", "a", "c", "a", "a", "b"]
    assert text.lines.tolist() == [0, 0, 0, 0, 0, 2, 2, 3, 4, 4, 4]
    assert (text.line_count, text.empty_lines, text.rare_words, text.rare_count) == (5, 1, 3, 3)  # d , !


def test_words_are_split_and_lowered_as_asked():
    assert read_words(["A a!"], cut="spaces").words == ["A", "a!"]
    assert read_words(["A a!"], lower=True).words == ["a", "!"]


def test_a_text_without_words_is_refused():
    with pytest.raises(ValueError, match="there are no words in the text"):
        read_words(["", "  "])
    with pytest.raises(ValueError, match="no word occurs 9 times in the text: keep rarer words too, or use more text"):
        read_words(LINES, 9)


def loop(text, window, by_distance=False):
    """X_ij by a double loop."""
    counts = Counter()
    for i, (word, line) in enumerate(zip(text.ids, text.lines, strict=True)):
        for j, (other, its) in enumerate(zip(text.ids, text.lines, strict=True)):
            if i != j and abs(i - j) <= window and line == its:
                counts[word, other] += 1 / abs(i - j) if by_distance else 1
    return counts


@pytest.mark.parametrize("by_distance", [False, True])
@pytest.mark.parametrize("window", [1, 3, 10])
def test_counts_are_those_of_a_double_loop(window, by_distance):
    text = read_words(LINES)
    found = {(i, j): x for i, j, x in zip(*cooccurrences(text, window, by_distance=by_distance), strict=True)}
    assert found == pytest.approx(dict(loop(text, window, by_distance)))


def test_skipgram_pairs_are_those_of_a_double_loop():
    text = read_words(LINES * 30)
    keep, rng = np.ones(len(text.words)), np.random.default_rng(0)
    centres, contexts = map(np.concatenate, zip(*skipgram_pairs(text, 1, keep, rng), strict=True))
    assert Counter(zip(centres, contexts, strict=True)) == loop(text, 1)
    drawn = Counter()  # of a window of 2, a pair two apart is drawn half of the time
    for _ in range(40):
        for pair in skipgram_pairs(text, 2, keep, rng):
            drawn.update(zip(*pair, strict=True))
    near, all_pairs = loop(text, 1), loop(text, 2)
    for pair, count in all_pairs.items():
        assert drawn[pair] / 40 == pytest.approx((near[pair] + count) / 2, rel=0.1)


def test_words_that_are_not_kept_make_no_pairs():
    text = read_words(LINES)
    keep = np.array([1.0 if word != "a" else 0.0 for word in text.words])
    for centres, contexts in skipgram_pairs(text, 3, keep, np.random.default_rng(0)):
        assert text.words.index("a") not in {*centres.tolist(), *contexts.tolist()}


def test_the_ngrams_of_where():
    assert ngrams("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]  # the example of Bojanowski et al. (2017)
    assert ngrams("where", 6, 9) == ["<where", "where>"]
    assert ngrams("a", 3, 6) == []
    grams, rows = index_ngrams(["her", "where"], 3, 3)
    assert [[grams[i] for i in row] for row in rows] == [["<he", "her", "er>"], ["<wh", "whe", "her", "ere", "re>"]]
