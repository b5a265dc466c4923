"""A text seen from inside a language model: the numbers of its forward pass, with and without a learned prompt."""

import math

import numpy as np
import pytest
import torch

from heed.models.gpt2 import GPT2, GPT2Config
from heed.products.text_scores import surprisal, token_logprobs
from heed.products.text_trace import trace_text
from heed.vocabularies.characters import Characters


@pytest.mark.parametrize("prompt", [0, 3])
def test_rows_and_columns_are_the_tokens_of_the_text(prompt):
    vocabulary = Characters(list("abcde"))
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(vocabulary), dim=8, heads=2, hidden=16, layers=2, max_length=12, prompt_length=prompt
    )
    model = GPT2(config).double().eval()
    ids = [vocabulary.special.last, *vocabulary.encode(["bead"])[0]]
    found = trace_text(model, vocabulary, "bead", ids, 3, "small")
    assert found.attention.shape == (2, 2, 5, 5) and len(found.inputs) == len(found.predictions) == 5
    assert not np.triu(found.attention, 1).any(), "no token sees a later one"
    assert (np.isclose(found.attention.sum(-1), 1, atol=1e-5)).all() == (prompt == 0), "the rest goes to the prompt"
    assert found.scores == pytest.approx(token_logprobs(model, [ids], vocabulary.special.pad)[0])


def test_the_surprisal_of_a_token_is_its_log_probability_in_bits():
    vocabulary = Characters(list("abcde"))
    torch.manual_seed(0)
    model = GPT2(GPT2Config(vocab_size=len(vocabulary), dim=8, heads=2, hidden=16, layers=1, max_length=12))
    model = model.double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    ids = [vocabulary.special.last, *vocabulary.encode(["bead"])[0]]
    found = surprisal(model, vocabulary, "bead", ids, 3, "small").places
    expected = token_logprobs(model, [ids], vocabulary.special.pad)[0]
    assert [-one.bits * math.log(2) for one in found[:-1]] == pytest.approx(expected)
    assert [one.token for one in found[:-1]] == vocabulary.pieces(ids[1:]) and found[-1].bits is None
    for one in found:
        odds = [p for _, p in one.likely]
        assert odds == sorted(odds, reverse=True) and 0 < sum(odds) <= 1 and len(odds) == 3
        if one.bits is not None and one.rank <= 3:
            assert odds[one.rank - 1] == pytest.approx(2**-one.bits)
