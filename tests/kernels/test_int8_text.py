"""Language models in 8-bit integers: layers equal integer arithmetic written out, row by row, and steps one pass over
the whole text.
"""

import numpy as np
import pytest
import torch
from torch import nn

from heed.kernels import int8, int8_text
from heed.models import MODELS
from tests.integers import product_of_integers

SIZES = {"dim": 32, "heads": 4, "hidden": 64, "layers": 3, "max_length": 24}
NAMES = ("gpt", "gpt2", "ctrl")


@pytest.fixture(autouse=True)
def on_any_cpu(monkeypatch):
    """CPUs without the instructions compute the products by torch's integers."""
    if int8.unavailable():
        product_of_integers(monkeypatch)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def model(name, **changes):
    system = MODELS[name]
    torch.manual_seed(1)
    own = system.model(system.config(vocab_size=71, **SIZES, **changes)).eval().requires_grad_(False)
    for weight in own.parameters():
        nn.init.normal_(weight, std=0.2)
    return own


def rounded(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scale = np.abs(rows).max(axis=1, keepdims=True) * np.float32(1 / 127)
    return np.floor(rows / scale + 0.5), scale.astype(np.float64)


@pytest.mark.parametrize("rows", [1, 5, 70])
@pytest.mark.parametrize("bias", [True, False])
def test_layers_equal_integer_arithmetic(rows, bias):
    layers, x = [nn.Linear(64, 300, bias=bias), nn.Linear(64, 8)], random(rows, 64) * 3 + 1
    values, scale = rounded(x.numpy())
    weights = [own.weight.detach() for own in layers]
    wide, units = map(torch.cat, zip(*map(int8.to_int8, weights), strict=True))
    biases = torch.cat([layers[0].bias if bias else torch.zeros(300), layers[1].bias]).detach()
    expected = values @ wide.double().numpy().T * scale * units.double().numpy().T + biases.double().numpy()
    found = int8_text.FewRows(*layers)(x)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-4)
    half = np.abs(np.abs(x.numpy() / scale % 1) - 0.5).min()
    assert half > 1e-5, "no value is halfway between two steps, where rounding would decide"


def test_a_row_does_not_depend_on_the_others_nor_on_its_place():
    layer, x = int8_text.FewRows(nn.Linear(64, 40)), random(9, 64) * torch.logspace(-4, 4, 9)[:, None]
    together = layer(x)
    assert torch.equal(torch.cat([layer(row) for row in x.split(1)]), together)
    order = torch.tensor([4, 0, 8, 2, 2, 7])
    assert torch.equal(layer(x[order]), together[order])
    assert torch.equal(layer(x.view(3, 3, 64)), together.view(3, 3, 40))


def test_a_row_of_zeros_gives_the_bias_and_one_that_is_not_a_number_stays_so():
    layer = nn.Linear(8, 3)
    found = int8_text.FewRows(layer)(torch.stack([torch.zeros(8), torch.full((8,), torch.nan), torch.ones(8)]))
    assert torch.equal(found[0], layer.bias) and found[1].isnan().all() and found[2].isfinite().all()


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_logits_are_close_to_float32_and_steps_equal_one_pass(name):
    own = model(name)
    made, tokens = int8_text.Int8Text(own), torch.randint(71, (2, 12), generator=torch.Generator().manual_seed(2))
    exact = own.project(own.hidden_states(tokens))
    found, state = made.project(made.hidden_states(tokens)), made.start(2)
    spread = exact.std()
    assert 1e-3 * spread < (found - exact).abs().max() < 0.3 * spread
    made.hidden_states(tokens[:, :5], state)
    for place in range(5, 12):
        # a value at the border between two steps may be rounded the other way
        assert (made.step(tokens[:, place], state) - found[:, place]).abs().max() < 0.05 * spread


@torch.inference_mode()
def test_vectors_before_a_text_are_read():
    own = model("gpt2", prompt_length=3)
    made, tokens = int8_text.Int8Text(own), torch.arange(6)[None]
    exact, found = (part.project(part.hidden_states(tokens)) for part in (own, made))
    assert (found - exact).abs().max() < 0.3 * exact.std()


@pytest.mark.parametrize("name", NAMES)
def test_the_copy_shares_embeddings_and_norms_and_leaves_the_model_as_it_was(name):
    own = model(name)
    before = {key: value.clone() for key, value in own.state_dict().items()}
    made = int8_text.Int8Text(own)
    assert made.model.tokens.weight is own.tokens.weight
    assert sum(type(part) is int8_text.FewRows for part in made.modules()) == 4 * SIZES["layers"] + 1
    assert all(torch.equal(value, before[key]) for key, value in own.state_dict().items())
    assert int8.supports(own)
