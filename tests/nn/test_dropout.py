"""Which values are dropped, and where."""

import pytest
import torch

from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.transformer_xl import TransformerXL, TransformerXLConfig
from heed.nn.dropout import VariationalDropout, WordEmbedding, embedding_dropout, weight_dropout, word_dropout
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


def test_a_rate_that_is_not_set_is_that_of_the_other_dropout():
    assert embedding_dropout(None, 0.3).p == 0.3 and embedding_dropout(0.0, 0.3).p == 0.0
    assert embedding_dropout(0.6, 0.3).rate == 0.6


SIZES = {"vocab_size": 30, "dim": 16, "heads": 2, "hidden": 32, "layers": 1, "dropout": 0.0, "attention_dropout": 0.0}
LANGUAGE_MODELS = {GPT2: GPT2Config, TransformerXL: TransformerXLConfig}


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_a_language_model_drops_units_of_its_output_at_all_positions(kind):
    torch.manual_seed(0)
    model, tokens = kind(LANGUAGE_MODELS[kind](**SIZES, output_dropout=0.5)), torch.randint(30, (4, 6))
    full, dropped = model.eval().hidden_states(tokens), model.train().hidden_states(tokens)
    kept = dropped != 0
    assert 0 < kept.sum() < kept.numel() and (kept == kept[:, :1]).all()
    torch.testing.assert_close(dropped[kept], 2 * full[kept])


@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_a_language_model_drops_units_of_its_embeddings_at_all_positions(kind):
    torch.manual_seed(0)
    model = kind(LANGUAGE_MODELS[kind](**SIZES, input_dropout=0.5)).train()
    seen = []
    model.stack.layers[0].attention.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model.hidden_states(torch.randint(30, (4, 6)))
    assert (seen[0] == 0).any() and ((seen[0] == 0) == (seen[0] == 0)[:, :1]).all()


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


def test_a_table_of_embeddings_drops_words_in_training_alone():
    torch.manual_seed(0)
    table, tokens = WordEmbedding(50, 4, 0.5), torch.arange(50).repeat(2, 1)
    plain = table.weight[tokens]
    torch.testing.assert_close(table.eval()(tokens), plain, rtol=0, atol=0)
    first, second = table.train()(tokens)
    torch.testing.assert_close(first, second, rtol=0, atol=0)  # a word is dropped at all its positions
    dropped = (first == 0).all(dim=1)
    assert 0 < dropped.sum() < 50
    torch.testing.assert_close(first[~dropped], 2 * plain[0][~dropped])
