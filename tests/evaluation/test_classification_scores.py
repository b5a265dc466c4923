"""Scores of classifiers by their definitions, and intervals by the bootstrap."""

import numpy as np
import pytest

from heed.evaluation.classification import (
    accuracy,
    confusion,
    differences,
    f1,
    intervals,
    label_scores,
    matthews,
    number_scores,
    pearson,
    spearman,
)

FOUND, EXPECTED = np.array([1, 1, 1, 0, 0, 1, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 1, 1, 0, 1, 1, 1])


def test_scores_of_two_labels_by_their_definitions():
    table = confusion(FOUND, EXPECTED, 2)
    hits, misses, alarms, rejections = 5, 2, 1, 2
    assert table.tolist() == [[rejections, alarms], [misses, hits]]
    assert accuracy(FOUND, EXPECTED) == 70
    assert f1(table) == pytest.approx(100 * 2 * hits / (2 * hits + misses + alarms))
    spread = (hits + alarms) * (hits + misses) * (rejections + alarms) * (rejections + misses)
    assert matthews(table) == pytest.approx(100 * (hits * rejections - misses * alarms) / spread**0.5)
    assert matthews(confusion(np.ones(4, dtype=int), np.array([0, 1, 1, 1]), 2)) == 0
    assert pearson(FOUND.astype(float), EXPECTED.astype(float)) == pytest.approx(matthews(table))


def test_f1_of_more_labels_is_the_mean_and_matthews_that_of_all():
    found, expected = np.array([0, 1, 2, 2, 1, 0]), np.array([0, 1, 2, 1, 1, 2])
    table = confusion(found, expected, 3)
    each = [200 * table[i, i] / (table[i].sum() + table[:, i].sum()) for i in range(3)]
    assert f1(table) == pytest.approx(np.mean(each))
    one, other = np.eye(3)[found], np.eye(3)[expected]
    centred = [own - own.mean(axis=0) for own in (one, other)]
    ratio = (centred[0] * centred[1]).sum() / np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum())
    assert matthews(table) == pytest.approx(100 * ratio)


def test_spearman_is_pearson_of_mean_ranks():
    one, other = np.array([1.0, 2.0, 2.0, 5.0]), np.array([3.0, 1.0, 4.0, 4.0])
    ranks = np.array([1, 2.5, 2.5, 4]), np.array([2.0, 1, 3.5, 3.5])
    assert spearman(one, other) == pytest.approx(pearson(*ranks))
    assert spearman(one, one**3) == pytest.approx(100) and pearson(one, one * 0) == 0
    assert set(number_scores(one, other)) == {"pearson", "spearman"}


def test_intervals_contain_the_score_and_the_same_system_has_no_difference():
    found = intervals(label_scores(2), FOUND, EXPECTED, samples=200)
    assert all(own.low <= own.value <= own.high for own in found.values())
    assert found == intervals(label_scores(2), FOUND, EXPECTED, samples=200)
    same = differences(label_scores(2), FOUND, FOUND, EXPECTED, samples=50)
    assert all(own == (0.0, 1.0) for own in same.values())
    many = np.tile(EXPECTED, 20)
    better = differences(label_scores(2), 1 - many, many, many, samples=50)["accuracy"]
    assert better.value == 100 and better.p_value == pytest.approx(2 / 51)
