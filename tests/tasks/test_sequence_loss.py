"""Losses beside their definitions, in float64."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from heed.data.batching import Batch, collate
from heed.models.transformer import Transformer, TransformerConfig
from heed.tasks.sequence_loss import CrossEntropy, Distilled, RDrop
from heed.training.loss import smoothed_cross_entropy

CONFIG = TransformerConfig(vocab_size=19, dim=16, heads=2, hidden=24, encoder_layers=1, decoder_layers=1, dropout=0.3)
SOURCE = [[5, 6, 7], [8], [9, 10, 11, 12], [4, 4]]
TARGET = [[6], [7, 8, 9, 10], [11, 12], [13, 14, 15]]


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = Transformer(CONFIG)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    return model.double().eval()


def assert_same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def gradients(model, total):
    model.zero_grad()
    total.backward()
    return [weight.grad.clone() for weight in model.parameters()]


def outputs(batch):
    """What the decoder should say, padding left at 0, by the plain rule: the inputs shifted back."""
    grid = torch.zeros_like(batch.target).flatten()
    grid[batch.positions] = batch.expected
    return grid.view_as(batch.target)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_torchs_cross_entropy_of_all_that_is_no_padding(model, smoothing):
    batch = collate(SOURCE, TARGET)
    loss = CrossEntropy(smoothing)(model, batch)
    logits = model(batch.source, batch.target, batch.valid)
    kinds = {"ignore_index": 0, "reduction": "sum"}
    expected = F.cross_entropy(logits.mT, outputs(batch), label_smoothing=smoothing, **kinds)
    assert_same(loss.total, expected)
    assert_same(loss.nll, F.cross_entropy(logits.mT, outputs(batch), **kinds))
    assert loss.count == sum(len(row) + 1 for row in TARGET)
    for ours, theirs in zip(gradients(model, loss.total), gradients(model, expected), strict=True):
        assert_same(ours, theirs)


def test_what_is_only_measured_has_no_gradient(model):
    assert not CrossEntropy()(model, collate(SOURCE, TARGET)).nll.requires_grad


def test_half_precision_is_summed_in_single():
    logits = torch.randn(50, 7, generator=torch.Generator().manual_seed(0)).bfloat16()
    loss, logp = smoothed_cross_entropy(logits, torch.arange(50) % 7, 0.1)
    assert loss.total.dtype == logp.dtype == torch.float32
    expected = F.cross_entropy(logits.float(), torch.arange(50) % 7, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(loss.total, expected)


@pytest.mark.parametrize("objective", [CrossEntropy(0.1), RDrop(0.1, 5.0)], ids=["plain", "r-drop"])
def test_parts_of_a_batch_add_up_to_the_whole(model, objective):
    whole = objective(model, collate(SOURCE, TARGET))
    parts = [objective(model, collate(SOURCE[rows], TARGET[rows])) for rows in (slice(0, 1), slice(1, 4))]
    assert_same(parts[0].total + parts[1].total, whole.total)
    assert_same(parts[0].nll + parts[1].nll, whole.nll)
    assert parts[0].count + parts[1].count == whole.count


def test_r_drop_without_dropout_is_the_plain_loss(model):
    batch = collate(SOURCE, TARGET)
    twice, once = RDrop(0.1, 5.0)(model, batch), CrossEntropy(0.1)(model, batch)
    assert_same(twice.total, once.total)
    assert_same(twice.nll, once.nll)
    assert twice.count == once.count
    for ours, theirs in zip(gradients(model, twice.total), gradients(model, once.total), strict=True):
        assert_same(ours, theirs)


def by_definition(one, other, expected, smoothing, weight):
    """Liang et al., 2021, halved: the mean of two losses and weight / 2 times the mean of KL both ways."""
    losses = [F.cross_entropy(logits, expected, label_smoothing=smoothing, reduction="sum") for logits in (one, other)]
    p, q = one.log_softmax(-1), other.log_softmax(-1)
    kl = [F.kl_div(a, b, reduction="sum", log_target=True) for a, b in ((p, q), (q, p))]
    return sum(losses) / 2 + weight / 2 * sum(kl) / 2


def at(places, states, model):
    return model.project(states.flatten(0, 1)[places])


@pytest.mark.parametrize("weight", [0.0, 1.0, 5.0])
def test_r_drop_with_dropout_is_its_definition(model, weight):
    model.train()
    batch = collate(SOURCE, TARGET)
    torch.manual_seed(3)
    loss = RDrop(0.1, weight)(model, batch)
    torch.manual_seed(3)
    source, valid, target = (torch.cat([part, part]) for part in batch[:3])
    states = model.decode(target, model.encode(source, valid), valid)
    one, other = (at(batch.positions, half, model) for half in states.chunk(2))
    assert (one - other).abs().max() > 0.01
    expected = by_definition(one, other, batch.expected, 0.1, weight)
    assert_same(loss.total, expected)
    mean = sum(F.cross_entropy(logits, batch.expected, reduction="sum") for logits in (one, other)) / 2
    assert_same(loss.nll, mean.detach())
    assert loss.count == len(batch.expected)
    for ours, theirs in zip(gradients(model, loss.total), gradients(model, expected), strict=True):
        assert_same(ours, theirs)
    with torch.no_grad():  # computed in another way, as on a GPU
        torch.manual_seed(3)
        assert_same(RDrop(0.1, weight)(model, batch).total, expected.detach())


def other(seed=5):
    """Another model of the same vocabulary, that drops nothing."""
    torch.manual_seed(seed)
    teacher = Transformer(replace(CONFIG, dim=8, tied="none")).double().eval()
    for weight in teacher.parameters():
        nn.init.normal_(weight, std=0.4)
    return teacher


@pytest.mark.parametrize("seeds", [(5,), (5, 6), (5, 6, 7)])
@pytest.mark.parametrize(("smoothing", "share"), [(0.0, 0.5), (0.1, 0.3), (0.1, 1.0)])
def test_a_distilled_model_learns_the_references_and_what_its_teachers_predict(model, smoothing, share, seeds):
    batch, teachers = collate(SOURCE, TARGET), tuple(map(other, seeds))
    loss = Distilled(teachers, smoothing, share)(model, batch)
    own, *heard = (at(batch.positions, m.decode(batch.target, m.encode(batch.source, batch.valid), batch.valid), m)
                   for m in (model, *teachers))  # fmt: skip
    hard = F.cross_entropy(own, batch.expected, label_smoothing=smoothing, reduction="sum")
    mean = torch.stack([scores.detach().softmax(-1) for scores in heard]).mean(0)
    expected = (1 - share) * hard + share * F.cross_entropy(own, mean, reduction="sum")
    assert_same(loss.total, expected)
    assert_same(loss.nll, F.cross_entropy(own, batch.expected, reduction="sum").detach())
    assert loss.count == len(batch.expected)
    for ours, theirs in zip(gradients(model, loss.total), gradients(model, expected), strict=True):
        assert_same(ours, theirs)
    assert all(weight.grad is None for teacher in teachers for weight in teacher.parameters())


def test_a_model_that_is_its_own_teacher_has_nothing_to_learn(model):
    loss = Distilled((model, model), 0.1, 1.0)(model, collate(SOURCE, TARGET))
    for gradient in gradients(model, loss.total):
        assert_same(gradient, torch.zeros_like(gradient))


class Masked(nn.Module):
    """A model whose dropout can be seen: row i of a batch is multiplied with mask i."""

    def __init__(self, masks):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.table = nn.Parameter(torch.randn(19, 8, generator=generator, dtype=torch.float64))
        self.masks = masks

    def encode(self, source, valid):
        return (self.table[source] * valid[..., None]).sum(1, keepdim=True)

    def decode(self, target, memory, valid):
        return (self.table[target] + memory) * self.masks[: len(target), None]

    def output_weights(self):
        return self.table, None

    def project(self, x):
        return x @ self.table.T


def test_r_drop_is_two_passes_over_the_same_batch():
    masks = (torch.rand(8, 8, generator=torch.Generator().manual_seed(2)) > 0.3).double()
    batch = collate(SOURCE, TARGET)
    loss = RDrop(0.1, 5.0)(Masked(masks), batch)
    logits = []
    for half in masks.chunk(2):
        model = Masked(half)
        states = model.decode(batch.target, model.encode(batch.source, batch.valid), batch.valid)
        logits.append(at(batch.positions, states, model))
    assert_same(loss.total, by_definition(*logits, batch.expected, 0.1, 5.0))


def test_padding_does_not_matter(model):
    batch = collate(SOURCE, TARGET)
    source = F.pad(batch.source, (0, 3))
    width = batch.target.shape[1]
    places = batch.positions // width * (width + 2) + batch.positions % width
    wider = Batch(source, source != 0, F.pad(batch.target, (0, 2)), places, batch.expected)
    for objective in (CrossEntropy(0.1), RDrop(0.1, 5.0)):
        assert_same(objective(model, wider).total, objective(model, batch).total)
