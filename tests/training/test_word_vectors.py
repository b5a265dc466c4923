"""The objectives of word vectors against plain loops, their gradients by hand, and a training."""

import math

import numpy as np
import pytest
import torch

from heed.data.vectors.word_text import index_ngrams, read_words
from heed.training.word_vectors import (
    FastText,
    GloVe,
    WordVectorsConfig,
    glove_loss,
    keep_shares,
    negative_sampling_loss,
    noise_shares,
    train_vectors,
)

TEXT = ["the cat eats fish", "the dog eats meat", "a cat and a dog play"] * 20


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_negative_sampling_is_its_formula_and_so_is_its_gradient():
    torch.manual_seed(0)
    centre, context, noise = draw(3, 4), draw(3, 4), draw(3, 2, 4)
    total, gradient = 0.0, torch.zeros(3, 4, dtype=torch.float64)
    for i in range(3):
        total -= math.log(sigmoid((context[i] @ centre[i]).item()))
        gradient[i] += (sigmoid((context[i] @ centre[i]).item()) - 1) * context[i].detach()
        for k in range(2):
            total -= math.log(sigmoid(-(noise[i, k] @ centre[i]).item()))
            gradient[i] += sigmoid((noise[i, k] @ centre[i]).item()) * noise[i, k].detach()
    loss = negative_sampling_loss(centre, context, noise)
    assert loss.item() == pytest.approx(total)
    assert torch.allclose(torch.autograd.grad(loss, centre)[0], gradient)


def test_glove_is_its_formula_and_so_is_its_gradient():
    torch.manual_seed(0)
    product, biases, counts = draw(4), draw(4), torch.tensor([1.0, 50.0, 100.0, 300.0], dtype=torch.float64)
    total, gradient = 0.0, []
    for p, b, x in zip(product.tolist(), biases.tolist(), counts.tolist(), strict=True):
        weight = (x / 100) ** 0.75 if x < 100 else 1.0
        total += weight * (p + b - math.log(x)) ** 2
        gradient.append(2 * weight * (p + b - math.log(x)))
    loss = glove_loss(product, biases, counts, 100.0)
    assert loss.item() == pytest.approx(total)
    assert torch.autograd.grad(loss, product)[0].tolist() == pytest.approx(gradient)


def test_glove_multiplies_a_word_with_a_context():
    model = GloVe(5, 3)
    words, contexts, counts = torch.tensor([0, 4]), torch.tensor([2, 2]), torch.tensor([3.0, 7.0])
    total = 0.0
    for i, j, x in ((0, 2, 3.0), (4, 2, 7.0)):
        dot = (model.centres.weight[i] @ model.contexts.weight[j]).item()
        error = dot + model.centre_bias.weight[i].item() + model.context_bias.weight[j].item() - math.log(x)
        total += (x / 10) ** 0.75 * error**2
    assert model.loss(words, contexts, counts, 10.0).item() == pytest.approx(total, rel=1e-5)


def test_a_word_of_fasttext_is_the_mean_of_its_parts():
    grams, rows = index_ngrams(["her", "where", "a"], 3, 4)
    model = FastText(3, 5, rows, len(grams))
    found = model.vectors(torch.tensor([1, 0, 1, 2]))
    for at, word in enumerate([1, 0, 1, 2]):
        parts = [model.parts.weight[word], *(model.parts.weight[3 + i] for i in rows[word])]
        assert torch.allclose(found[at], torch.stack(parts).mean(0), atol=1e-6)
    assert not len(rows[2])  # <a> is the word itself, <a and a> are too short


def test_shares_by_hand():
    counts = np.array([81, 16])
    assert noise_shares(counts).tolist() == pytest.approx([27 / 35, 8 / 35])
    assert keep_shares(np.array([90, 10]), 0.1).tolist() == pytest.approx([1 / 3, 1.0])
    assert keep_shares(counts, 0.0).tolist() == [1, 1]


@pytest.mark.parametrize("method", ["skipgram", "glove", "fasttext"])
def test_training_lowers_the_loss_and_is_the_same_again(method):
    text = read_words(TEXT)
    config = WordVectorsConfig(method, dim=8, window=2, epochs=6, batch=64, subsample=0.0)
    told: list[float] = []
    trained, again = train_vectors(text, config, told.append), train_vectors(text, config)
    assert trained.losses[-1] < 0.9 * trained.losses[0]
    np.testing.assert_array_equal(trained.matrix, again.matrix)
    assert trained.matrix.shape == (len(text.words), 8) and np.isfinite(trained.matrix).all()
    assert told[-1] == pytest.approx(6) and told == sorted(told)
    other = train_vectors(text, WordVectorsConfig(method, dim=8, window=2, epochs=6, batch=64, subsample=0.0, seed=2))
    assert not np.array_equal(other.matrix, trained.matrix)


def test_texts_that_teach_nothing_are_refused():
    with pytest.raises(
        ValueError, match="the text has only one word that is frequent enough, 'a': vectors need at least two"
    ):
        train_vectors(read_words(["a a a"]), WordVectorsConfig())
    with pytest.raises(ValueError, match="no line of the text has two words that are frequent enough"):
        train_vectors(read_words(["a", "b"]), WordVectorsConfig())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"window": 0}, "window is 0; it must be at least 1"),
        ({"dim": 0}, "dim is 0; it must be at least 1"),
        ({"rate": 0.0}, "rate is 0.0; it must be above 0"),
        ({"subsample": -1.0}, "subsample is -1.0; it must be at least 0"),
        ({"longest": 2}, "longest is 2; it must be at least shortest, 3"),
    ],
)
def test_settings_that_cannot_be(settings, says):
    with pytest.raises(ValueError, match=says):
        WordVectorsConfig(**settings)
