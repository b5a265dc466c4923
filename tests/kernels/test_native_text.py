"""Steps of language models in C: equal to those in torch, whatever the other rows are, and within the memory they have."""

import pytest
import torch
from torch import nn

from heed.kernels import int8, native, native_text
from heed.kernels.native_text import NativeInt8Weights, NativeTextModel, NativeWeights
from heed.kernels.text_model import TextModel
from heed.models import MODELS
from heed.nn import cache
from heed.products.text_window import read
from tests.integers import product_of_integers
from tests.kernels.test_int8_text import MANY, exact, largest, model, random

SIZES = {"gpt": {}, "gpt2": {"dim": 48, "hidden": 100, "heads": 3}, "ctrl": {"dim": 20, "hidden": 36, "heads": 2}}


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    if reason := native.unavailable():
        pytest.skip(reason)
    if int8.unavailable():
        product_of_integers(monkeypatch)


def small(name: str, **changes) -> nn.Module:
    """Widths that fill the CPU's vectors, and widths that do not."""
    system, own = MODELS[name], {"dim": 32, "heads": 4, "hidden": 64, "layers": 3, "max_length": 24}
    torch.manual_seed(1)
    made = system.model(system.config(vocab_size=71, **{**own, **SIZES[name], **changes})).eval().requires_grad_(False)
    for weight in made.parameters():
        nn.init.normal_(weight, std=0.2)
    return made


class Rounded(int8.Int8Linear):
    """The numbers that 8-bit integers stand for, in float32."""

    def hold(self, values):
        self.rows = values

    def forward(self, x):
        return x @ (self.rows * self.scale[:, None]).T + self.bias


KINDS = [(NativeWeights, None), (NativeInt8Weights, Rounded)]


def references(own: nn.Module, weights, rounded) -> tuple[NativeTextModel, TextModel]:
    made = NativeTextModel(own, weights)
    expected = TextModel(own) if rounded is None else TextModel(own, rounded)
    for part in made.modules():  # prompts are read in the same way
        if isinstance(part, NativeInt8Weights):
            part.forward = Rounded.forward.__get__(part)
    return made, expected


