"""Norms by hand, and stacks with a part left out."""

import math

import pytest
import torch
from torch import nn

from heed.lab.experiments import norms, stacks
from heed.nn.attention import Attention


@pytest.fixture(scope="module")
def small():
    return norms.measure(dim=16, layers=6, length=5, draws=2)


def test_the_word_of_the_notes_by_hand(small):
    assert small.mean == (4 + 2 + 3 + 5) / 4 == 3.5
    assert small.deviation == pytest.approx(math.sqrt(5) / 2)
    assert str(small.deviation).startswith("1.11")
    by_hand = [(value - 3.5) / (math.sqrt(5) / 2) for value in (4, 2, 3, 5)]
    for own in small.examples:
        assert own.batch[0] == [4, 2, 3, 5]
        assert own.layer[0] == pytest.approx(by_hand, abs=1e-9)
    assert [round(value, 2) for value in by_hand] == [0.45, -1.34, -0.45, 1.34]


def test_the_numbers_of_the_notes_beside_the_right_ones(small):
    sigma = math.sqrt(1.25)
    right = [3.5, sigma, 0.5 / sigma, -1.5 / sigma, 3 * 0.5 / sigma + 1, 3 * 0.7 + 1, 3.0, 4.0]
    assert [one.heed for one in small.notes] == pytest.approx(right, abs=1e-6)
    assert [one.notes for one in small.notes] == [3.5, 1.11, 0.65, -0.45, 2.95, 3.1, 3.0, 2.0]
    rows = norms.tables(small)[1].rows
    assert [row[2:4] for row in rows[2:6]] == [
        ["0.45", "+0.20"], ["-1.34", "+0.89"], ["2.34", "+0.61"], ["3.10", "+0.00"],
    ]  # fmt: skip
    assert rows[-1][1:4] == ["2", "4.00", "-2.00"]


def test_no_other_four_integers_are_the_word_of_the_notes():
    """4 and 2 are in it, its mean is 3.5, and its deviation is written 1.11."""
    found = set()
    for third in range(-20, 21):
        word = [4, 2, third, 8 - third]
        deviation = math.sqrt(sum((value - 3.5) ** 2 for value in word) / 4)
        if str(deviation).startswith("1.11"):
            found.add(tuple(sorted(word)))
    assert found == {(2, 3, 4, 5)}


def test_batch_norm_is_by_column_and_layer_norm_by_row(small):
    for own in small.examples:
        layer, by_batch = (torch.tensor(values, dtype=torch.float64) for values in (own.layer, own.by_batch))
        for values, axis in ((layer, 1), (by_batch, 0)):
            assert torch.allclose(values.mean(axis), torch.zeros(1, dtype=torch.float64), atol=1e-9)
            assert torch.allclose(values.std(axis, correction=0), torch.ones(1, dtype=torch.float64), atol=1e-6)


def test_other_words_of_the_batch_matter_to_batch_norm_only(small):
    first, second = small.examples
    assert first.layer[0] == second.layer[0]
    assert first.by_batch[0] != second.by_batch[0]


@pytest.mark.parametrize(
    ("kind", "by_hand"),
    [
        ("neither", lambda x, body, norm: body(x)),
        ("norm alone", lambda x, body, norm: norm(body(x))),
        ("residual alone", lambda x, body, norm: x + body(x)),
        ("post-norm", lambda x, body, norm: norm(x + body(x))),
        ("pre-norm", lambda x, body, norm: x + body(norm(x))),
    ],
)
def test_each_wrapper_is_its_formula(kind, by_hand):
    body, norm, x = Attention(8, 2).double(), nn.LayerNorm(8).double(), torch.randn(2, 3, 8, dtype=torch.float64)
    wrapped = stacks.WRAPPERS[kind](body, 8).double()
    assert torch.allclose(wrapped(x), by_hand(x, body, norm), atol=1e-10)


def test_the_gradient_at_a_layer_is_its_derivative():
    torch.manual_seed(0)
    stack = stacks.build_stack("post-norm", 8, 4, 3)
    torch.manual_seed(1)
    found = norms.measure_stack(stack, 8, 4, rows=2, vocabulary=10)
    torch.manual_seed(1)
    output, x, target = torch.randn(10, 8) / math.sqrt(8), torch.randn(2, 4, 8), torch.randint(10, (8,))

    def loss(x):
        return nn.functional.cross_entropy((stack(x) @ output.T).flatten(0, 1), target)

    assert found.gradient[0] == pytest.approx(torch.autograd.functional.jacobian(loss, x).norm().item(), rel=1e-4)
    assert len(found.gradient) == len(found.alike) == 4
    assert len(found.weights) == 3
    assert not any(layer._forward_pre_hooks for layer in stack.layers)


def test_the_similarity_of_words_is_their_mean_cosine():
    words = torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [3.0, 3.0]]])
    assert norms._mean_cosine(words) == pytest.approx(0.5)


def test_residuals_and_norms_keep_a_gradient():
    found = norms.measure(dim=32, layers=16, length=8, draws=1).stacks
    factor = {kind: own.gradient[0] / own.gradient[-1] for kind, own in found.items()}
    assert factor["neither"] < 1e-3
    assert factor["residual alone"] > 1e3
    assert 0.05 < factor["post-norm"] < 20 and 0.05 < factor["pre-norm"] < 20
    assert found["pre-norm"].alike[-1] < found["post-norm"].alike[-1] < found["norm alone"].alike[-1] + 1e-6


def test_what_is_drawn_is_what_was_measured(small):
    panels = norms.figure(small).axes
    first, second = small.examples
    cells = [panel.images[0].get_array().tolist() for panel in panels[:4]]
    assert cells == [first.batch, first.layer, first.by_batch, second.by_batch]
    for panel, what in zip(panels[4:], ("gradient", "weights", "alike"), strict=True):
        drawn = [list(line.get_ydata()) for line in panel.lines]
        kept = [getattr(own, what) for own in small.stacks.values()]
        assert drawn == (kept if what == "alike" else [own[::-1] for own in kept])


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="dim is 6; it must be a multiple of 4"):
        norms.measure(dim=6)
    with pytest.raises(ValueError, match="layers is 1; it must be at least 2"):
        norms.measure(layers=1)
    with pytest.raises(ValueError, match="length is 1; it must be at least 2"):
        norms.measure(length=1)
