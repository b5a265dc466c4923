"""Decoder-only language models: what one computes does not depend on how a text is cut into steps, and it sees no future."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from heed.models import MODELS
from heed.models.decoder import Decoder
from heed.models.gpt2 import GPT2, GPT2Config

TOKENS = torch.randint(0, 50, (2, 9), generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=["gpt", "gpt2", "ctrl", "bert"])
def model(request):
    torch.manual_seed(0)
    system, head = MODELS[request.param], {"head": "causal"} if request.param == "bert" else {}
    sizes = {"vocab_size": 50, "dim": 16, "heads": 2, "hidden": 24, "layers": 3, "max_length": 10}
    own = system.model(system.config(**sizes, **head)).double().eval()
    for weight in own.parameters():
        nn.init.normal_(weight, std=0.2)
    for norm in (part for part in own.modules() if isinstance(part, nn.LayerNorm)):
        nn.init.normal_(norm.weight, mean=1.0, std=0.2)  # near 0 it would hide what a token does to those after it
    return own


def logits(model, tokens, state=None):
    return model.project(model.hidden_states(tokens, state))


@pytest.mark.parametrize("cuts", [[9], [1] * 9, [4, 1, 4], [2, 7]])
def test_a_text_read_in_parts_gives_what_it_gives_whole(model, cuts):
    state = model.start(2)
    parts = torch.cat([logits(model, part, state) for part in TOKENS.split(cuts, dim=1)], dim=1)
    torch.testing.assert_close(parts, logits(model, TOKENS), rtol=0, atol=1e-10)


def test_a_step_is_the_last_position_of_a_pass(model):
    state = model.start(2)
    model.hidden_states(TOKENS[:, :-1], state)
    torch.testing.assert_close(model.step(TOKENS[:, -1], state), logits(model, TOKENS)[:, -1], rtol=0, atol=1e-10)


def test_the_future_does_not_matter_and_the_past_does(model):
    changed = TOKENS.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 50
    before, after = logits(model, TOKENS), logits(model, changed)
    torch.testing.assert_close(after[:, :5], before[:, :5], rtol=0, atol=1e-12)
    assert (after[:, 6:] - before[:, 6:]).abs().amax(dim=-1).min() > 1e-4


def test_reordered_rows_continue_their_own_text(model):
    state = model.start(2)
    model.hidden_states(TOKENS[:, :4], state)
    state.reorder(torch.tensor([1, 1, 0]))
    rows = TOKENS[[1, 1, 0]]
    torch.testing.assert_close(model.step(rows[:, 4], state), logits(model, rows[:, :5])[:, -1], rtol=0, atol=1e-10)


def test_the_next_window_begins_with_nothing(model):
    state = model.start(2)
    model.hidden_states(TOKENS, state)
    torch.testing.assert_close(logits(model, TOKENS, state.detach()), logits(model, TOKENS), rtol=0, atol=1e-10)


def test_more_tokens_than_positions_are_refused(model):
    state = model.start(2)
    model.hidden_states(TOKENS, state)
    with pytest.raises(ValueError, match="a text has 11 tokens, but the model has 10 positions"):
        model.hidden_states(TOKENS[:, :2], state)


def test_what_is_added_to_the_residual_stream_is_scaled_by_depth():
    torch.manual_seed(0)
    own = GPT2(GPT2Config(vocab_size=50, dim=64, heads=2, hidden=256, layers=8))
    for layer in own.stack.layers:
        for out in (layer.attention.body.out, layer.mlp.body.down):
            assert out.weight.std().item() == pytest.approx(0.02 / 4, rel=0.1)
        assert layer.mlp.body.up.weight.std().item() == pytest.approx(0.02, rel=0.1)


def test_a_text_is_classified_by_the_state_at_its_last_token():
    own, states = SimpleNamespace(head=lambda x: x), torch.arange(12.0).view(2, 3, 2)
    assert torch.equal(Decoder.classify_states(own, states), states[:, 2])
    valid = torch.tensor([[True, True, False], [True, False, False]])
    assert torch.equal(Decoder.classify_states(own, states, valid), torch.stack([states[0, 1], states[1, 0]]))
