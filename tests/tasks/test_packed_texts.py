"""Texts packed in one row train a classifier as padded ones do."""

from types import SimpleNamespace

import pytest
import torch

from heed.data.labelled import CollateTexts, PackTexts, as_given
from heed.models import MODELS
from heed.products.classifier import Classifier
from heed.tasks.classification import Classification, ClassificationSettings
from heed.tasks.regression import Regression, RegressionSettings
from heed.tasks.text_losses import LabelLoss, PackedTextLoss, TextLoss, squared_error
from heed.training.accelerated.captured_passes import CapturedPasses
from heed.training.loss import smoothed_cross_entropy
from heed.vocabularies.labels import Numbers
from heed.vocabularies.vocabulary import SpecialTokens

ENCODERS = ("bert", "albert", "roberta", "electra", "bigbird")
SPECIAL = (SpecialTokens(0, 1, 2, 3, before=(2,), delimiter=(3,), segments=True), SpecialTokens(0, 1, 2, 3))
TEXTS = [[5, 6, 3, 7, 8, 9], [10], [11, 12, 13, 3, 14], [], [15, 3, 16]]
LABELS, NUMBERS = [[0], [2], [1], [1], [0]], [0.5, -1.25, 3.0, 0.0, 2.5]


def encoder(name, labels=3, **head):
    torch.manual_seed(0)
    system = MODELS[name]
    sizes = {"dim": 16, "heads": 2, "hidden": 24, "layers": 2, "max_length": 32}
    dropout = dict.fromkeys(("dropout", "attention_dropout", "classifier_dropout"), 0.0)
    made = system.model(system.config(vocab_size=40, **sizes, **dropout, labels=labels, **head)).double()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return made


def results(model, loss, batch, passes=None):
    """The loss, its count, and all gradients."""
    model.zero_grad()
    found = loss(model, batch) if passes is None else passes(batch)
    if passes is None:
        found.total.backward()
    gradients = [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in model.parameters()]
    return [found.total.detach(), found.nll, torch.tensor(found.count), *gradients]


@pytest.mark.parametrize("slots", [1, 16, 64])
@pytest.mark.parametrize("task", ["labels", "numbers"])
@pytest.mark.parametrize("name", ENCODERS)
def test_packed_texts_give_the_loss_and_gradients_of_padded_ones(name, task, slots):
    labels = LABELS if task == "labels" else [Numbers().encode([str(number)])[0] for number in NUMBERS]
    loss = PackedTextLoss(LabelLoss(0.1) if task == "labels" else squared_error, Classifier.combine)
    collate = CollateTexts(as_given, numbers=task == "numbers")
    model = encoder(name, 3 if task == "labels" else 1)
    padded = results(model, loss, collate(TEXTS, labels, SPECIAL))
    batch = PackTexts(collate)(TEXTS, labels, SPECIAL, slots=slots)
    assert batch.source.shape[1] % slots == 0 and batch.count == len(TEXTS)
    packed = results(model, loss, batch)
    assert sum(float(one.abs().sum()) for one in padded) > 1
    torch.testing.assert_close(packed, padded, rtol=0, atol=1e-10)
    captured = results(model, loss, batch, CapturedPasses(model, loss))
    torch.testing.assert_close(captured, packed, rtol=0, atol=0)


def test_a_share_without_texts_has_nothing_to_learn():
    model = encoder("bert")
    loss = PackedTextLoss(LabelLoss(0.1), Classifier.combine)
    total, nll, count, *gradients = results(model, loss, PackTexts(CollateTexts())([], [], SPECIAL, slots=16))
    assert total == nll == count == 0
    assert not any(own.any() for own in gradients)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_labels_is_cross_entropy_by_definition(smoothing):
    torch.manual_seed(0)
    logits, labels = torch.randn(7, 4, dtype=torch.float64), torch.tensor([0, 3, 1, -1, 2, -1, 1])
    found = LabelLoss(smoothing)(logits, labels)
    expected, _ = smoothed_cross_entropy(logits[labels >= 0], labels[labels >= 0], smoothing)
    torch.testing.assert_close(found[:2], expected[:2], rtol=0, atol=1e-12)


def test_texts_with_several_inputs_or_a_language_loss_are_not_packed():
    prepared = SimpleNamespace(processors={"labels": Numbers()})
    plain = [ClassificationSettings(), RegressionSettings()]
    others = [ClassificationSettings(both_orders=True), RegressionSettings(lm_weight=0.5)]
    for kind, packs, settings in [(PackedTextLoss, True, plain), (TextLoss, False, others)]:
        for task, own in zip((Classification, Regression), settings, strict=True):
            made = task(own).objective(prepared)
            assert type(made) is kind and hasattr(made, "packed") is packs
