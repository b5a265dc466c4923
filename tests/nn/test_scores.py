"""Each score is its formula, one query and one key at a time."""

import math

import pytest
import torch

from heed.nn.attention import mix
from heed.nn.scores import Additive, Content, Dot, General, ScaledDot

DIM = 6


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def content(p, s, h):
    strength = math.log1p(math.exp(p["strength.weight"][0] @ s + p["strength.bias"][0]))
    return strength * (s @ h) / (math.sqrt(s @ s) * math.sqrt(h @ h))


def additive(p, s, h):
    return p["v.weight"][0] @ torch.tanh(p["query.weight"] @ s + p["key.weight"] @ h)


SCORES = {
    "content": (lambda: Content(DIM), content),
    "additive": (lambda: Additive(DIM), additive),
    "dot": (Dot, lambda p, s, h: s @ h),
    "general": (lambda: General(DIM), lambda p, s, h: s @ p["key.weight"] @ h),
    "scaled dot": (ScaledDot, lambda p, s, h: s @ h / math.sqrt(DIM)),
}


def randomized(make):
    score = make().double().requires_grad_(False)
    for weight in score.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return score


@pytest.mark.parametrize("name", SCORES)
def test_each_score_is_its_formula(name):
    make, formula = SCORES[name]
    score, s, h = randomized(make), torch.randn(2, 3, DIM).double(), torch.randn(2, 4, DIM).double()
    found, weights = score(s, score.keys(h)), dict(score.named_parameters())
    for b, i, j in torch.cartesian_prod(*map(torch.arange, (2, 3, 4))).tolist():
        assert abs(found[b, i, j] - formula(weights, s[b, i], h[b, j])) < 1e-10


@pytest.mark.parametrize("name", SCORES)
def test_weights_are_the_softmax_of_the_scores_and_the_context_is_their_sum(name):
    """α_ij = exp(e_ij) / Σ_k exp(e_ik) and c_i = Σ_j α_ij h_j over the positions that are not padding."""
    make, formula = SCORES[name]
    score, s, h = randomized(make), torch.randn(2, 3, DIM).double(), torch.randn(2, 4, DIM).double()
    valid = torch.tensor([[True, True, True, False], [True, True, True, True]])
    context, alpha = mix(score(s, score.keys(h)), h, valid[:, None])
    weights = dict(score.named_parameters())
    for b, i in torch.cartesian_prod(torch.arange(2), torch.arange(3)).tolist():
        energy = [math.exp(formula(weights, s[b, i], h[b, j])) if valid[b, j] else 0.0 for j in range(4)]
        expected = sum(e / sum(energy) * h[b, j] for j, e in enumerate(energy))
        torch.testing.assert_close(context[b, i], expected, rtol=0, atol=1e-10)
        torch.testing.assert_close(alpha[b, i].tolist(), [e / sum(energy) for e in energy], rtol=0, atol=1e-10)


def test_content_scores_depend_on_directions_alone():
    score, s, h = randomized(lambda: Content(DIM)), torch.randn(1, 2, DIM).double(), torch.randn(1, 3, DIM).double()
    torch.testing.assert_close(score(s, score.keys(7 * h)), score(s, score.keys(h)), rtol=0, atol=1e-10)
