"""Which values are dropped, and where."""

import pytest
import torch

from heed.nn.dropout import VariationalDropout, weight_dropout, word_dropout
from heed.nn.recurrent import GRU, LSTM, RNN


def test_all_positions_share_one_dropout_mask():
    torch.manual_seed(0)
    y = VariationalDropout(0.5)(torch.ones(4, 7, 100, dtype=torch.float64))
    assert (y == y[:, :1]).all()
    assert set(y.unique().tolist()) == {0.0, 2.0}
    assert not (y[0] == y[1]).all()
    assert 0.3 < (y == 0).double().mean() < 0.7


def test_nothing_is_dropped_in_evaluation():
    x = torch.rand(2, 3, 4)
    assert VariationalDropout(0.5).eval()(x) is x
    assert VariationalDropout(0.0)(x) is x


def test_a_dropped_word_is_dropped_at_all_positions():
    tokens = torch.arange(50).repeat(2, 3)
    kept = word_dropout(tokens, 50, 0.5)[:, :, 0]
    assert (kept == kept[:1, :50].repeat(2, 3)).all()
    assert set(kept.unique().tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("kind", [RNN, LSTM, GRU])
def test_recurrent_weights_are_dropped_only_inside_the_block(kind):
    torch.manual_seed(0)
    net, x = kind(3, 20, 2).double().train(), torch.rand(2, 5, 3, dtype=torch.float64)
    before = net(x)[0]
    with weight_dropout(net, 0.5):
        inside = [w.clone() for layer in net.layers for w in layer._flat_weights]
        within = net(x)[0]
    within.sum().backward()
    assert torch.equal(net(x)[0], before)
    assert not torch.allclose(within, before)
    for kept, (name, weight) in zip(inside, net.named_parameters(), strict=True):
        same = torch.equal(kept, weight)
        assert same == ("weight_hh" not in name), name
        if not same:
            assert (kept == 0).double().mean() > 0.3
            assert torch.equal(weight.grad == 0, kept == 0)
    net.eval()
    with weight_dropout(net, 0.5):
        assert torch.equal(net(x)[0], before)
