"""Items found by faiss are those of the exact search where all clusters are searched, and most of them elsewhere."""

import builtins

import pytest
import torch

from heed.cli.main import main
from heed.loading import write_package
from heed.models.package import Package
from heed.products import faiss_search
from heed.products.faiss_search import ItemIndex
from heed.products.item_search import ItemMatrix, best_items
from heed.vocabularies.ragged import as_ragged
from tests.service.recommenders import ITEMS, recommender


def drawn(items, biased):
    random = torch.Generator().manual_seed(0)
    states, weight = (torch.randn(n, 8, generator=random) for n in (6, items))
    return states, ItemMatrix(weight, torch.randn(items, generator=random) if biased else None)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("exact", [10_000, 10])
def test_what_is_found_is_what_an_exact_search_finds(biased, exact, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(faiss_search, "EXACT", exact)
    monkeypatch.setattr(faiss_search, "SEARCHED", 40)  # all clusters
    states, matrix = drawn(1500, biased)
    index, seen = ItemIndex(matrix), as_ragged([[], [1, 2], list(range(0, 1500, 2)), [7], [], list(range(1490))])
    for given in (None, seen):
        scores, ids = index.best(states, 20, given)
        expected, places = best_items(states, matrix, 20, given)
        there = expected > -torch.inf
        torch.testing.assert_close(scores, expected, rtol=0, atol=1e-5)
        assert torch.equal(ids[there], places[there]) and there.sum() == 6 * 20 - (10 if given else 0)


def test_some_clusters_have_most_of_the_best(monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(faiss_search, "EXACT", 10)
    states, matrix = drawn(4000, False)
    found, right = ItemIndex(matrix).best(states, 10)[1], best_items(states, matrix, 10)[1]
    share = sum(len(set(a) & set(b)) for a, b in zip(found.tolist(), right.tolist(), strict=True)) / 60
    assert share > 0.8


def test_the_command_takes_it_or_says_what_is_missing(tmp_path, capsys, monkeypatch):
    product = recommender()
    write_package(Package(product.model, "recommendation", {"items": product.items}, {}), tmp_path / "shop")
    words = ["recommend", str(tmp_path / "shop"), "--items", "tea,bread", "--device", "cpu", "--exclude-seen"]
    real = builtins.__import__

    def without(name, *more, **others):
        if name == "faiss":
            raise ImportError
        return real(name, *more, **others)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", without)
        assert main([*words, "--search", "faiss"]) == 1
    assert " is not installed: install it (pip install 'heed[faiss]')" in capsys.readouterr().err
    pytest.importorskip("faiss")
    found = []
    for search in ("exact", "faiss"):
        assert main([*words, "--search", search]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] and found[0].count("\n") == min(10, len(ITEMS) - 2)
