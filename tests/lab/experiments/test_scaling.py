"""Scores and their softmax, with and without the root of the width."""

import math

import pytest
import torch

from heed.lab.experiments import scaling
from heed.nn.attention import attend, mix


@pytest.fixture(scope="module")
def found():
    return scaling.measure(keys=16, groups=64, queries=16)


def test_the_variance_of_a_product_is_the_width(found):
    for width, plain, divided in zip(found.widths, found.plain.variance, found.scaled.variance, strict=True):
        assert plain == pytest.approx(width, rel=0.1)
        assert divided == pytest.approx(1, rel=0.1)


def test_undivided_scores_lose_entropy_and_gradient(found):
    plain, divided = found.plain, found.scaled
    assert plain.entropy == sorted(plain.entropy, reverse=True)
    assert plain.entropy[-1] < 0.3 < 3 < divided.entropy[-1] < math.log2(16)
    assert plain.gradient[-1] < 0.01 * divided.gradient[-1]
    assert divided.gradient[-1] == pytest.approx(divided.gradient[4], rel=0.1)
    assert plain.entropy[0] == divided.entropy[0]  # the root of 1


def test_the_numbers_of_the_notes(found):
    first, second = found.examples
    assert (first.scores, second.scores) == ([100, 50, 50], [10, 5, 5])
    for own in found.examples:
        assert own.weights == pytest.approx(own.notes, rel=1e-12)
    assert f"{second.weights[0]:.14f}" == "0.98670329104227"
    assert first.gradient == pytest.approx(2 * first.notes[1], rel=1e-9)
    assert second.gradient == pytest.approx(second.notes[0] * (1 - second.notes[0]), rel=1e-9)


def test_the_gradient_is_the_norm_of_the_jacobian():
    scores = torch.randn(7, dtype=torch.float64) * 2
    jacobian = torch.autograd.functional.jacobian(lambda s: mix(s, torch.eye(7, dtype=s.dtype))[1], scores)
    assert scaling.jacobian_norm(scaling.attention_weights(scores)).item() == pytest.approx(
        jacobian.norm().item(), abs=1e-12
    )
    assert scaling.jacobian_norm(torch.tensor([1.0, 0.0, 0.0])) == 0


def test_divided_scores_are_those_of_our_attention():
    q, k = torch.randn(2, 3, 8, dtype=torch.float64), torch.randn(2, 5, 8, dtype=torch.float64)
    weights = scaling.attention_weights(q @ k.mT / math.sqrt(8))
    eye = torch.eye(5, dtype=torch.float64).expand(2, 1, 5, 5)
    assert torch.allclose(attend(q[:, None], k[:, None], eye)[:, 0], weights, atol=1e-12)


def test_what_is_drawn_is_what_was_measured(found):
    panels = scaling.figure(found).axes
    for panel, what in zip(panels, ("variance", "entropy", "gradient"), strict=False):
        drawn = [line.get_ydata().tolist() for line in panel.lines]
        assert drawn == [getattr(found.plain, what), getattr(found.scaled, what)]
    bars = [bar.get_x() + bar.get_width() for bar in panels[3].patches]
    values = [value for own in found.examples for value in (own.weights[0], own.weights[1], own.gradient)]
    assert bars == pytest.approx(values)


def test_the_same_seed_measures_the_same(found):
    assert scaling.measure(keys=16, groups=64, queries=16) == found
    assert scaling.measure(keys=16, groups=64, queries=16, seed=1) != found


def test_a_single_key_is_refused():
    with pytest.raises(ValueError, match="keys is 1; it must be at least 2"):
        scaling.measure(keys=1)
