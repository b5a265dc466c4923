"""Small models with different outputs, in float64."""

import pytest
import torch
from torch import nn

from heed.models.transformer import Transformer, TransformerConfig

SOURCE = torch.tensor([[1, 2, 3, 4], [3, 1, 2, 2], [2, 4, 1, 3]])
VALID = torch.tensor([[True, True, True, True], [True, True, False, False], [True, True, True, False]])


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Models this small only lose time by sharing their work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def small(seed):
    """A model of five tokens that cares about its past and does not end at once, or these tests would show little."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        vocab_size=5, dim=16, heads=2, hidden=32, encoder_layers=1, decoder_layers=2, max_length=20, norm="pre",
        tied="none", output_bias=True,
    )  # fmt: skip
    model = Transformer(config).double().eval().requires_grad_(False)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.5)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
    for layer in model.decoder.layers:
        layer.attention.body.out.weight *= 3
    model.bias[4] += 0.3
    one, other = (model(SOURCE, torch.tensor([past] * 3), VALID)[:, -1] for past in ([0, 1, 2, 3], [0, 3, 1, 3]))
    assert (one.softmax(-1) - other.softmax(-1)).abs().amax(-1).min() > 0.05
    assert (one[0].softmax(-1) - one[1].softmax(-1)).abs().max() > 0.05  # and about its source
    return model


@pytest.fixture(scope="session")
def model():
    return small(0)


@pytest.fixture(scope="session")
def other():
    return small(13)


@pytest.fixture
def texts():
    return SOURCE, VALID


class Counting:
    """A model that records the number of rows of each step."""

    def __init__(self, model):
        self.model, self.start, self.rows = model, model.start, []

    def step(self, tokens, state):
        self.rows.append(len(tokens))
        return self.model.step(tokens, state)
