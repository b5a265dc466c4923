"""Linear layers in 8-bit integers: equal to integer arithmetic written out, close to float32, each row by itself."""

import copy

import pytest
import torch
from torch import nn

from heed.kernels import int8
from heed.models.vit import ViT, ViTConfig
from heed.nn.attention import Attention
from heed.nn.transformer import MLP, gelu_tanh
from tests.integers import product_of_integers

BODY = {"size": 16, "channels": 3, "patch": 4, "dim": 32, "heads": 4, "hidden": 48, "layers": 3, "labels": 5}


@pytest.fixture(autouse=True)
def on_any_cpu(monkeypatch):
    """CPUs without the instructions compute the products by torch's integers."""
    if int8.unavailable():
        product_of_integers(monkeypatch)


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def model(**changes):
    torch.manual_seed(1)
    own = ViT(ViTConfig(**{**BODY, **changes})).eval()
    for weight in own.parameters():
        nn.init.normal_(weight, std=0.2)
    return own


def test_rows_are_rounded_in_units_of_a_127th_of_their_largest_value():
    rows = random(50, 40) * torch.logspace(-6, 6, 50)[:, None]
    values, scale = int8.to_int8(rows)
    assert torch.equal(values.abs().amax(dim=1), torch.full((50,), 127, dtype=torch.int8))
    torch.testing.assert_close(scale, rows.abs().amax(dim=1, keepdim=True) / 127, rtol=1e-6, atol=0)
    assert ((values * scale - rows).abs() <= scale * 0.50001).all()


def test_what_a_row_becomes_does_not_depend_on_the_others():
    rows, together = random(9, 40), int8.to_int8(random(9, 40))
    for number, row in enumerate(rows.split(1)):
        values, scale = int8.to_int8(row)
        assert torch.equal(values[0], together[0][number]) and torch.equal(scale[0], together[1][number])


def test_a_row_of_zeros_stays_zero_and_one_that_is_not_a_number_stays_so():
    part = int8.Int8Linear(nn.Linear(8, 3))
    found = part(torch.stack([torch.zeros(8), torch.full((8,), torch.nan), torch.ones(8)]))
    assert int8.scales(torch.zeros(1, 8)) > 0, "nothing is divided by zero"
    assert torch.equal(found[0], part.bias) and found[1].isnan().all() and found[2].isfinite().all()


def test_values_may_be_overwritten_only_where_it_is_allowed():
    x = random(3, 8)
    kept, whole = x.clone(), int8.quantize(x)
    assert torch.equal(x, kept)
    assert torch.equal(int8.quantize(x, overwrite=True).values, whole.values)


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_equals_integer_arithmetic(bias):
    layers = [nn.Linear(64, 24, bias=bias), nn.Linear(64, 8)]
    x = random(2, 7, 64) * 3 + 1
    values, scale = int8.to_int8(x.flatten(0, 1))
    weights, units = int8.to_int8(torch.cat([own.weight.detach() for own in layers]))
    sums = values.int() @ weights.int().T
    biases = torch.cat([layers[0].bias if bias else torch.zeros(24), layers[1].bias])
    expected = sums.double() * scale.double() * units.double().T + biases.double()
    found = int8.Int8Linear(*layers)(x)
    torch.testing.assert_close(found.double(), expected.unflatten(0, (2, 7)), rtol=1e-5, atol=1e-5)


def test_a_layer_is_as_close_to_float32_as_rounding_allows():
    layer, x = nn.Linear(64, 40), random(30, 64)
    difference = (int8.Int8Linear(layer)(x) - layer(x)).abs()
    steps, weight = x.abs().amax(dim=1, keepdim=True) / 127, layer.weight.detach().abs()
    units = weight.amax(dim=1) / 127  # each number is off by at most half a step
    bound = steps / 2 * (weight + units[:, None] / 2).sum(dim=1) + x.abs().sum(dim=1, keepdim=True) * units / 2
    assert (difference <= 1.0001 * bound + 1e-5).all() and difference.max() > 1e-4


def rounded_model(own):
    """The same rounding by torch's own layers: weights that are multiples of their scales, and inputs likewise."""
    made = copy.deepcopy(own)

    def nearest(x):
        values, scale = int8.to_int8(x.flatten(0, -2))
        return (values * scale).view(x.shape)

    for body in made.modules():
        for layer in body.children() if type(body) in (Attention, MLP) else ():
            if isinstance(layer, nn.Linear):
                layer.weight.data = nearest(layer.weight.data)
                layer.register_forward_pre_hook(lambda _, given: (nearest(given[0]),))
    return made


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"pooling": "mean"},
        {"qkv_bias": False, "activation": "gelu_tanh"},
        {"layer_scale": 0.3, "path_dropout": 0.2, "activation": "relu"},
    ],
    ids=str,
)
def test_a_model_equals_one_with_rounded_weights_and_inputs(changes):
    own, images = model(**changes), random(4, 3, 16, 16)
    with torch.inference_mode():
        found, rounded, exact = (
            part.classify_images(images) for part in (int8.int8_copy(own), rounded_model(own), own)
        )
    spread = exact.std()
    # one value at the border between two steps may be rounded the other way: less than 0.3 % in what follows
    assert (found - rounded).abs().max() < 0.003 * spread
    assert 1e-3 * spread < (found - exact).abs().max() < 0.1 * spread


def test_the_copy_shares_what_is_not_quantized_and_leaves_the_model_as_it_was():
    own = model()
    before = copy.deepcopy(own.state_dict())
    made = int8.int8_copy(own)
    assert made.positions is own.positions and made.head.weight is own.head.weight
    assert type(own.stack.layers[0].mlp.body) is MLP and type(made.stack.layers[0].mlp.body) is int8.Int8MLP
    assert all(torch.equal(value, before[name]) for name, value in own.state_dict().items())
    quantized = [name for name, _ in made.named_parameters() if ".body." in name]
    assert not quantized and sum(type(part) is int8.Int8Linear for part in made.modules()) == 5 * BODY["layers"]


class OtherViT(ViT):
    """It may compute something else, and does not declare that it supports int8."""


class OtherMLP(MLP):
    """As above."""


def test_only_models_of_known_parts_are_supported():
    own = model(activation="gelu_tanh")
    assert own.stack.layers[0].mlp.body.activation is gelu_tanh and int8.supports(own)
    assert not int8.supports(OtherViT(own.config)) and not int8.supports(nn.Linear(2, 2))
    own.stack.layers[1].mlp.body = OtherMLP(32, 48, gelu_tanh)
    assert not int8.supports(own)


@pytest.fixture
def asked_anew():
    int8.unavailable.cache_clear()
    yield
    int8.unavailable.cache_clear()


def test_a_cpu_without_the_instructions_is_told(asked_anew, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
    assert int8.unavailable() == "this CPU has no instructions for 8-bit integers (AVX-512 VNNI)"


def test_sums_of_16_bits_are_noticed(asked_anew, monkeypatch):
    product_of_integers(monkeypatch)
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True)
    assert int8.unavailable() is None
    int8.unavailable.cache_clear()
    own = int8.integer_product
    monkeypatch.setattr(int8, "integer_product", lambda *given: own(*given).clamp(max=2.0**15 - 1))
    assert int8.unavailable() == "the products of 8-bit integers overflow here"


def test_a_torch_without_the_operator_is_told(asked_anew, monkeypatch):
    def fail(*given):
        raise NotImplementedError("no such operator\nand more")

    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True)
    monkeypatch.setattr(int8, "pack", fail)
    assert int8.unavailable() == "this torch does not multiply 8-bit integers: no such operator"
