"""Transformer-XL: what transformers computed (frozen numbers), and segments with memory against a pass over the whole text."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heed.models.transformer_xl import TransformerXL, TransformerXLConfig
from heed.nn.attention import record
from tests.models.transformer_xl_numbers import CASES, CONFIG, SEGMENTS, TOKENS, digest, weight

NUMBERS = json.loads(Path(__file__).with_name("transformer_xl.json").read_text())


def close(one, other):
    one, other = (torch.as_tensor(x, dtype=torch.float64) for x in (one, other))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def make(**changes):
    """The model of the frozen numbers, with other settings."""
    model = TransformerXL(TransformerXLConfig(**{**CONFIG, **changes})).double().eval().requires_grad_(False)
    model.load_state_dict({name: weight(name, tuple(own.shape)) for name, own in model.state_dict().items()})
    return model


def read(model, tokens, cuts, state=None):
    state = model.start(len(tokens)) if state is None else state
    return torch.cat([model.project(model.hidden_states(part, state)) for part in tokens.split(cuts, dim=1)], dim=1)


@pytest.mark.parametrize("case", CASES)
def test_it_computes_what_the_last_release_with_it_computed(case):
    model = make(same_length=CASES[case]["same_length"])
    state, states = model.start(2), []
    if CASES[case]["zeros"]:
        state.layers = [(torch.zeros(2, CONFIG["memory"], CONFIG["dim"], dtype=torch.float64),) for _ in state.layers]
    for layer in model.stack.layers:
        layer.mlp.register_forward_hook(lambda *call: states.append(call[-1]))
    for part, expected in zip(TOKENS.split(SEGMENTS, dim=1), NUMBERS[case], strict=True):
        states[:] = [model.tokens(part) * CONFIG["dim"] ** 0.5]
        with record(model) as maps:
            last = model.hidden_states(part, state)
        close(model.project(last)[-1, -1], expected["last"])
        close(digest(model.project(last)), expected["logits"])
        close([digest(x) for x in states], expected["hidden"])
        close([digest(x) for x in maps], expected["attentions"])
        close([digest(x) for (x,) in state.layers], expected["memories"])
        losses = model.token_losses(last[:, :-1].flatten(0, 1), part[:, 1:].flatten())
        close(losses.mean(), expected["loss"])


@pytest.mark.parametrize("cuts", [[10], [1] * 10, [4, 3, 3], [1, 9], [7, 1, 2]])
@pytest.mark.parametrize("divisor", [1, 2])
def test_segments_with_memory_equal_a_full_pass_with_the_same_reach(cuts, divisor):
    model = make(same_length=True, divisor=divisor)
    close(read(model, TOKENS, cuts), read(model, TOKENS, [10]))


@pytest.mark.parametrize("cuts", [[1] * 10, [4, 3, 3]])
def test_a_memory_of_the_whole_text_equals_a_full_pass(cuts):
    model = make(evaluation_memory=10, farthest=0)
    close(read(model, TOKENS, cuts), read(make(farthest=0), TOKENS, [10]))
    assert (read(make(farthest=0), TOKENS, cuts) - read(model, TOKENS, cuts)).abs().max() > 1e-4


def test_the_memory_for_evaluation_is_not_that_of_training():
    model = make(evaluation_memory=7)
    assert model.start(1).length == 7 and model.train().start(1).length == 5
    assert make().start(1).length == 5


def test_the_future_does_not_matter_and_the_past_does():
    model, changed = make(), TOKENS.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 24
    before, after = read(model, TOKENS, [10]), read(model, changed, [10])
    close(after[:, :5], before[:, :5])
    assert (after[:, 6:] - before[:, 6:]).abs().amax(dim=-1).min() > 1e-4


def test_reordered_rows_continue_their_own_text():
    model = make()
    state = model.start(2)
    model.hidden_states(TOKENS[:, :4], state)
    state.reorder(torch.tensor([1, 1, 0]))
    rows = TOKENS[[1, 1, 0]]
    close(model.step(rows[:, 4], state), read(model, rows[:, :5], [4, 1])[:, -1])


def test_no_gradient_goes_into_the_memory_and_every_weight_gets_one():
    model = make().requires_grad_(True).train()
    state = model.start(2)
    model.hidden_states(TOKENS[:, :5], state)
    assert not any(own.requires_grad for (own,) in state.layers)
    states = model.hidden_states(TOKENS[:, 5:], state.detach())
    model.token_losses(states.flatten(0, 1), TOKENS[:, 5:].flatten()).sum().backward()
    assert all(own.grad is not None and own.grad.abs().sum() > 0 for own in model.parameters())


def test_the_first_weights_are_small_and_its_two_biases_differ():
    torch.manual_seed(0)
    model = TransformerXL(TransformerXLConfig(vocab_size=50, dim=64, heads=2, hidden=128, layers=2))
    own = model.stack.layers[0].attention.body
    assert own.q.bias is None and not torch.equal(own.relative.u, own.relative.v)
    for part in (own.q.weight, own.relative.u, model.tokens.tables[0].weight):
        assert part.std().item() == pytest.approx(0.02, rel=0.25)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"memory": -1}, "memory is -1; it must be from 0 to 16,777,216"),
        ({"memory": 0, "same_length": True}, "memory is 0; it must be at least 1"),
        ({"evaluation_memory": 0}, "evaluation_memory is 0; it must be at least 1"),
        ({"cutoffs": [8, 8]}, r"cutoffs are \[8, 8\]; they must increase, and lie between 0 and the 24 tokens"),
        ({"cutoffs": [30]}, r"cutoffs are \[30\]; they must increase"),
        ({"divisor": 4}, "divisor is 4: with 2 cutoffs nothing remains of the dim of 8"),
    ],
)
def test_settings_that_no_model_has_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        replace(TransformerXLConfig(**CONFIG), **change)


def test_whole_words_are_dropped_in_training_alone():
    torch.manual_seed(0)
    config = TransformerXLConfig(vocab_size=30, dim=16, heads=2, hidden=32, layers=1, memory=4, dropout=0.0)
    plain = TransformerXL(config)
    drops = TransformerXL(replace(config, word_dropout=0.5))
    drops.load_state_dict(plain.state_dict())
    tokens = torch.arange(30)[None]
    assert not torch.equal(drops.train().hidden_states(tokens), plain.hidden_states(tokens))
    torch.testing.assert_close(drops.eval().hidden_states(tokens), plain.eval().hidden_states(tokens), rtol=0, atol=0)


def test_dropped_words_leave_finite_gradients_in_a_deep_model():
    """A first word of zeros, seen by itself alone, once grew by 316 in each layer norm."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "dim": 16, "heads": 2, "hidden": 32, "layers": 16, "memory": 4}
    model = TransformerXL(TransformerXLConfig(**sizes, word_dropout=0.9))
    tokens = torch.randint(30, (8, 6))
    model.token_losses(model.hidden_states(tokens).flatten(0, 1), tokens.flatten()).sum().backward()
    norm = torch.nn.utils.get_total_norm([weight.grad for weight in model.parameters()])
    assert norm.isfinite() and norm < 1e6