@pytest.mark.parametrize("weights", KINDS, ids=["float32", "int8"])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, native_text.INT8_ROWS])
@pytest.mark.parametrize("name", list(SIZES))
@torch.inference_mode()
def test_steps_equal_those_in_torch(name, rows, weights):
    made, expected = references(small(name), *weights)
    tokens = torch.randint(71, (rows, 20), generator=torch.Generator().manual_seed(rows))
    states = [part.start(rows) for part in (made, expected)]
    for part, state in zip((made, expected), states, strict=True):
        part.hidden_states(tokens[:, :2], state)
    for place in range(2, 20):
        own, other = (part.step(tokens[:, place], state) for part, state in zip((made, expected), states, strict=True))
        assert own.shape == (rows, 71) and own.dtype == torch.float32
        assert (own - other).abs().max() < 3e-6 * other.abs().max()
        if place == 9:  # as a beam search and rows that end do
            order = torch.tensor([*range(rows - 1, -1, -1)][:2] * (rows // 2 or 1))
            tokens, rows = tokens[order], len(order)
            for state in states:
                state.reorder(order)
    for own, other in zip(states[0].cache, states[1].cache, strict=True):
        assert torch.allclose(own.attention.k, other.attention.k, atol=1e-5)
        assert torch.allclose(own.attention.v, other.attention.v, atol=1e-5)


@pytest.mark.parametrize("name", list(SIZES))
@torch.inference_mode()
def test_rows_of_different_lengths_have_their_own_positions_and_keys(name, monkeypatch):
    monkeypatch.setattr(cache, "ROOM", 3)
    made, expected = references(small(name), NativeWeights, None)
    texts = [[5, 3, 8, 1, 4], [7], [9, 2, 2]]
    states = [read(part, texts) for part in (made, expected)]
    for token in range(10, 18):
        if token == 14:  # the longest leaves, and padding is dropped
            for state in states:
                state.reorder(torch.tensor([1, 2]))
        tokens = torch.full((len(states[0].padding),), token)
        own, other = (part.step(tokens, state) for part, state in zip((made, expected), states, strict=True))
        assert (own - other).abs().max() < 3e-6 * other.abs().max()


@pytest.mark.parametrize("weights", [NativeWeights, NativeInt8Weights])
@torch.inference_mode()
def test_a_row_does_not_depend_on_the_others_nor_on_the_number_of_threads(weights):
    made, tokens = NativeTextModel(small("gpt2"), weights), torch.arange(7)[:, None] * 9 + torch.arange(6)
    threads = torch.get_num_threads()

    def last(rows: torch.Tensor) -> torch.Tensor:
        state = made.start(1)
        made.hidden_states(tokens[:1, :1], state)
        state.reorder(torch.zeros(len(rows), dtype=torch.long))
        for place in range(1, 6):
            logits = made.step(rows[:, place], state)
        return logits

    together = last(tokens)
    for count in range(1, 7):
        assert torch.equal(last(tokens[:count]), together[:count])
    try:
        torch.set_num_threads(3 - min(2, threads))
        assert torch.equal(last(tokens), together)
    finally:
        torch.set_num_threads(threads)


@torch.inference_mode()
def test_a_text_can_begin_without_a_prompt_and_ends_at_the_last_position():
    own = small("gpt2")
    made, state = NativeTextModel(own), own.start(1)
    tokens = torch.arange(24)[None]
    found = torch.stack([made.step(tokens[:, place], state) for place in range(24)], dim=1)
    assert torch.allclose(found, own.project(own.hidden_states(tokens)), atol=1e-5)
    with pytest.raises(ValueError, match="a text has 25 tokens, but the model has 24 positions"):
        made.step(tokens[:, 0], state)


@torch.inference_mode()
def test_prompt_vectors_take_no_positions():
    own = small("gpt2", prompt_length=3)
    made, expected, tokens = NativeTextModel(own), TextModel(own), torch.arange(20)[None]
    states = [part.start(1) for part in (made, expected)]
    for place in range(20):
        found, other = (part.step(tokens[:, place], at) for part, at in zip((made, expected), states, strict=True))
        assert (found - other).abs().max() < 3e-6 * other.abs().max()


@torch.inference_mode()
def test_prompt_vectors_are_read_before_an_empty_text_too():
    own = small("gpt2", prompt_length=3)
    texts = [[], [5, 6], []]
    for made in (NativeTextModel(own), TextModel(own)):
        together = read(made, texts)
        found = made.step(torch.tensor([9, 9, 9]), together)
        for row, text in enumerate(texts):
            assert torch.allclose(found[row], made.step(torch.tensor([9]), read(made, [text]))[0], atol=1e-5)


@torch.inference_mode()
def test_ids_and_positions_outside_of_the_tables_are_errors():
    made = NativeTextModel(small("gpt2"))
    state = read(made, [[1, 2], [3]])
    for tokens in ([5, 71], [-1, 5]):
        with pytest.raises(IndexError, match="a token id or a position is outside of the model's tables"):
            made.step(torch.tensor(tokens), state)
    expected = made.step(torch.tensor([5, 6]), read(made, [[1, 2], [3]]))
    assert torch.equal(made.step(torch.tensor([5, 6], dtype=torch.int32), state), expected)
    state.padding = state.padding + 5
    with pytest.raises(IndexError):
        made.step(torch.tensor([5, 6]), state)


@torch.inference_mode()
def test_prompts_in_another_precision_and_other_defaults_are_no_matter():
    own = small("gpt2")
    made, expected, tokens = NativeTextModel(own), TextModel(own), torch.arange(8)[None]
    results = []
    for part in (made, expected):
        state = part.start(1)
        with torch.autocast("cpu", torch.bfloat16):
            part.hidden_states(tokens[:, :4], state)
            results.append([part.step(tokens[:, place], state) for place in range(4, 8)])
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))
    state = made.start(1)
    made.hidden_states(tokens[:, :4], state)
    before = made.step(tokens[:, 4], state)
    torch.set_default_dtype(torch.float64)
    try:
        state = made.start(1)
        made.hidden_states(tokens[:, :4], state)
        assert torch.equal(made.step(tokens[:, 4], state), before)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("rows", [1, native_text.INT8_ROWS, native_text.INT8_ROWS + 1])
