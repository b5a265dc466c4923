"""Where the parts of a layer stand, beside their formulas with a dropout that is chosen by hand."""

import pytest
import torch
from torch import nn

from heed.nn.transformer import MLP, PostNorm, PreNorm


class Halved(nn.Module):
    """In place of dropout: what passes it is halved, so that it shows."""

    def forward(self, x):
        return x / 2


@pytest.fixture
def parts():
    torch.manual_seed(0)
    norm, body = nn.LayerNorm(6).double(), nn.Linear(6, 6).double()
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    return body, norm, torch.randn(2, 3, 6, dtype=torch.float64)


def test_a_sublayer_drops_what_it_adds_and_nothing_else(parts):
    body, norm, x = parts
    before, after = PreNorm(body, norm, 0.1), PostNorm(body, norm, 0.1)
    assert before.dropout.p == after.dropout.p == 0.1
    before.dropout = after.dropout = Halved()
    assert torch.equal(before(x), x + body(norm(x)) / 2)
    assert torch.equal(after(x), norm(x + body(x) / 2))


def test_a_feed_forward_network_drops_what_its_activation_gives(parts):
    _, _, x = parts
    mlp = MLP(6, 10, torch.relu, 0.1).double()
    assert mlp.dropout.p == 0.1
    mlp.dropout = Halved()
    assert torch.equal(mlp(x), mlp.down(mlp.up(x).relu() / 2))
