"""The training loop: what must not matter does not."""

import itertools
from functools import partial

import pytest
import torch

from heed.data.batching import collate
from heed.models.transformer import Transformer, TransformerConfig
from heed.tasks.sequence_loss import CrossEntropy, RDrop
from heed.training.loop import train

CONFIG = TransformerConfig(vocab_size=19, dim=16, heads=2, hidden=24, encoder_layers=1, decoder_layers=1, dropout=0.0)
DROPPING = TransformerConfig(**{**vars(CONFIG), "dropout": 0.3})
SOURCE = [[5, 6, 7], [8], [9, 10, 11, 12], [4, 4]]
TARGET = [[6], [7, 8, 9, 10], [11, 12], [13, 14, 15]]


def fresh(config=CONFIG):
    torch.manual_seed(0)
    return Transformer(config).double()


def run(model, batches, optimizer=torch.optim.SGD, rate=0.1, objective=CrossEntropy(0.1), **settings):  # noqa: B008
    """Train and return the Progress of each step."""
    seen = []
    hooks = [seen.append, *settings.pop("after_step", [])]
    settings.setdefault("steps", range(1, 4))
    moments = optimizer(model.parameters(), lr=0.0)
    train(model, enumerate(batches, 1), objective, moments, lambda step: rate, after_step=hooks, **settings)
    return seen


def weights(model):
    return [weight.detach().clone() for weight in model.parameters()]


def near(one, other):
    torch.testing.assert_close(weights(one), weights(other), rtol=0, atol=1e-10)


@pytest.mark.parametrize("objective", [CrossEntropy(0.1), RDrop(0.1, 5.0)], ids=["plain", "r-drop"])
def test_half_batches_add_up_to_the_whole(objective):
    whole, parts = fresh(), fresh()
    halves = [collate(SOURCE[:1], TARGET[:1]), collate(SOURCE[1:], TARGET[1:])]  # where a mean of means would be wrong
    a = run(whole, itertools.repeat(collate(SOURCE, TARGET)), objective=objective)
    b = run(parts, itertools.cycle(halves), objective=objective, accumulate=2)
    near(whole, parts)
    for one, other in zip(a, b, strict=True):
        assert one.count == other.count == sum(map(len, TARGET)) + 4
        torch.testing.assert_close(one.nll, other.nll, rtol=0, atol=1e-10)
        torch.testing.assert_close(one.gradient_norm, other.gradient_norm, rtol=0, atol=1e-10)


def test_a_sentence_is_learned_by_heart():
    batch = collate([[5, 6, 7, 8]], [[9, 5, 9, 11, 12]])
    losses = [p.nll / p.count for p in run(
        fresh(), itertools.repeat(batch), torch.optim.AdamW, 0.01, CrossEntropy(0.0), steps=range(1, 61)
    )]  # fmt: skip
    assert losses[0] > 2.0
    assert losses[-1] < 0.05


def test_a_step_is_the_gradient_of_the_mean():
    model, by_hand = fresh(), fresh()
    batch = collate(SOURCE, TARGET)
    for progress in run(model, [batch] * 3):
        loss = CrossEntropy(0.1)(by_hand, batch)
        gradients = torch.autograd.grad(loss.total / loss.count, list(by_hand.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(by_hand.parameters(), gradients, strict=True):
                weight -= 0.1 * gradient
        torch.testing.assert_close(progress.gradient_norm, torch.stack([g.norm() for g in gradients]).norm())
        assert (progress.position, progress.count, progress.rate) == (progress.step, loss.count, 0.1)
        torch.testing.assert_close(progress.nll, loss.nll)
    near(model, by_hand)


def test_a_step_is_the_same_whenever_it_is_run():
    """Dropout depends on seed and step alone: neither on the steps before nor on chance drawn between them."""
    batches = [collate(SOURCE[i:], TARGET[i:]) for i in (0, 1, 2, 0)]
    whole, broken, other = fresh(DROPPING), fresh(DROPPING), fresh(DROPPING)

    def disturb(progress):
        broken.eval()
        torch.rand(3)

    run(whole, batches, steps=range(1, 5), seed=7)
    run(broken, batches[:2], steps=[1, 2], seed=7, after_step=[disturb])
    run(broken, batches[2:], steps=[3, 4], seed=7)
    assert all(map(torch.equal, weights(whole), weights(broken)))
    run(other, batches, steps=range(1, 5), seed=8)
    assert not all(map(torch.equal, weights(whole), weights(other)))


def test_dropout_differs_from_step_to_step():
    model, losses = fresh(DROPPING), []
    batch = collate(SOURCE, TARGET)
    for step in (1, 2, 1):
        losses += [p.nll.item() for p in run(model, [batch], rate=0.0, steps=[step])]
    assert losses[0] == losses[2] != losses[1]


def test_a_hook_that_says_stop_stops_after_everyone_was_told():
    called = []
    hooks = [lambda p: p.step == 3, lambda p: called.append(p.step)]
    seen = run(fresh(), itertools.repeat(collate(SOURCE, TARGET)), steps=range(1, 100), after_step=hooks)
    assert [p.step for p in seen] == called == [1, 2, 3]


def test_each_step_takes_as_many_batches_as_it_accumulates():
    batches = (collate(SOURCE, TARGET) for _ in range(6))
    assert [p.position for p in run(fresh(), batches, steps=[1, 2], accumulate=3)] == [3, 6]


def test_the_rate_is_the_schedules():
    model, rates = fresh(), []
    optimizer = torch.optim.SGD([{"params": [p]} for p in model.parameters()], lr=9.0)
    batches = enumerate(itertools.repeat(collate(SOURCE, TARGET)))
    looked = [lambda p: rates.append((p.rate, {group["lr"] for group in optimizer.param_groups})) or None]
    train(model, batches, CrossEntropy(), optimizer, lambda step: step / 8, steps=[5, 6, 9], after_step=looked)
    assert rates == [(5 / 8, {5 / 8}), (6 / 8, {6 / 8}), (9 / 8, {9 / 8})]


def moved(clip):
    model = fresh()
    before = weights(model)
    (progress,) = run(model, [collate(SOURCE, TARGET)], rate=1.0, steps=[1], clip=clip)
    change = torch.stack([(a - b).norm() for a, b in zip(weights(model), before, strict=True)]).norm()
    return change.item(), progress.gradient_norm.item()


def test_a_long_gradient_is_cut_and_a_short_one_is_left_alone():
    free, length = moved(0.0)
    assert free == pytest.approx(length)
    assert moved(length / 3) == (
        pytest.approx(length / 3, rel=1e-5),
        length,
    )  # the norm in Progress is the one before clipping
    assert moved(length * 3) == (pytest.approx(length), length)


@pytest.mark.parametrize("fused", [True, False])
def test_a_step_is_seen_by_those_who_keep_copies_of_weights(fused):
    model = fresh()
    before = [weight._version for weight in model.parameters()]
    run(model, itertools.repeat(collate(SOURCE, TARGET)), partial(torch.optim.AdamW, fused=fused), steps=[1])
    assert all(weight._version > old for weight, old in zip(model.parameters(), before, strict=True))


def test_frozen_weights_stay():
    model = fresh()
    model.tokens.weight.requires_grad_(False)
    before = weights(model)
    train(
        model,
        enumerate(itertools.repeat(collate(SOURCE, TARGET))),
        CrossEntropy(),
        torch.optim.SGD([p for p in model.parameters() if p.requires_grad]),
        lambda step: 0.1,
        steps=[1, 2],
    )
    assert torch.equal(model.tokens.weight, before[0])
    assert not torch.equal(weights(model)[-1], before[-1])
