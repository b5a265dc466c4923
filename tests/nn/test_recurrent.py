import pytest
import torch

from heed.nn import masks
from heed.nn.recurrent import GRU, LSTM, RNN, State

CELLS = [RNN, GRU, LSTM]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def random(*shape):
    return torch.randn(*shape, dtype=torch.double)


def randomized(kind, layers=2, bidirectional=False):
    """All weights are random: initial zeros would hide mistakes."""
    net = kind(3, 4, layers, bidirectional=bidirectional).double().requires_grad_(False)
    for weight in net.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return net


def simple(x, layer_state, w, r, b, a):
    return (torch.tanh(w @ x + b + r @ layer_state[0] + a),)


def gated(x, layer_state, w, r, b, a):
    """The equations of Cho et al. (2014); as in cuDNN, the reset gate comes after the matrix."""
    from_x, from_h = (w @ x + b).split(4), (r @ layer_state[0] + a).split(4)
    reset, update = (torch.sigmoid(from_x[i] + from_h[i]) for i in (0, 1))
    new = torch.tanh(from_x[2] + reset * from_h[2])
    return ((1 - update) * new + update * layer_state[0],)


def long_short(x, layer_state, w, r, b, a):
    i, f, g, o = (w @ x + b + r @ layer_state[0] + a).split(4)
    c = torch.sigmoid(f) * layer_state[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


PLAIN = {RNN: simple, GRU: gated, LSTM: long_short}


def by_definition(net, xs, memory):
    """One row, layer, position and direction at a time, by the formulas."""
    after, cell = [], PLAIN[type(net)]
    for layer, layer_state in zip(net.layers, memory, strict=True):
        ways, ends = [], []
        for way, order in enumerate(([*range(len(xs))], [*reversed(range(len(xs)))])[: net.directions]):
            weights = layer._flat_weights[4 * way : 4 * way + 4]
            now, outputs = tuple(part[4 * way : 4 * way + 4] for part in layer_state), {}
            for t in order:
                now = cell(xs[t], now, *weights)
                outputs[t] = now[0]
            ways.append(torch.stack([outputs[t] for t in range(len(xs))]))
            ends.append(now)
        xs = torch.cat(ways, dim=1)
        after.append(tuple(torch.cat(parts) for parts in zip(*ends, strict=True)))
    return xs, after


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", CELLS)
def test_each_cell_is_its_formula(kind, bidirectional):
    net = randomized(kind, bidirectional=bidirectional)
    x, lengths = random(3, 5, 3), torch.tensor([5, 2, 3])
    state = State([tuple(random(3, net.width) for _ in range(net.parts)) for _ in range(2)])
    outputs, after = net(x, state, masks.from_lengths(lengths, 5))
    for row, length in enumerate(lengths.tolist()):
        expected, ends = by_definition(
            net, x[row, :length], [tuple(p[row] for p in layer_state) for layer_state in state.layers]
        )
        torch.testing.assert_close(outputs[row, :length], expected, rtol=0, atol=1e-10)
        assert outputs[row, length:].abs().sum() == 0
        for layer_state, end in zip(after.layers, ends, strict=True):
            torch.testing.assert_close([p[row] for p in layer_state], list(end), rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", CELLS)
def test_steps_and_chunks_give_what_one_pass_gives(kind):
    net, x = randomized(kind), random(3, 6, 3)
    whole, last = net(x)
    state, outputs = net.zero_state(3), []
    for t in range(6):
        y, state = net.step(x[:, t], state)
        outputs.append(y)
    first, between = net(x[:, :4])
    second, end = net(x[:, 4:], between)
    torch.testing.assert_close(torch.stack(outputs, dim=1), whole, rtol=0, atol=1e-10)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole, rtol=0, atol=1e-10)
    for one, other, third in zip(state.layers, last.layers, end.layers, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
        torch.testing.assert_close(third, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", CELLS)
def test_padding_does_not_matter(kind, bidirectional):
    net, x, valid = (
        randomized(kind, bidirectional=bidirectional),
        random(3, 5, 3),
        masks.from_lengths(torch.tensor([4, 2, 3]), 5),
    )
    outputs, state = net(x, valid=valid)
    other, after = net(torch.where(valid[:, :, None], x, 99.0), valid=valid)
    assert torch.equal(outputs, other) and all(map(torch.equal, state.layers[1], after.layers[1]))


def test_a_row_of_padding_keeps_its_state():
    net, x = randomized(LSTM), random(2, 3, 3)
    before = net(random(2, 4, 3))[1]
    outputs, after = net(x, before, masks.from_lengths(torch.tensor([0, 3]), 3))
    assert outputs[0].abs().sum() == 0
    for old, new in zip(before.layers, after.layers, strict=True):
        assert all(torch.equal(a[0], b[0]) and not torch.equal(a[1], b[1]) for a, b in zip(old, new, strict=True))


def test_padding_before_tokens_is_refused():
    with pytest.raises(ValueError, match="padding at the end"):
        randomized(GRU)(random(1, 3, 3), valid=torch.tensor([[False, True, True]]))


def test_a_reordered_state_is_that_of_the_rows():
    net, x, rows = randomized(LSTM), random(3, 4, 3), torch.tensor([2, 2, 0, 1])
    state = net(x)[1]
    state.reorder(rows)
    expected = net(x[rows])[1]
    for one, other in zip(state.layers, expected.layers, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_through_a_detached_state_no_gradient_goes_back():
    net, x = randomized(GRU), random(2, 4, 3).requires_grad_()
    state = net(x)[1]
    assert net(random(2, 2, 3), state)[0].requires_grad
    assert not net(random(2, 2, 3), state.detach())[0].requires_grad


def test_dropout_is_between_the_layers_and_only_in_training():
    one, two = LSTM(3, 4, 1, dropout=0.5), LSTM(3, 4, 2, dropout=0.5)
    x = torch.randn(2, 3, 3)
    assert torch.equal(one(x)[0], one(x)[0])
    assert not torch.equal(two(x)[0], two(x)[0])
    assert torch.equal(two.eval()(x)[0], two(x)[0])


@pytest.mark.parametrize("kind", CELLS)
def test_initial_recurrent_weights_are_orthogonal(kind):
    net = kind(3, 4, 2, bidirectional=True)
    for layer in net.layers:
        for gate in layer.weight_hh_l0.chunk(net.gates):
            torch.testing.assert_close(gate @ gate.T, torch.eye(4))
    for name, bias in net.named_parameters():
        if "bias" in name:
            gates = bias.view(net.gates, 4).tolist()  # of torch's LSTM: input, forget, cell, output
            forgets = kind is LSTM and "bias_ih" in name
            assert gates == [[float(forgets and number == 1)] * 4 for number in range(net.gates)], name


def test_a_new_lstm_keeps_most_of_its_memory():
    net = LSTM(3, 4, 1).double()
    for name, weight in net.named_parameters():
        if "weight" in name:
            torch.nn.init.zeros_(weight)
    memory = torch.randn(2, 4, dtype=torch.float64)
    _, after = net.step(torch.randn(2, 3, dtype=torch.float64), State([(torch.zeros_like(memory), memory)]))
    torch.testing.assert_close(after.layers[0][1], memory * torch.tensor(1.0, dtype=torch.float64).sigmoid())


def test_autocast_leaves_it_in_float32():
    net, x = randomized(LSTM).float(), torch.randn(2, 3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs, state = net(x.bfloat16())
        one, _ = net.step(x[:, 0].bfloat16(), net.zero_state(2))
    assert outputs.dtype == one.dtype == state.top.dtype == torch.float32
    assert torch.equal(outputs, net(x.bfloat16().float())[0])