@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
@torch.inference_mode()
def test_a_broken_row_of_8_bit_weights_stays_broken(rows, broken):
    own = small("gpt2")
    own.tokens.weight[7, 3] = broken
    made, state = NativeTextModel(own, NativeInt8Weights), own.start(rows)
    made.hidden_states(torch.full((rows, 2), 3), state)
    tokens = torch.full((rows,), 3)
    tokens[0] = 7
    found = made.step(tokens, state)
    assert found[0].isnan().any() and (rows == 1 or not found[1:, :7].isnan().any())


@torch.inference_mode()
def test_large_and_broken_numbers_stay_what_they_are():
    own = small("gpt2")
    own.positions.places.weight[2:4] *= 1e4
    made, expected, tokens = NativeTextModel(own), TextModel(own), torch.arange(5)[None]
    states = [part.start(1) for part in (made, expected)]
    for place in range(5):
        found, other = (part.step(tokens[:, place], at) for part, at in zip((made, expected), states, strict=True))
        assert (found - other).abs().max() < 3e-6 * other.abs().max()
    own.positions.places.weight[5] = torch.nan
    assert made.step(tokens[:, 0], states[0]).isnan().all()


def test_gradients_and_many_rows_are_left_to_torch():
    own = small("gpt2")
    made, expected = NativeTextModel(own), TextModel(own)
    for rows, inference in ((2, False), (native_text.ROWS + 1, True)):
        tokens = torch.arange(rows)
        with torch.inference_mode(inference), torch.no_grad():
            states = [part.start(rows) for part in (made, expected)]
            for _ in range(3):
                pairs = zip((made, expected), states, strict=True)
                found, other = (part.step(tokens, state) for part, state in pairs)
                assert torch.equal(found, other)


@pytest.mark.parametrize("rows", [1, 2, 70])
@pytest.mark.parametrize("bias", [True, False])
def test_products_of_many_rows_equal_their_rounded_weights_times_the_input(rows, bias):
    layers, x = [nn.Linear(64, 300, bias=bias), nn.Linear(64, 700)], random(rows, 64) * 3 + 1
    with torch.inference_mode():
        made = NativeInt8Weights(*layers)
        found = made(x.view(rows, 1, 64))
        assert found.shape == (rows, 1, 1000)
        error = (found[:, 0].double() - exact(layers, x)).abs() / largest(layers, x)
        assert error.max() < MANY
        assert torch.equal(made(x.flip(0)), found[:, 0].flip(0)), "a row does not depend on its place"


def test_inputs_far_larger_than_the_others_cost_the_others_nothing():
    layer, x = nn.Linear(256, 300), random(6, 256)
    x[:, 7] *= 100
    expected = exact([layer], x)
    assert (NativeInt8Weights(layer)(x).double() - expected).std() / expected.std() < 1e-3


@torch.inference_mode()
def test_changes_of_the_weights_are_seen():
    own = model("gpt2")
    made, tokens = NativeTextModel(own), torch.arange(6)[None]
    own.tokens.weight.mul_(2)
    state = made.start(1)
    found = [made.step(tokens[:, place], state) for place in range(6)][-1]
    assert torch.allclose(found, own.project(own.hidden_states(tokens))[:, -1], atol=1e-5)
