import math

import pytest
import torch

from heed.nn import masks
from heed.nn.attention import Attention, attend, mix, record
from heed.nn.cache import Cache


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def heads(q=5, k=7, d=4):
    return tuple(torch.randn(2, 3, n, d, dtype=torch.double) for n in (q, k, k))


def random(*shape):
    return torch.randn(*shape, dtype=torch.double)


def small_attention():
    """All weights are random, biases too: initial zeros would hide mistakes."""
    attention = Attention(12, 3).double().eval().requires_grad_(False)
    for weight in attention.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return attention


def by_definition(query, key, value, mask):
    """The definition, one query at a time."""
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=torch.double)
    mask = mask.expand(*query.shape[:-1], key.shape[-2])
    for b, h, i in torch.cartesian_prod(*map(torch.arange, query.shape[:-1])).tolist():
        seen = mask[b, h, i].nonzero().flatten().tolist()
        e = [math.exp(query[b, h, i] @ key[b, h, j] / math.sqrt(query.shape[-1])) for j in seen]
        for w, j in zip(e, seen, strict=True):
            out[b, h, i] += w / sum(e) * value[b, h, j]
    return out


def test_the_queries_are_the_last_of_the_keys():
    q, k, v = heads()
    past = torch.ones(5, 7, dtype=torch.bool).tril(2)
    torch.testing.assert_close(attend(q, k, v, causal=True), by_definition(q, k, v, past))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_mask_and_causal_combine(causal, masked):
    q, k, v = heads(6, 6)
    mask = masks.key_padding(masks.from_lengths(torch.tensor([6, 4]), 6)) if masked else None
    allowed = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    if causal:
        allowed = allowed.tril()
    if masked:
        allowed = allowed & mask
    torch.testing.assert_close(attend(q, k, v, mask=mask, causal=causal), by_definition(q, k, v, allowed))


def test_a_query_with_nothing_to_see_gets_zeros_and_clean_gradients():
    q, k, v = heads(2, 3)
    q.requires_grad_()
    mask = torch.tensor([[True, True, False], [False, False, False]])
    for y in (attend(q, k, v, mask=mask), mix(q @ k.mT, v, mask)[0]):
        assert (y[..., 1, :] == 0).all()
        y.sum().backward()
        assert q.grad.isfinite().all()


def test_cached_steps_give_what_one_pass_gives():
    attention, x, cache = small_attention(), random(2, 6, 12), Cache()
    steps = [attention(x[:, a:b], causal=True, cache=cache) for a, b in [(0, 3), (3, 4), (4, 6)]]
    torch.testing.assert_close(torch.cat(steps, dim=1), attention(x, causal=True))


def test_memory_is_projected_once():
    attention, x, memory, cache = small_attention(), random(2, 4, 12), random(2, 5, 12), Cache()
    steps = [attention(x[:, :1], memory, cache=cache)]
    steps += [attention(x[:, t : t + 1], memory * torch.nan, cache=cache) for t in range(1, 4)]
    assert len(cache) == 5
    torch.testing.assert_close(torch.cat(steps, dim=1), attention(x, memory))


def test_reordered_rows_continue_in_their_new_order():
    attention, x, cache = small_attention(), random(3, 5, 12), Cache()
    attention(x[:, :4], causal=True, cache=cache)
    rows = torch.tensor([2, 0, 0])
    cache.reorder(rows)
    torch.testing.assert_close(attention(x[rows, 4:], causal=True, cache=cache), attention(x[rows], causal=True)[:, 4:])


@pytest.mark.parametrize("causal", [False, True])
def test_recorded_weights_are_those_used(causal):
    attention, x = small_attention(), random(2, 6, 12)
    mask = masks.key_padding(masks.from_lengths(torch.tensor([6, 4]), 6))
    plain = attention(x, mask=mask, causal=causal)
    with record(attention) as maps:
        torch.testing.assert_close(attention(x, mask=mask, causal=causal), plain)
    (weights,) = maps
    assert weights.shape == (2, 3, 6, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 6, dtype=torch.double))
    assert (weights[1, ..., 4:] == 0).all()
    assert not causal or weights.triu(1).eq(0).all()
    values = attention.v(x).unflatten(-1, (3, 4)).transpose(1, 2)
    torch.testing.assert_close(attention.out((weights @ values).transpose(1, 2).flatten(2)), plain)


def test_recording_restores_the_kernels():
    attention = small_attention()
    with pytest.raises(RuntimeError, match="in between"), record(attention) as maps:
        raise RuntimeError("in between")
    attention(random(1, 2, 12))
    assert maps == []
    assert attention.kernel is attend


def test_dropout_applies_only_in_training():
    attention, x = Attention(12, 3, dropout=0.9), torch.randn(2, 6, 12)
    torch.testing.assert_close(attention.eval()(x), attention.eval()(x))
    assert not torch.equal(attention.train()(x), attention.train()(x))


def test_heads_must_divide_dim():
    with pytest.raises(ValueError, match=r"dim \(10\) is not a multiple of heads \(3\)"):
        Attention(10, 3)


@pytest.mark.parametrize("causal", [False, True])
def test_heads_may_be_of_any_width(causal):
    attention = Attention(4, 8, head_dim=3).double().eval().requires_grad_(False)  # those of the lecture notes
    assert attention.out.weight.shape == (4, 24) and not attention.heads_fill_dim
    x = random(2, 6, 4)
    q, k, v = (part(x).unflatten(-1, (8, 3)).transpose(1, 2) for part in (attention.q, attention.k, attention.v))
    allowed = torch.ones(6, 6, dtype=torch.bool)
    expected = by_definition(q, k, v, allowed.tril() if causal else allowed)
    expected = attention.out(expected.transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, causal=causal), expected)
    with record(attention) as maps:
        torch.testing.assert_close(attention(x, causal=causal), expected)
    assert maps[0].shape == (2, 8, 6, 6)
    cache = Cache()
    steps = [attention(x[:, i : i + 1], causal=True, cache=cache) for i in range(6)]
    torch.testing.assert_close(torch.cat(steps, 1), attention(x, causal=True))


def test_the_usual_width_given_by_hand_changes_nothing():
    usual, named = small_attention(), Attention(12, 3, head_dim=4).double()
    named.load_state_dict(usual.state_dict())
    x = random(2, 6, 12)
    assert usual.heads_fill_dim and named.heads_fill_dim and torch.equal(usual(x), named(x))


def test_a_width_that_cannot_be():
    with pytest.raises(ValueError, match="head_dim is 0; it must be at least 1"):
        Attention(4, 8, head_dim=0)
