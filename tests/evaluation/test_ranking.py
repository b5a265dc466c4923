"""Ranks and their scores beside a plain loop; baselines beside their definitions."""

import math

import numpy as np
import pytest
import torch

from heed.evaluation import ranking
from heed.evaluation.item_baselines import ItemKNN, Popularity
from heed.evaluation.ranking import Setting, coverage, popularity_bias, rank, scores
from heed.vocabularies.histories import Held
from heed.vocabularies.ragged import as_ragged

ITEMS = 17


def held(seed=0, users=25):
    random = np.random.default_rng(seed)
    histories = [random.integers(0, ITEMS, length).tolist() for length in random.integers(0, 6, users)]
    targets = random.integers(-1, ITEMS, users)
    return Held(np.arange(users), as_ragged(histories), targets)


def scorer(histories):
    """Scores with many ties, by the items of a history alone."""
    return torch.stack([torch.tensor([float((7 * i + sum(row)) % 5) for i in range(ITEMS)]) for row in histories])


@pytest.mark.parametrize("exclude", [True, False])
@pytest.mark.parametrize("most", [2**25, 40])
def test_ranks_are_those_of_a_plain_loop(exclude, most, monkeypatch):
    monkeypatch.setitem(ranking.MAX_SCORES, "cpu", most)
    given = held()
    found = rank(scorer, given, ITEMS, Setting(exclude), top=4)
    for row, (history, target) in enumerate(zip(given.histories, given.targets, strict=True)):
        if not len(history):
            assert math.isinf(found.ranks[row]) and (found.top[row] == -1).all()
            continue
        own = scorer([history])[0]
        left = [i for i in range(ITEMS) if not exclude or i not in history]
        assert sorted(own[found.top[row]].tolist(), reverse=True) == sorted(own[left].tolist(), reverse=True)[:4]
        if target < 0:
            assert math.isinf(found.ranks[row])
            continue
        assert found.ranks[row] == 1 + sum(own[i] >= own[target] for i in left if i != target)
        assert found.nll[row] == pytest.approx(-float(own.log_softmax(0)[target]), rel=1e-6)


def test_scores_are_those_of_a_plain_loop():
    ranks = [1, 2, 3, 7, 10, 11, 30, math.inf]
    found = scores(np.array(ranks), (5, 10))
    n = len(ranks)
    for k in (5, 10):
        assert found[f"hr@{k}"] == pytest.approx(100 * sum(r <= k for r in ranks) / n)
        assert found[f"ndcg@{k}"] == pytest.approx(100 * sum(1 / math.log2(r + 1) for r in ranks if r <= k) / n)
    assert found["mrr"] == pytest.approx(100 * sum(1 / r for r in ranks) / n)


def test_sampled_negatives_are_unseen_and_the_same_for_every_model():
    given, setting = held(), Setting(negatives=6)
    asked = [i for i in range(25) if len(given.histories[i]) and given.targets[i] >= 0]
    one, other = (ranking.draw_negatives(given.users[own], given.targets[own], ranking.take(given.histories, np.array(own)), ITEMS, setting)
                  for own in (asked, asked[::-1]))  # fmt: skip
    assert (one == other[::-1]).all()
    for row, drawn in zip(asked, one, strict=True):
        assert len(set(drawn.tolist())) == 6 and not set(drawn.tolist()) & {
            *given.histories[row].tolist(),
            given.targets[row],
        }
    found = rank(scorer, given, ITEMS, setting).ranks
    for row, drawn in zip(asked, one, strict=True):
        own = scorer([given.histories[row]])[0]
        assert found[row] == 1 + sum(own[i] >= own[given.targets[row]] for i in drawn)
    with pytest.raises(ValueError, match="16 sampled negatives requested, but of 17 items only"):
        rank(scorer, given, ITEMS, Setting(negatives=16))


def test_coverage_and_popularity_bias():
    counts = np.array([10, 5, 5, 0])
    top = np.array([[0, 1], [0, 2], [-1, -1]])
    assert coverage(top, 4) == 75.0
    assert popularity_bias(top, as_ragged([[1], [2, 3]]), counts) == pytest.approx((30 / 4) / (10 / 3))


def test_popularity_recommends_what_is_frequent():
    found = Popularity(np.array([3, 9, 1]))(as_ragged([[0], [1, 2]]))
    assert found.tolist() == [[3, 9, 1]] * 2


def test_item_knn_is_the_sum_of_cosines(monkeypatch):
    random = np.random.default_rng(2)
    rows = [random.integers(0, 12, length).tolist() for length in random.integers(1, 9, 40)]
    monkeypatch.setattr("heed.evaluation.item_baselines.PAIRS", 50)
    table = np.array([[float(i in row) for i in range(12)] for row in rows])
    cosine = table.T @ table / np.sqrt(np.outer(table.sum(0), table.sum(0)))
    np.fill_diagonal(cosine, 0)
    asked = [[1, 3, 3], [11], [0, 5, 7, 2]]
    expected = [cosine[sorted(set(row))].sum(0) for row in asked]
    np.testing.assert_allclose(ItemKNN(as_ragged(rows), 12)(as_ragged(asked)).numpy(), expected, rtol=1e-5, atol=1e-6)
    monkeypatch.setattr("heed.evaluation.item_baselines.NEIGHBOURS", 2)
    few = ItemKNN(as_ragged(rows), 12)(as_ragged([[1]])).numpy()[0]
    assert sorted(few[few > 0].tolist()) == pytest.approx(sorted(cosine[1])[-2:], rel=1e-5)
