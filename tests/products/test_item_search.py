"""The best items by groups and blocks are those of all scores, sorted."""

import numpy as np
import pytest
import torch

from heed.products import item_search
from heed.products.item_search import ItemMatrix, best_items
from heed.vocabularies.ragged import as_ragged


def by_sorting(states, matrix, count, seen):
    scores = torch.nn.functional.linear(states, matrix.weight, matrix.bias)
    for user, own in enumerate(seen or []):
        scores[user, torch.tensor(own, dtype=torch.int64)] = -torch.inf
    found, ids = scores.sort(dim=1, descending=True, stable=True)
    return found[:, :count], ids[:, :count]


@pytest.fixture
def small(monkeypatch):
    """Blocks, groups and parts so small that there are many of each."""
    monkeypatch.setattr(item_search, "BLOCK", {"cpu": 32})
    monkeypatch.setattr(item_search, "USERS", {"cpu": 3})
    monkeypatch.setattr(item_search, "GROUPS", (4, 8))
    monkeypatch.setattr(item_search, "MANY", 100)
    monkeypatch.setattr(item_search, "CANDIDATES", 300)


@pytest.mark.parametrize("items", [1, 5, 31, 32, 33, 130, 131])
@pytest.mark.parametrize("count", [1, 7, 200])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_they_are_those_of_all_scores_sorted(small, monkeypatch, items, count, biased, whole):
    monkeypatch.setattr(item_search, "WHOLE", ("cpu",) if whole else ())
    monkeypatch.setattr(item_search, "SCORES", 3 * items)
    random = torch.Generator().manual_seed(items)
    states, weight = (torch.randn(n, 6, generator=random, dtype=torch.float64) for n in (8, items))
    matrix = ItemMatrix(weight, torch.randn(items, generator=random, dtype=torch.float64) if biased else None)
    drawn = np.random.default_rng(0)
    seen = [sorted(set(drawn.integers(0, items, size).tolist())) for size in (0, 1, 2, 30, 300, 5, 0, 3)]
    for given in (None, seen):
        scores, ids = best_items(states, matrix, count, None if given is None else as_ragged(given))
        expected, places = by_sorting(states, matrix, count, given)
        torch.testing.assert_close(scores, expected, rtol=0, atol=1e-10)
        there = expected > -torch.inf
        assert ids.shape == places.shape and torch.equal(ids[there], places[there])


def test_of_equal_items_each_comes_once(small):
    states, weight = torch.ones(2, 3), torch.ones(40, 3)
    weight[[7, 21]] = 2
    scores, ids = best_items(states, ItemMatrix(weight), 30)
    assert ids[:, :2].tolist() == [[7, 21]] * 2 and scores.tolist() == [[6, 6, *[3] * 28]] * 2
    assert all(len(set(own)) == 30 for own in ids.tolist())
