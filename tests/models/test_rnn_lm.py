"""The recurrent language model against the formula of the notes, and against itself."""

import pytest
import torch

from heed.models.folder import load, save
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig


def build(**changes) -> RNNLanguageModel:
    values = {"vocab_size": 11, "dim": 6, "hidden": 6, "dropout": 0.0, **changes}
    model = RNNLanguageModel(RNNLanguageModelConfig(**values)).double().eval()
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.2)
    return model


TOKENS = torch.tensor([[1, 4, 7, 10, 2], [3, 3, 0, 5, 8]])


def test_it_is_the_formula_of_the_notes():
    model = build(cell="rnn", layers=1, tied="none", hidden=5)
    layer = model.net.layers[0]
    w_h, w_e, b_1 = layer.weight_hh_l0, layer.weight_ih_l0, layer.bias_ih_l0 + layer.bias_hh_l0
    h = torch.zeros(2, 5, dtype=torch.float64)
    said = []
    for t in range(TOKENS.shape[1]):
        h = torch.tanh(h @ w_h.T + model.tokens.weight[TOKENS[:, t]] @ w_e.T + b_1)
        said.append((h @ model.output.weight.T + model.bias).softmax(dim=-1))
    assert torch.allclose(model(TOKENS).softmax(dim=-1), torch.stack(said, dim=1), atol=1e-10, rtol=0)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("changes", [{}, {"tied": "none"}, {"hidden": 9}])
def test_windows_and_steps_give_what_one_pass_gives(cell, changes):
    model = build(cell=cell, **changes)
    whole, state = model(TOKENS), model.start(2)
    parts = [model(TOKENS[:, :2], state), model(TOKENS[:, 2:3], state), model(TOKENS[:, 3:], state)]
    assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-10, rtol=0)
    state = model.start(2)
    steps = [model.step(TOKENS[:, t], state) for t in range(TOKENS.shape[1])]
    assert torch.allclose(torch.stack(steps, dim=1), whole, atol=1e-10, rtol=0)


def test_rows_can_change_places():
    model = build()
    state = model.start(2)
    model.hidden_states(TOKENS[:, :3], state)
    state.reorder(torch.tensor([1, 0, 1]))
    found = model.step(TOKENS[[1, 0, 1], 3], state)
    assert torch.allclose(found, model(TOKENS)[[1, 0, 1], 3], atol=1e-10, rtol=0)


def test_tied_weights_are_one_matrix():
    model = build()
    assert model.output_weights()[0] is model.tokens.weight
    assert model.down is None
    assert build(hidden=9).down.weight.shape == (6, 9)


def test_all_dropouts_are_at_work_in_training_and_none_after_it():
    rates = {"input_dropout": 0.0, "layer_dropout": 0.0, "word_dropout": 0.0, "weight_dropout": 0.0, "dropout": 0.0}
    for name in rates:
        model = build(**{**rates, name: 0.5})
        still = model(TOKENS)
        torch.manual_seed(1)
        assert not torch.allclose(model.train()(TOKENS), still), name
        assert torch.equal(model.eval()(TOKENS), still)
    torch.manual_seed(1)
    assert torch.equal(build(**rates).train()(TOKENS), build(**rates)(TOKENS))


def test_a_folder_gives_back_the_model(tmp_path):
    model = build(cell="gru", weight_dropout=0.1).float()
    save(tmp_path, model, {})
    assert torch.equal(load(tmp_path)(TOKENS), model(TOKENS))
    assert load(tmp_path).config == model.config


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"dim": 0}, "dim is 0; it must be at least 1"), ({"word_dropout": 1.0}, "word_dropout is 1.0; it must be at least 0 and below 1"),
     ({"tied": "target"}, "tied is 'target'; a language model supports 'all' or 'none'")],
)  # fmt: skip
def test_what_no_model_can_have_is_refused(changes, error):
    with pytest.raises(ValueError, match=error):
        RNNLanguageModelConfig(vocab_size=5, **changes)
