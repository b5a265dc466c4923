"""Translations by the length of what they translate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from heed.lab.experiments.bottleneck import figure, gap_to_best, group_by_length, measure, summary, tables

SOURCES = [" ".join(["w"] * n) for n in (3, 9, 3, 4, 8, 9)]
REFERENCES = ["a b c d", "a b c d e f g h", "b c d e", "c d e f", "a c e g b d f", "h g f e d c b a"]
TRUNCATED = [
    text if len(text) < 8 else text[:7] + " x x" for text in REFERENCES
]  # four words of any sentence are right


def test_each_group_is_scored_by_itself():
    result = measure({"fixed": TRUNCATED, "perfect": REFERENCES}, SOURCES, REFERENCES, groups=2)
    assert (result.bounds, result.sentences, result.middle) == ([(3, 4), (8, 9)], [3, 3], [10 / 3, 26 / 3])
    assert result.bleu["perfect"] == pytest.approx([100, 100]) and result.share["perfect"] == [1, 1]
    long = [1, 4, 5]
    expected = BLEU().corpus_score([TRUNCATED[i] for i in long], [[REFERENCES[i] for i in long]]).score
    assert result.bleu["fixed"] == pytest.approx([100, expected])
    assert result.whole["fixed"] == pytest.approx(BLEU().corpus_score(TRUNCATED, [REFERENCES]).score)
    assert result.share["fixed"] == pytest.approx([1, 18 / 23])
    assert gap_to_best(result) == {"fixed": pytest.approx([0, 100 - expected]), "perfect": pytest.approx([0, 0])}
    assert summary(result) == (
        "On sources of 3–4 words, fixed is 0.0 BLEU points behind the best system, on sources of 8–9 words "
        f"{100 - expected:.1f}; the best on the longest is perfect, with 100.0."
    )


def test_tables_and_picture_have_every_system():
    result = measure({"one": TRUNCATED, "two": REFERENCES}, SOURCES, REFERENCES, groups=3)
    bleu, share = tables(result)
    assert [row[0] for row in bleu.rows] == ["sentences", "one", "two"] and bleu.rows[0][-1] == "6"
    assert [len(row) for row in (*bleu.rows, *share.rows)] == [5, 5, 5, 4, 4]
    panels = figure(result).axes
    assert [len(panel.lines) for panel in panels] == [2, 2]
    assert list(panels[0].lines[1].get_ydata()) == result.bleu["two"]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 8))
def test_every_length_is_in_one_group_and_none_is_empty(lengths, groups):
    bounds = group_by_length(lengths, groups)
    assert len(bounds) <= groups
    for low, high in bounds:
        assert any(low <= length <= high for length in lengths)
    for length in lengths:
        assert sum(low <= length <= high for low, high in bounds) == 1


@pytest.mark.parametrize(
    ("systems", "sources", "groups", "words"),
    [
        ({}, SOURCES, 2, "no systems to compare"),
        (
            {"one": TRUNCATED[1:]},
            SOURCES,
            2,
            "there are 6 sources, but 5 lines of one: they must correspond line by line",
        ),
        ({"one": TRUNCATED}, SOURCES[1:], 2, "there are 5 sources, but 6 lines of the references"),
        ({"one": TRUNCATED}, SOURCES, 0, "6 sentences cannot be divided into 0 groups"),
    ],
)
def test_what_cannot_be_compared_is_said(systems, sources, groups, words):
    with pytest.raises(ValueError, match=words):
        measure(systems, sources, REFERENCES, groups)
