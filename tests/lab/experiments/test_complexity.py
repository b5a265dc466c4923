"""Costs: formulas against what torch counts, paths against gradients, memory against known sizes."""

import pytest
import torch

from heed.lab.experiments import complexity, costs
from heed.lab.experiments.costs import LAYERS
from heed.nn.recurrent import Recurrent


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(complexity, "WIDTHS", (8, 16, 32))
        return complexity.measure(dim=32, length=16, rounds=1, tokens=64)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("n", "d"), [(5, 4), (61, 8), (90, 16)])
def test_the_formula_is_what_torch_counts(name, n, d):
    assert costs.multiplications(LAYERS[name].build(d), n, d) == LAYERS[name].operations(n, d)


@pytest.mark.parametrize("name", [name for name in LAYERS if not issubclass(type(LAYERS[name].build(4)), Recurrent)])
@pytest.mark.parametrize("n", [2, 8, 9, 15, 16, 29])
def test_the_longest_path_is_as_many_layers_as_a_gradient_needs(name, n):
    assert costs.layers_until_connected(lambda: LAYERS[name].build(4), n, 4) == LAYERS[name].path(n)


@pytest.mark.parametrize("name", ["RNN", "GRU"])
def test_a_recurrent_layer_takes_as_many_steps_as_there_are_positions(name):
    net, steps = LAYERS[name].build(4), []
    state = net.zero_state(1)
    for x in torch.randn(9, 1, 4):
        steps.append(net.step(x, state))
        state = steps[-1][1]
    assert len(steps) == LAYERS[name].steps(9) == LAYERS[name].path(9) + 1


def test_saved_tensors_are_counted_once_and_without_parameters():
    x = torch.randn(2, 3, 4, requires_grad=True)
    linear = torch.nn.Linear(4, 4)
    assert costs.saved_bytes(linear, x) == 2 * 3 * 4 * 4  # x alone
    twice = torch.nn.Sequential(linear, torch.nn.Linear(4, 4))
    assert costs.saved_bytes(twice, x) == 2 * 2 * 3 * 4 * 4


def test_stored_weights_grow_with_the_square_of_the_length():
    layer = LAYERS["self-attention"].build(8)
    more = []
    for n in (64, 128):
        x = torch.randn(1, n, 8)
        more.append(costs.saved_bytes(layer, x, full_weights=True) - costs.saved_bytes(layer, x))
    assert more[1] == pytest.approx(4 * more[0], rel=0.1)
    assert costs.saved_bytes(layer, torch.randn(1, 128, 8)) == pytest.approx(
        2 * costs.saved_bytes(layer, torch.randn(1, 64, 8)), rel=0.1
    )


def test_time_is_the_median_of_rounds_that_take_turns(monkeypatch):
    calls, clock = [], iter([100.0, 100.0, 1.0, 5.0, 3.0, 6.0, 2.0, 4.0])
    monkeypatch.setattr(costs, "_time_once", lambda layer, x: (calls.append(layer), next(clock))[1])
    a, b = torch.nn.Identity(), torch.nn.Identity()
    assert costs.time_layers({"a": a, "b": b}, torch.zeros(1), 3) == {"a": 2.0, "b": 5.0}
    assert calls == [a, b] * 4


def test_operations_cross_where_n_is_d(small):
    places, formula = small.over_length.places, small.over_length.formula
    for other in complexity.COMPARED:
        assert complexity.crossing(places, formula["self-attention"], formula[other]) == pytest.approx(small.dim)
    assert "from n = 32 on" in complexity.summary(small)


def test_a_crossing_is_found_between_points():
    assert complexity.crossing([1, 4, 16], [1, 4, 16], [2, 2, 2]) == pytest.approx(2)
    assert complexity.crossing([1, 4, 16], [1, 1, 1], [2, 2, 2]) is None
    assert complexity.crossing([1, 4, 16], [3, 3, 3], [2, 2, 2]) is None
    assert complexity.crossing([1, 4, 16, 64], [3, 1, 1, 4], [2, 2, 2, 2]) == pytest.approx(32)


def test_a_measurement_holds_every_layer_at_every_size(small):
    assert small.over_length.places == [16, 32, 64]
    assert small.over_width.places == [8, 16, 32]
    assert small.over_length.counted == small.over_length.formula
    (device,) = small.devices
    assert (device.name, device.tokens) == ("cpu", 64)
    for times in (device.over_length, device.over_width):
        assert list(times.milliseconds) == list(LAYERS)
        assert list(times.bytes_a_token) == [*LAYERS, complexity.FULL_WEIGHTS]
        for own in (*times.milliseconds.values(), *times.bytes_a_token.values()):
            assert len(own) == len(times.places) and min(own) > 0


def test_what_is_drawn_is_what_was_measured(small):
    panels = complexity.figure(small).axes
    (device,) = small.devices
    curves = [small.over_length.formula, small.over_width.formula, small.path, device.over_length.milliseconds,
              device.over_width.milliseconds, device.over_length.bytes_a_token]  # fmt: skip
    for panel, values in zip(panels, curves, strict=True):
        drawn = [list(line.get_ydata()) for line in panel.lines]
        assert [own for own in drawn if own in list(values.values())][: len(values)] == list(values.values())


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="dim is 6; it must be a multiple of 4"):
        complexity.measure(dim=6)
    with pytest.raises(ValueError, match="length is 128; it must be at most 64, the tokens"):
        complexity.measure(tokens=64)
    with pytest.raises(ValueError, match="tokens is 16; it must be at least 32"):
        complexity.measure(length=8, tokens=16)
    with pytest.raises(ValueError, match="rounds is 0; it must be at least 1"):
        complexity.measure(rounds=0)
