"""Sentences end to end give what sentences side by side give: states, losses, gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.data.batching import collate
from heed.data.packing import pack
from heed.kernels.gradient_buffers import attach_buffer
from heed.models import MODELS
from heed.nn.attention import attend
from heed.nn.packing import PackedMask
from heed.tasks.sequence_loss import CrossEntropy, Distilled, RDrop
from heed.training.loss import chunked_cross_entropy, smoothed_cross_entropy, unit_gradient
from heed.vocabularies.vocabulary import SpecialTokens

SOURCE = [[5, 6, 7], [8], [9, 10, 11, 12, 13, 14], [], [6, 6]]
TARGET = [[7, 8], [9, 10, 11, 12], [5], [13, 14, 15], []]
SIZES = {
    "dim": 16,
    "heads": 2,
    "hidden": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "max_length": 32,
    "dropout": 0.0,
}
BART = SpecialTokens(1, 3, 2, 2, before=(0,))


def model(name="transformer", **shape):
    system = MODELS[name]
    torch.manual_seed(0)
    zero = {"attention_dropout": 0.0, "hidden_dropout": 0.0}
    made = system.model(system.config(vocab_size=20, **{**SIZES, **zero, **shape})).double()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return made


@pytest.mark.parametrize("slots", [1, 2, 16, 64])
@pytest.mark.parametrize(
    ("name", "shape", "special"),
    [
        ("transformer", {"norm": "post", "output_bias": True}, None),
        ("transformer", {"norm": "pre", "positions": "learned", "tied": "none"}, None),
        ("transformer", {"norm": "pre", "positions": "none"}, None),
        ("marian", {}, None),
        ("bart", {}, BART),
        ("pegasus", {}, None),
    ],
)
@pytest.mark.parametrize(
    "objective",
    [
        CrossEntropy(0.0),
        CrossEntropy(0.1),
        RDrop(0.1, 3.0),
        Distilled((model(dim=8, output_bias=True),), 0.1, 0.3),
        Distilled((model(dim=8, output_bias=True), model(dim=16)), 0.1, 0.3),
    ],
    ids=["plain", "smoothed", "r-drop", "distilled", "distilled from two"],
)
def test_packed_is_padded(name, shape, special, slots, objective):
    made, both = model(name, **shape), ((special, special),) if special else ()
    padded, packed = collate(SOURCE, TARGET, *both), pack(SOURCE, TARGET, *both, slots=slots)
    assert packed.source.shape[1] % slots == packed.target.shape[1] % slots == 0
    losses, gradients = [], []
    for batch in (padded, packed):
        made.zero_grad()
        losses.append(objective(made, batch))
        losses[-1].total.backward()
        gradients.append([w.grad.clone() for w in made.parameters() if w.grad is not None])
    assert losses[0].count == losses[1].count
    torch.testing.assert_close(losses[0][:2], losses[1][:2], rtol=0, atol=1e-9)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_within_borders_is_that_of_each_sequence(causal):
    packed = pack(SOURCE, TARGET, slots=8)
    chance = torch.Generator().manual_seed(1)
    queries, keys = packed.offsets, packed.offsets if causal else packed.valid
    q, k, v = (
        torch.randn(1, 2, len(b.positions), 4, dtype=torch.double, generator=chance) for b in (queries, keys, keys)
    )
    found = attend(q, k, v, mask=PackedMask(queries, keys), causal=causal)
    ends = [zip(b.starts.tolist(), b.starts.tolist()[1:], strict=False) for b in (queries, keys)]
    for (a, b), (c, d) in zip(*ends, strict=True):
        if a == b:
            continue
        own = attend(q[:, :, a:b], k[:, :, c:d], v[:, :, c:d], causal=causal)
        torch.testing.assert_close(found[:, :, a:b], own, rtol=0, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12), st.integers(1, 40))
def test_both_sides_are_filled_up_and_have_as_many_sequences(sizes, slots):
    packed = pack([[5] * a for a, _ in sizes], [[6] * b for _, b in sizes], slots=slots)
    for tokens, offsets, own in ((packed.source, packed.valid, 0), (packed.target, packed.offsets, 1)):
        every = offsets.starts.diff().tolist()
        lengths = [length for length in every if length]
        assert every[: len(lengths)] == lengths and (slots == 1 or len(every) % 128 == 0)
        assert lengths[: len(sizes)] == [size[own] + 1 for size in sizes]
        assert max(lengths) <= offsets.longest
        assert tokens.shape[1] == sum(lengths) == len(offsets.positions)
        assert sum(lengths) % slots == 0
        assert offsets.positions.tolist() == [place for length in lengths for place in range(length)]
    assert len(packed.valid.starts) == len(packed.offsets.starts)
    assert packed.count == sum(b + 1 for _, b in sizes) == int((packed.expected >= 0).sum())


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 5, 7, 100])
def test_a_loss_in_parts_is_the_whole(monkeypatch, rows, bias):
    monkeypatch.setattr("heed.training.loss.MAX_LOGITS", {"cpu": 9 * rows})
    chance = torch.Generator().manual_seed(2)
    states, weight, offset = (
        torch.randn(*size, dtype=torch.double, generator=chance) for size in ((7, 4), (9, 4), (9,))
    )
    parts = [states.requires_grad_(), weight.requires_grad_(), offset.requires_grad_()][: 2 + bias]
    expected = torch.tensor([3, 0, 8, -1, 2, -1, 1])
    scores = states @ weight.T + (offset if bias else 0.0)
    whole = smoothed_cross_entropy(scores[expected >= 0], expected[expected >= 0], 0.1)[0]
    total, nll = chunked_cross_entropy(states, weight, offset if bias else None, expected, 0.1)
    torch.testing.assert_close((total, nll), (whole.total, whole.nll), rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(3 * each, parts) for each in (total, whole.total))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 5, 8, 100])
def test_two_passes_that_should_agree_in_parts_are_the_whole(monkeypatch, rows):
    monkeypatch.setattr("heed.training.loss.MAX_LOGITS", {"cpu": 9 * rows})
    chance = torch.Generator().manual_seed(2)
    states, weight = (
        torch.randn(*size, dtype=torch.double, generator=chance).requires_grad_() for size in ((2, 5, 4), (9, 4))
    )
    expected = torch.tensor([3, 0, -1, 8, 2])
    due = expected >= 0
    both, logp = smoothed_cross_entropy((states[:, due] @ weight.T).flatten(0, 1), expected[due].repeat(2), 0.1)
    one, other = logp.chunk(2)
    whole = both.total / 2 + 3.0 / 2 * ((one.exp() - other.exp()) * (one - other)).sum() / 2
    total, nll = chunked_cross_entropy(states, weight, None, expected, 0.1, 3.0)
    torch.testing.assert_close((total, nll), (whole, both.nll / 2), rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(3 * each, (states, weight)) for each in (total, whole))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", [3, 100])
def test_a_gradient_known_to_be_one_is_not_multiplied_by(monkeypatch, rows):
    """The same numbers; the gradients are the buffers that the forward pass saved, and the matrix's is in its own buffer where it has one."""
    monkeypatch.setattr("heed.training.loss.MAX_LOGITS", {"cpu": 9 * rows})
    chance = torch.Generator().manual_seed(2)
    parts = [
        torch.randn(*size, dtype=torch.double, generator=chance).requires_grad_() for size in ((7, 4), (9, 4), (9,))
    ]
    expected = torch.tensor([3, 0, 8, -1, 2, -1, 1])
    total, _ = chunked_cross_entropy(*parts, expected, 0.1)
    wanted = torch.autograd.grad(total, parts)
    total, _ = chunked_cross_entropy(*parts, expected, 0.1)
    left = [kept.data_ptr() for kept in total.grad_fn.saved_tensors]
    found = torch.autograd.grad(total, parts, unit_gradient(total))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert [own.data_ptr() for own in found] == left
    total = 3 * chunked_cross_entropy(*parts, expected, 0.1)[0]  # here it reaches the loss as three
    thrice = torch.autograd.grad(total, parts, unit_gradient(total))
    torch.testing.assert_close(thrice, tuple(3 * own for own in wanted), rtol=0, atol=1e-12)
    place = attach_buffer(parts[1], torch.full((9, 4), 7.0, dtype=torch.double))
    for _ in range(2):  # in the second no longer: it is taken
        total, _ = chunked_cross_entropy(*parts, expected, 0.1)
        found = torch.autograd.grad(total, parts, unit_gradient(total))
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
        assert (found[1].data_ptr() == place.memory.data_ptr()) == (place.claims == 1)
