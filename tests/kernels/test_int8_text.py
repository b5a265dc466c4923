"""Language models with weights in 8-bit integers: layers equal their rounded weights times the input, in float64, and
steps equal one pass over the whole text.
"""

import pytest
import torch
from torch import nn

from heed.kernels import int8, int8_text
from heed.kernels.text_model import TextModel
from heed.models import MODELS
from tests.integers import product_of_integers

SIZES = {"dim": 32, "heads": 4, "hidden": 64, "layers": 3, "max_length": 24}
NAMES = ("gpt", "gpt2", "ctrl")
ONE, MANY = 1e-6, 1.6e-5  # of the largest input and weight: float32, and half a step of 16 bits


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


def rounded(layer: nn.Linear | int8.Matrix) -> torch.Tensor:
    """The weights that 8-bit integers stand for, in float64."""
    values, scale = int8.to_int8(layer.weight.detach())
    return values.double() * scale.double()


def exact(layers, x: torch.Tensor) -> torch.Tensor:
    biases = [torch.zeros(len(own.weight)) if own.bias is None else own.bias.detach() for own in layers]
    return x.double() @ torch.cat([rounded(own) for own in layers]).T + torch.cat(biases).double()


def largest(layers, x: torch.Tensor) -> torch.Tensor:
    """Of each output, the largest it could be: what errors are measured by."""
    return x.abs().amax(dim=-1, keepdim=True) * torch.cat([rounded(own).abs().sum(dim=1) for own in layers])


@pytest.mark.parametrize(("rows", "limit"), [(1, ONE), (2, MANY), (70, MANY)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [8, 384, 700])
def test_layers_equal_their_rounded_weights_times_the_input(rows, limit, bias, outputs):
    layers, x = [nn.Linear(64, 300, bias=bias), nn.Linear(64, outputs)], random(rows, 64) * 3 + 1
    found = int8_text.Int8Weights(*layers)(x)
    assert found.dtype == torch.float32 and found.shape == (rows, 300 + outputs)
    error = (found.double() - exact(layers, x)).abs() / largest(layers, x)
    assert error.max() < limit


def test_inputs_far_larger_than_the_others_cost_the_others_nothing():
    """As some states of large language models are: with 8 bits for each input, the others would be lost."""
    layer, x = nn.Linear(256, 300), random(6, 256)
    x[:, 7] *= 100
    expected, made = exact([layer], x), int8_text.Int8Weights(layer)
    plain = (int8.Int8Linear(layer)(x).double() - expected).std() / expected.std()
    many = (made(x).double() - expected).std() / expected.std()
    one = (torch.cat([made(row) for row in x.split(1)]).double() - expected).std() / expected.std()
    assert one < 1e-6 and many < 1e-3 and plain > 100 * many


def test_a_row_does_not_depend_on_the_others_nor_on_its_place():
    layer, x = int8_text.Int8Weights(nn.Linear(64, 40)), random(9, 64) * torch.logspace(-4, 4, 9)[:, None]
    together = layer(x)
    order = torch.tensor([4, 0, 8, 2, 2, 7])
    assert torch.equal(layer(x[order]), together[order])
    assert torch.equal(layer(x.view(3, 3, 64)), together.view(3, 3, 40))
    alone = torch.cat([layer(row) for row in x.split(1)])
    assert ((alone - together).abs() < 1e-4 * x.abs().amax(dim=1, keepdim=True)).all()
    assert torch.equal(layer(x[4]), alone[4]) and torch.equal(layer(x[4].view(1, 1, 64)), alone[4].view(1, 1, 40))


@pytest.mark.parametrize("rows", [1, 3])
def test_a_row_of_zeros_gives_the_bias_and_one_that_is_not_a_number_stays_so(rows):
    layer = nn.Linear(8, 3)
    made, x = int8_text.Int8Weights(layer), [torch.zeros(8), torch.full((8,), torch.nan), torch.ones(8)]
    found = made(torch.stack(x)) if rows == 3 else torch.cat([made(row[None]) for row in x])
    assert torch.equal(found[0], layer.bias) and found[1].isnan().all() and found[2].isfinite().all()


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_the_copy_equals_the_model_with_rounded_weights(name):
    """Also where the output matrix is the embedding, which is not rounded."""
    own, tokens = model(name), torch.randint(71, (2, 12), generator=torch.Generator().manual_seed(2))
    made, output = TextModel(own, int8_text.Int8Weights), rounded(int8.Matrix(*own.output_weights())).float()
    for part in own.modules():
        if isinstance(part, nn.Linear):
            part.weight.copy_(rounded(part))
    expected = own.hidden_states(tokens) @ output.T + (0 if own.bias is None else own.bias)
    found = made.project(made.hidden_states(tokens))
    assert (found - expected).abs().max() < 2e-3 * expected.std()


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_logits_are_close_to_float32_and_steps_equal_one_pass(name, rows):
    own = model(name)
    made, tokens = (
        TextModel(own, int8_text.Int8Weights),
        torch.randint(71, (rows, 12), generator=torch.Generator().manual_seed(2)),
    )
    expected = own.project(own.hidden_states(tokens))
    found, state = made.project(made.hidden_states(tokens)), made.start(rows)
    spread = expected.std()
    assert 1e-3 * spread < (found - expected).abs().max() < 0.1 * spread
    made.hidden_states(tokens[:, :5], state)
    for place in range(5, 12):
        assert (made.step(tokens[:, place], state) - found[:, place]).abs().max() < 2e-3 * spread


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_a_copy_with_the_same_weights_gives_the_same_to_the_last_bit(name):
    own, tokens = model(name, prompt_length=2), torch.randint(71, (2, 12), generator=torch.Generator().manual_seed(2))
    made = TextModel(own)
    assert torch.equal(made.project(made.hidden_states(tokens)), own.project(own.hidden_states(tokens)))
    states = [part.start(2) for part in (own, made)]
    for part, state in zip((own, made), states, strict=True):
        part.hidden_states(tokens[:, :5], state)
    for place in range(5, 12):
        expected, found = (part.step(tokens[:, place], at) for part, at in zip((own, made), states, strict=True))
        assert torch.equal(found, expected)
    with torch.no_grad():
        own.tokens.weight.mul_(2)
    assert torch.equal(made.project(made.hidden_states(tokens)), own.project(own.hidden_states(tokens)))


@torch.inference_mode()
def test_vectors_before_a_text_are_read():
    own = model("gpt2", prompt_length=3)
    made, tokens = TextModel(own, int8_text.Int8Weights), torch.arange(6)[None]
    expected, found = (part.project(part.hidden_states(tokens)) for part in (own, made))
    assert (found - expected).abs().max() < 0.1 * expected.std()


@pytest.mark.parametrize("name", NAMES)
def test_the_copy_shares_embeddings_and_norms_and_leaves_the_model_as_it_was(name):
    own = model(name)
    before = {key: value.clone() for key, value in own.state_dict().items()}
    made = TextModel(own, int8_text.Int8Weights)
    assert made.model.tokens.weight is own.tokens.weight
    assert made.model.stack.layers[0].first is own.stack.layers[0].attention.norm
    assert sum(type(part) is int8_text.Int8Weights for part in made.modules()) == 4 * SIZES["layers"] + 1
    assert all(torch.equal(value, before[key]) for key, value in own.state_dict().items())
    assert int8.supports(own)
