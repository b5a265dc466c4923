"""Texts in one row without padding have the states that each has alone."""

import numpy as np
import pytest
import torch

from heed.data.packing import pack_texts
from heed.models import MODELS
from heed.nn.packing import SequenceOffsets
from heed.nn.pooling import POOLINGS

ENCODERS = ("bert", "albert", "roberta", "electra", "bigbird")
SIZES = {"vocab_size": 40, "dim": 16, "heads": 2, "hidden": 24, "layers": 2, "max_length": 32}
LENGTHS = (5, 1, 9, 5)


@pytest.fixture(params=ENCODERS)
def model(request):
    torch.manual_seed(0)
    system = MODELS[request.param]
    made = system.model(system.config(**SIZES, labels=3)).double().eval()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return made


def texts() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    valid = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    tokens = torch.randint(5, 40, valid.shape).where(valid, torch.tensor(1))
    tokens[2, 4] = 1  # a text may spell RoBERTa's padding
    return tokens, valid, (torch.arange(max(LENGTHS)) > 2).long() * valid


def test_packed_texts_have_the_states_and_labels_that_each_has_alone(model):
    tokens, valid, segments = texts()
    packed = pack_texts(tokens, valid, segments)
    states, labels = model.encode_text(*packed), model.classify_text(*packed)
    alone = [
        (tokens[i : i + 1, :n], None, segments[i : i + 1, :n]) for i, n in enumerate(LENGTHS)
    ]  # each without any padding
    each = torch.cat([model.encode_text(*own)[0] for own in alone])
    assert torch.allclose(states[0], each, rtol=0, atol=1e-10)
    expected = torch.cat([model.classify_text(*own) for own in alone])
    assert torch.allclose(labels, expected, rtol=0, atol=1e-10)
    assert torch.allclose(model.classify_text(tokens, valid, segments), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", POOLINGS)
def test_pooled_texts_are_the_same_packed_padded_and_by_definition(model, name):
    tokens, valid, segments = texts()
    packed, pool = pack_texts(tokens, valid, segments), POOLINGS[name]
    padded = model.encode_text(tokens, valid, segments)
    found = pool(model.encode_text(*packed), packed[1])
    rows = [padded[i, :n] for i, n in enumerate(LENGTHS)]
    definition = {"mean": lambda x: x.mean(dim=0), "cls": lambda x: x[0], "max": lambda x: x.amax(dim=0)}[name]
    expected = torch.stack([definition(row) for row in rows])
    assert torch.allclose(found, expected, rtol=0, atol=1e-10)
    assert torch.allclose(pool(padded, valid), expected, rtol=0, atol=1e-10)
    weights = torch.linspace(-1, 1, expected.numel(), dtype=expected.dtype).view(expected.shape)
    (one,) = torch.autograd.grad((found * weights).sum(), model.tokens.weight)
    (other,) = torch.autograd.grad((expected * weights).sum(), model.tokens.weight)
    assert torch.allclose(one, other, rtol=0, atol=1e-10)


def test_a_bigbird_packs_texts_of_full_attention_alone():
    system = MODELS["bigbird"]
    model = system.model(system.config(**SIZES | {"max_length": 64}, block=4, random_blocks=1)).eval()
    assert model.packs(28) and not model.packs(29)
    starts = torch.tensor([0, 29], dtype=torch.int32)
    with pytest.raises(ValueError, match="a text has 29 tokens: block-sparse attention needs one text per row"):
        model.encode_text(torch.zeros(1, 29, dtype=torch.long), SequenceOffsets(starts, 29, torch.arange(29)))


def test_a_text_longer_than_the_positions_is_refused_though_others_are_shorter(model):
    tokens, valid = torch.full((2, 33), 6), torch.ones(2, 33, dtype=torch.bool)
    valid[0, 4:] = False
    with pytest.raises(ValueError, match="a text has 33 tokens, but the model has 32 positions"):
        model.encode_text(*pack_texts(tokens, valid))
    short = np.array([valid[0].sum()])
    assert model.encode_text(*pack_texts(tokens[:1, :4], valid[:1, :4])).shape[1] == short[0]
