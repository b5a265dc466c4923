"""Perplexity against a plain loop, and what must not matter to it."""

import math

import pytest
import torch

from heed.evaluation.perplexity import Context, measure_perplexity
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.vocabularies import words
from heed.vocabularies.sentencepiece import SubwordsConfig

LINES = ["the cat sat on the mat", "", "the dog saw a 고양이", "the cat"] * 9


@pytest.fixture
def vocabulary():
    return words.learn(LINES[:2], SubwordsConfig(kind="words", least=1))


@pytest.fixture
def model(vocabulary):
    torch.manual_seed(0)
    model = RNNLanguageModel(RNNLanguageModelConfig(vocab_size=len(vocabulary), dim=6, hidden=6, dropout=0.5)).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.2)
    return model


def test_it_is_the_exponential_of_the_mean_by_a_plain_loop(model, vocabulary):
    model.eval()
    token_before, state, total, count = torch.tensor([3]), model.start(1), 0.0, 0
    for line in LINES:
        for token in [*vocabulary.encode([line])[0], 3]:
            total -= model.step(token_before, state).log_softmax(dim=-1)[0, token].item()
            token_before, count = torch.tensor([token]), count + 1
    model.train()  # the mode does not matter
    found = measure_perplexity(model, vocabulary, LINES)
    assert found.tokens == count == sum(len(line.split()) + 1 for line in LINES) == found.words
    assert found.per_token == pytest.approx(math.exp(total / count), rel=1e-10)
    assert found.per_word == pytest.approx(found.per_token)
    assert found.bytes == len(("\n".join(LINES) + "\n").encode())
    assert found.bits_per_byte == pytest.approx(total / math.log(2) / found.bytes, rel=1e-10)
    assert (found.lines, found.unknown) == (36, 9 * 4)
    assert "unit:words|tokens:153|unknown:36|line-ends:counted|state:carried|rows:1" in found.signature


def test_the_sizes_of_windows_and_chunks_do_not_matter(model, vocabulary, monkeypatch):
    whole = measure_perplexity(model, vocabulary, LINES)
    monkeypatch.setattr("heed.evaluation.perplexity.WINDOW", 7)
    monkeypatch.setattr("heed.evaluation.perplexity.CHUNK", 3)
    assert measure_perplexity(model, vocabulary, LINES).nll == pytest.approx(whole.nll, rel=1e-10)


def test_more_rows_are_near_and_count_all(model, vocabulary):
    whole = measure_perplexity(model, vocabulary, LINES)
    rows = measure_perplexity(model, vocabulary, LINES, Context(rows=10))
    assert rows.tokens == whole.tokens
    assert rows.per_token == pytest.approx(whole.per_token, rel=0.01)
    assert rows.by_line == pytest.approx(whole.by_line, rel=0.05)  # in the order of the text
    assert measure_perplexity(model, vocabulary, ["the"], Context(rows=10)).rows == 2


def test_an_empty_text_is_refused(model, vocabulary):
    with pytest.raises(ValueError, match="the text has no lines"):
        measure_perplexity(model, vocabulary, [])
    with pytest.raises(ValueError, match="rows is 0"):
        measure_perplexity(model, vocabulary, LINES, Context(rows=0))
