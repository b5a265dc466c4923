"""The objectives of recommendation beside their definitions."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heed.data.interactions.batches import ItemBatch, ItemBatches, ItemViews, next_items
from heed.data.packing import offsets_of
from heed.models.sasrec import SASRec, SASRecConfig
from heed.tasks.item_losses import (
    BinaryCrossEntropy,
    ContrastiveViews,
    FullCrossEntropy,
    Predictions,
    RecommendationLoss,
    SampledSoftmax,
    is_seen,
    seen_keys,
    unseen,
)
from heed.vocabularies.histories import Histories

ITEMS = 11


def given(bias=True):
    torch.manual_seed(0)
    double = {"dtype": torch.float64}
    states, weight = (
        torch.randn(6, 4, **double, requires_grad=True),
        torch.randn(ITEMS, 4, **double, requires_grad=True),
    )
    seen = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1], [1, 2, 3, 0, 4, 5, 6, 7]])
    expected, history = torch.tensor([2, 3, 4, 5, 6, 7]), torch.tensor([0, 0, 1, 1, 1, 1])
    return Predictions(states, expected, weight, torch.randn(ITEMS, **double) if bias else None, history, seen)


def all_scores(own):
    return own.states @ own.weight.T + (0 if own.bias is None else own.bias)


def test_negatives_are_never_seen():
    own = given()
    told = is_seen(own, torch.arange(ITEMS).expand(6, -1), seen_keys(own))
    assert [row.nonzero()[:, 0].tolist() for row in told] == [[1, 2, 3]] * 2 + [[0, 4, 5, 6, 7]] * 4
    drawn, counts = unseen(own, 400)
    assert not is_seen(own, drawn, seen_keys(own))[counts].any() and counts.double().mean() > 0.95
    drawn = torch.where(counts, drawn, 8)
    assert set(drawn[0].tolist()) == {0, 4, 5, 6, 7, 8, 9, 10} and set(drawn[5].tolist()) == {1, 2, 3, 8, 9, 10}
    full = own._replace(seen=torch.stack([torch.zeros(ITEMS, dtype=torch.int64), torch.arange(ITEMS)]))
    assert not unseen(full, 3)[1][:2].any()  # of a user who has everything, nothing counts


@pytest.mark.parametrize("bias", [True, False])
def test_binary_cross_entropy_is_that_of_the_item_and_of_what_was_drawn(bias):
    own, loss = given(bias), BinaryCrossEntropy(5)
    torch.manual_seed(3)
    found = loss(own)
    torch.manual_seed(3)
    drawn, _ = unseen(own, 5)
    scores = all_scores(own)
    expected = (
        -F.logsigmoid(scores.gather(1, own.expected[:, None])).sum() - F.logsigmoid(-scores.gather(1, drawn)).sum()
    )
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_gbce_is_bce_with_a_power_of_the_item_s_probability():
    share = 5 / (ITEMS - 1)
    assert BinaryCrossEntropy(5, 0.0).power(ITEMS) == 1
    assert BinaryCrossEntropy(5, 1.0).power(ITEMS) == pytest.approx(share)
    assert BinaryCrossEntropy(5, 0.75).power(ITEMS) == pytest.approx(share * (0.75 * (1 - 1 / share) + 1 / share))
    own, found = given(), []
    for calibration in (0.0, 0.75):
        torch.manual_seed(3)
        found.append(BinaryCrossEntropy(5, calibration)(own))
    positive = F.softplus(-all_scores(own).gather(1, own.expected[:, None])).sum()
    torch.testing.assert_close(found[0] - found[1], (1 - BinaryCrossEntropy(5, 0.75).power(ITEMS)) * positive)


@pytest.mark.parametrize("bias", [True, False])
def test_full_cross_entropy_and_its_gradients_are_those_of_all_logits(bias):
    own = given(bias)
    expected = F.cross_entropy(all_scores(own), own.expected, reduction="sum")
    found = FullCrossEntropy()(own)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    parts = (own.states, own.weight)
    for one, other in zip(torch.autograd.grad(found, parts), torch.autograd.grad(expected, parts), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_sampled_softmax_over_every_item_once_is_full_cross_entropy():
    own = given()
    full = SampledSoftmax.over(own, torch.arange(ITEMS), torch.ones(ITEMS, dtype=torch.float64))
    torch.testing.assert_close(full, FullCrossEntropy()(own), rtol=1e-10, atol=1e-10)


def test_the_correction_makes_unevenly_drawn_negatives_agree_with_all_items():
    """With many draws, the loss tends to that over all items; without the correction it would not."""
    own, q = given(), torch.arange(1, ITEMS + 1, dtype=torch.float64)
    q = q / q.sum()
    times = 40_000
    drawn = torch.repeat_interleave(torch.arange(ITEMS), (times * q).round().long())
    found = SampledSoftmax.over(own, drawn, len(drawn) * q)
    torch.testing.assert_close(found, FullCrossEntropy()(own), rtol=1e-4, atol=1e-4)
    plain = SampledSoftmax.over(own, drawn, torch.full_like(q, len(drawn) / ITEMS))
    assert (plain - FullCrossEntropy()(own)).detach().abs() > 0.05
    torch.manual_seed(0)
    assert float(SampledSoftmax(5000, q)(own).detach()) == pytest.approx(
        float(FullCrossEntropy()(own).detach()), rel=0.1
    )


def test_the_contrastive_loss_is_a_plain_loop_over_views():
    torch.manual_seed(1)
    vectors, loss = torch.randn(6, 5, dtype=torch.float64), ContrastiveViews(0.1, 0.5)
    cosines = F.normalize(vectors, dim=1) @ F.normalize(vectors, dim=1).T / 0.5
    total = 0.0
    for i in range(6):
        other = (i + 3) % 6
        total -= math.log(math.exp(cosines[i, other]) / sum(math.exp(cosines[i, j]) for j in range(6) if j != i))
    assert float(loss.of_vectors(vectors)) == pytest.approx(total, rel=1e-12)


def test_both_losses_are_means_of_their_own_and_the_weight_is_between_them():
    model = SASRec(
        SASRecConfig(items=ITEMS, dim=8, heads=2, hidden=8, layers=1, dropout=0.0, attention_dropout=0.0)
    ).double()
    rows = torch.tensor([[1, 2, 3, 4, 5]])
    offsets = offsets_of(np.array([3, 2]))
    views = ItemViews(
        torch.tensor([[1, 2, 4, 2, 1, 3, 5, 4]]), offsets_of(np.array([2, 1, 3, 2])), torch.tensor([1, 2, 5, 7])
    )
    seen = torch.tensor([[0, 0, 0, 1, 1], [1, 2, 3, 4, 5]])
    batch = ItemBatch(rows, offsets, torch.arange(5), torch.tensor([2, 3, 6, 5, 7]), seen, 5, views)
    alone, both = (
        RecommendationLoss(FullCrossEntropy(), own)(model, batch) for own in (None, ContrastiveViews(0.3, 1.0))
    )
    part = both.parts["contrastive"]
    assert both.count == 5 and part.count == 4 and both.nll == alone.nll
    assert float(both.total.detach() / 5) == pytest.approx(
        float(alone.nll / 5) + 0.3 * float(part.total) / 4, rel=1e-12
    )
    empty = batch._replace(places=torch.arange(0), expected=torch.arange(0))
    nothing = RecommendationLoss(FullCrossEntropy())(model, empty)
    assert nothing.count == 0 and float(nothing.nll) == 0 and nothing.total.requires_grad


DRAWN = torch.full((ITEMS,), 1 / ITEMS, dtype=torch.float64)
OBJECTIVES = {
    "cross-entropy": FullCrossEntropy(0.1),
    "bce": BinaryCrossEntropy(2),
    "gbce": BinaryCrossEntropy(3, 0.5),
    "sampled-softmax": SampledSoftmax(4, DRAWN),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_padding_changes_neither_the_loss_nor_the_gradient(name, monkeypatch):
    def first_unseen(own, count):
        free = ~is_seen(own, torch.arange(ITEMS).expand(len(own.states), -1), seen_keys(own))
        return free.double().topk(count, dim=1).indices, torch.ones(len(own.states), count, dtype=torch.bool)

    monkeypatch.setattr("heed.tasks.item_losses.unseen", first_unseen)  # draws depend on how many there are
    sizes = {"dim": 8, "heads": 2, "hidden": 8, "layers": 1, "dropout": 0.0, "attention_dropout": 0.0}
    torch.manual_seed(1)
    model = SASRec(SASRecConfig(items=ITEMS, **sizes, max_length=5)).double()
    rows = [[1, 2, 3], [4, 5], [6, 7, 8, 9, 1], [0, 3, 10, 2]]
    lengths = np.array([len(row) for row in rows])
    arrays = {"items": np.concatenate(rows).astype(np.uint32), "offsets": np.concatenate([[0], lengths.cumsum()]),
              "train_end": lengths, "valid_at": np.full(4, -1), "test_at": np.full(4, -1)}  # fmt: skip
    found = []
    for equal in (False, True):
        own = ItemBatches(Histories(list("abcd"), ITEMS, arrays), next_items, longest=5, budget=20, seed=0, equal=equal)
        batch = own.make(np.arange(4), (0, 0))
        torch.manual_seed(2)
        loss = RecommendationLoss(OBJECTIVES[name])(model, batch)
        gradients = torch.autograd.grad(loss.total, list(model.parameters()))
        found.append([loss.total.detach(), loss.nll, loss.count, *gradients])
        assert batch.items.shape[1] == (20 if equal else 10)
    torch.testing.assert_close(found[1], found[0], rtol=1e-10, atol=1e-12)
