"""Relative attention against a double loop over the equation of Dai et al. (2019)."""

import math

import pytest
import torch

from heed.nn.attention import Attention
from heed.nn.relative import RelativePositions


def wave(distance, dim):
    rates = [10000 ** (-i / dim) for i in range(0, dim, 2)]
    return torch.tensor([math.sin(distance * r) for r in rates] + [math.cos(distance * r) for r in rates]).double()


@pytest.mark.parametrize(("past", "farthest"), [(0, 0), (3, 0), (3, 4)])
def test_it_is_the_equation_of_the_paper(past, farthest):
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    try:
        own = Attention(8, 2, bias=False, relative=RelativePositions(8, 2, farthest=farthest))
        for each in own.parameters():
            torch.nn.init.normal_(each, std=0.5)
        seen = torch.randn(1, past + 5, 8)
        found = own(seen[:, past:], seen, causal=True)
        heads = []
        for h in range(2):
            part, r = slice(4 * h, 4 * h + 4), own.relative
            q, k, v, w = (each.weight[part] for each in (own.q, own.k, own.v, r.positions))
            rows = []
            for i in range(past, past + 5):
                scores = []
                for j in range(i + 1):
                    query, key = q @ seen[0, i], k @ seen[0, j]
                    place = w @ wave(min(i - j, farthest or i - j), 8)
                    scores.append(query @ key + query @ place + r.u[h, 0] @ key + r.v[h, 0] @ place)
                weights = torch.stack(scores).div(2).softmax(dim=0)
                rows.append(sum(weights[j] * (v @ seen[0, j]) for j in range(i + 1)))
            heads.append(torch.stack(rows))
        expected = own.out(torch.cat(heads, dim=1))
        torch.testing.assert_close(found[0], expected, rtol=0, atol=1e-12)
    finally:
        torch.set_default_dtype(torch.float32)
