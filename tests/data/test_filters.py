"""Which pairs are filtered, by which rule."""

from dataclasses import replace

import pytest

from heed.data.filters import RULES, FilterReport, FiltersConfig, RejectedWriter, rule_for_length, rule_for_text
from heed.data.readers import Line

DEFAULT = FiltersConfig()


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        ("a", "b", None),
        ("", "b", "empty"),
        ("a", "", "empty"),
        ("", "", "empty"),
        ("a", "a", "same"),
        ("a", "A", None),
    ],
)
def test_a_pair_is_filtered_by_its_text(source, target, rule):
    assert rule_for_text(DEFAULT, source, target) == rule


def test_the_same_text_on_both_sides_may_be_kept():
    assert rule_for_text(replace(DEFAULT, same=False), "a", "a") is None
    assert rule_for_text(replace(DEFAULT, same=False), "", "") == "empty"


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        (9, 9, None),  # with its end token, 10
        (10, 9, "length"),
        (9, 10, "length"),
        (9, 3, None),
        (9, 2, "ratio"),
        (2, 9, "ratio"),
        (1, 3, None),
        (1, 4, "ratio"),
        (0, 3, None),
        (0, 4, "ratio"),
    ],
)
def test_a_pair_is_filtered_by_its_lengths(source, target, rule):
    assert rule_for_length(FiltersConfig(max_length=10, max_ratio=3.0), source, target) == rule


def test_a_ratio_of_zero_filters_nothing():
    assert rule_for_length(FiltersConfig(max_length=10, max_ratio=0.0), 1, 9) is None


def test_a_report_counts_every_rule():
    assert FilterReport().taken == dict.fromkeys(RULES, 0)


def test_a_line_of_the_rejected_has_four_cells(tmp_path):
    path = tmp_path / "deeper" / "rejected.tsv"
    with RejectedWriter(path) as out:
        out.write("ratio", Line("eins\tzwei", "세", "train.en:7"))
    assert path.read_text("utf-8") == "rule\tplace\tsource\ttarget\nratio\ttrain.en:7\teins zwei\t세\n"


def test_without_a_path_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RejectedWriter(None) as out:
        out.write("ratio", Line("a", "b", "c:1"))
    assert not list(tmp_path.iterdir())
