"""Gradients by distance: autograd against the product of the lecture notes and against finite differences."""

import pytest
import torch

from heed.lab.experiments import gradients, jacobians
from heed.nn.recurrent import RNN, Recurrent, State


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def small():
    return gradients.measure(dim=8, length=7, draws=2)


def drawn(name, dim=8, length=7):
    """A network with all weights random, biases too: at their initial values many mistakes would not show."""
    net = jacobians.build_network(name, dim, length)
    for weight in net.parameters():
        weight.data.normal_(std=0.4)
    return net


@pytest.mark.parametrize("largest", [0.7, 1.0, 1.6])
def test_the_product_of_the_notes_is_what_autograd_finds(largest):
    net, inputs = drawn("RNN"), torch.randn(30, 8, dtype=torch.float64)
    net.layers[0].weight_hh_l0.data.mul_(largest / torch.linalg.matrix_norm(net.layers[0].weight_hh_l0, 2))
    ours, theirs = jacobians.of_recurrent(net, inputs), jacobians.by_product(net, inputs)
    assert len(ours) == len(theirs) == 29
    for autograd, formula in zip(ours, theirs, strict=True):
        assert (autograd - formula).abs().max() < 1e-8


@pytest.mark.parametrize("name", jacobians.RECURRENT)
def test_a_small_step_of_a_state_moves_the_last_one_as_its_derivative_says(name):
    net, inputs = drawn(name), torch.randn(7, 8, dtype=torch.float64)
    found = jacobians.of_recurrent(net, inputs)
    state = net(inputs[None, :3])[1]
    parts = torch.cat(state.layers[0], 1)[0]

    def last(state):
        own = tuple(part[None] for part in state.chunk(net.parts))
        return net(inputs[None, 3:], State([own]))[0][0, -1]

    step = 1e-6
    for column in range(len(parts)):
        move = torch.zeros_like(parts)
        move[column] = step
        expected = (last(parts + move) - last(parts - move)) / (2 * step)
        assert torch.allclose(found[3][:, column], expected, atol=1e-7)  # found[3]: four steps between


@pytest.mark.parametrize("name", jacobians.ATTENTION)
def test_a_small_step_of_a_position_moves_the_last_one_as_its_derivative_says(name):
    net, inputs = drawn(name), torch.randn(7, 8, dtype=torch.float64)
    found, move = jacobians.of_attention(net, inputs), torch.zeros_like(inputs)
    move[2, 5] = 1e-6
    expected = (net((inputs + move)[None]) - net((inputs - move)[None]))[0, -1] / 2e-6
    assert len(found) == 6
    assert torch.allclose(found[3][:, 5], expected, rtol=1e-4, atol=1e-7)


def test_with_linear_f_the_gradient_is_a_power_of_the_largest_singular_value():
    for largest in (0.8, 1.0, 1.3):
        net = jacobians.scaled_rnn(largest, 8)
        found = jacobians.by_product(net, torch.zeros(12, 8, dtype=torch.float64))  # nothing in: every f′ is 1
        norms = torch.linalg.matrix_norm(torch.stack(found), 2)
        assert torch.allclose(norms, largest ** torch.arange(1.0, 12.0, dtype=torch.float64))


def test_a_gradient_vanishes_below_one_and_grows_above(small):
    far = {own.largest: own.quiet[-1] for own in small.sweep}
    assert far[0.5] < far[0.8] < far[1.0] < far[1.2] < far[2.0]
    assert far[0.9] < 1 < far[1.1]
    for own in small.sweep:
        bound = [own.largest**distance for distance in range(1, small.length)]
        assert all(value <= most * 1.000001 for value, most in zip(own.quiet, bound, strict=True))


def test_the_loss_gradient_by_word_is_its_derivative():
    words, output = torch.randn(5, 8, dtype=torch.float64), torch.randn(4, 8, dtype=torch.float64)
    for name in jacobians.NAMES:
        net = drawn(name)
        found = jacobians.loss_gradients(net, words.clone(), output, 2)

        def loss(x, net=net):
            y = net(x[None])
            h = (y[0] if isinstance(net, Recurrent) else y)[0, -1]
            return -(output @ h).log_softmax(0)[2]

        expected = torch.autograd.functional.jacobian(loss, words)
        assert torch.allclose(torch.tensor(found, dtype=torch.float64), expected.norm(dim=1))


def test_the_two_texts_differ_by_a_sentence_in_between():
    short, long = (gradients.tokens(text) for text in gradients.SENTENCES)
    assert short[:11] == long[:11] and short[11:] == long[-4:]
    assert short[6] == long[6] == "John"
    assert short[-1] == "to"


def test_a_measurement_holds_all_that_it_should(small):
    assert list(small.states) == list(jacobians.NAMES)
    assert all(len(own) == 6 for own in small.states.values())
    assert small.product == pytest.approx(small.states["RNN"])
    assert small.product_error < 1e-12
    assert [sentence.distance for sentence in small.sentences] == [8, 27]
    assert all(len(own) == 15 for own in small.sentences[0].gradients.values())
    assert "differs from autograd by at most" in gradients.summary(small)


def test_the_same_seed_measures_the_same(small):
    assert gradients.measure(dim=8, length=7, draws=2) == small
    assert gradients.measure(dim=8, length=7, draws=2, seed=1) != small


def test_self_attention_reaches_far_and_an_rnn_does_not():
    found = gradients.measure(dim=16, length=24, draws=2).states
    assert found["RNN"][-1] < 0.01 * found["RNN"][0]
    assert found["RNN"][-1] < found["LSTM"][-1] < found["self-attention"][-1]
    near, far = found["self-attention"][0], found["self-attention"][-1]
    assert 0.2 < far / near < 5
    assert max(found["no residuals"]) < min(found["self-attention"])


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="dim is 6; it must be a multiple of 4"):
        gradients.measure(dim=6)
    for length in (2, 501):
        with pytest.raises(ValueError, match=f"length is {length}; it must be from 3 to 500"):
            gradients.measure(length=length)
    with pytest.raises(ValueError, match="draws is 0; it must be at least 1"):
        gradients.measure(draws=0)


def test_what_is_drawn_is_what_was_measured(small):
    panels = gradients.figure(small).axes
    assert [line.get_ydata().tolist() for line in panels[0].lines[:5]] == list(small.states.values())
    shown = {own.largest: own for own in small.sweep}
    named = [float(text.get_text()) for text in panels[1].texts]
    assert [line.get_ydata().tolist() for line in panels[1].lines] == [shown[value].quiet for value in named]
    for panel, sentence in zip(panels[3:5], small.sentences, strict=True):
        cells = torch.tensor(panel.images[0].get_array().filled(float("nan")))[:, -len(sentence.words) :]
        assert torch.allclose(10**cells, torch.tensor(list(sentence.gradients.values()), dtype=torch.float64))


def test_the_rnn_of_the_lab_is_that_of_our_models():
    assert isinstance(jacobians.build_network("RNN", 8, 5), RNN)
