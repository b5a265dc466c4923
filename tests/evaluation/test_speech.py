"""Error rates of recognized speech."""

import itertools

import pytest

from heed.evaluation.speech import Edit, align, score


def distance(one, other):
    """The least number of edits, by its definition."""
    if not one or not other:
        return len(one) + len(other)
    return min(
        distance(one[1:], other) + 1, distance(one, other[1:]) + 1, distance(one[1:], other[1:]) + (one[0] != other[0])
    )


def test_an_alignment_has_the_fewest_edits():
    for one, other in itertools.product(["", "ab", "abca", "bbc"], ["", "a", "bca", "acab", "ccc"]):
        edits = align(one, other)
        assert "".join(e.expected or "" for e in edits) == one
        assert "".join(e.found or "" for e in edits) == other
        assert sum(not e.right for e in edits) == distance(one, other)


def test_errors_are_counted_by_kind():
    assert align(["a", "b"], ["a", "c", "d"])[0] == Edit("a", "a")
    found = score(["one too three", "four", ""], ["one two three", "three four", "five"])
    wer = found.wer
    assert (wer.substitutions, wer.deletions, wer.insertions, wer.units) == (1, 2, 0, 6)
    assert wer.rate == pytest.approx(50) and found.exact == 0 and found.recordings == 3
    assert wer.low <= wer.rate <= wer.high
    assert ("two", "too", 1) in found.confused
    assert score(["A  b"], ["a B"], lowercase=True).wer.rate == 0
    assert score(["A b"], ["a b"]).cer.rate == pytest.approx(100 / 3)
    assert score(["a b c d"], ["a"]).wer.rate == 300
    with pytest.raises(ValueError, match="no recording has a reference text"):
        score([], [])


@pytest.mark.parametrize(("found", "rate"), [("b", 100), ("a", 0), ("a b c", 200)])
def test_the_interval_of_one_word_is_its_rate(found, rate):
    wer = score([found], ["a"]).wer
    assert (wer.low, wer.rate, wer.high) == (rate, rate, rate)
