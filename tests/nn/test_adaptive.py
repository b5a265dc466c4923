"""Adaptive input and softmax: probabilities that sum to one, by two ways, and what tying means."""

import pytest
import torch
import torch.nn.functional as F

from heed.nn.adaptive import AdaptiveVocabulary


@pytest.fixture(params=[((), 1), ((), 2), ((4, 9), 1), ((4, 9), 2)], ids=str)
def own(request):
    torch.manual_seed(0)
    cutoffs, divisor = request.param
    part = AdaptiveVocabulary(15, 8, cutoffs, divisor).double()
    for each in part.parameters():
        torch.nn.init.normal_(each, std=0.5)
    return part


def test_probabilities_sum_to_one_and_losses_are_theirs(own):
    x, expected = torch.randn(3, 7, 8).double(), torch.arange(-6, 15)
    found = own.log_probs(x)
    torch.testing.assert_close(found.exp().sum(dim=-1), torch.ones(3, 7).double())
    losses = own.nll(x.flatten(0, 1), expected)
    full = F.nll_loss(found.flatten(0, 1), expected.clamp(min=0), reduction="none")
    torch.testing.assert_close(losses, full * (expected >= 0), rtol=0, atol=1e-12)


def test_each_token_has_the_vector_of_its_cluster(own):
    tokens = torch.tensor([[14, 0, 4], [3, 9, 8]])
    found = own(tokens)
    for place, token in zip(found.flatten(0, 1), tokens.flatten().tolist(), strict=True):
        cluster = next(i for i, (start, end) in enumerate(own.bounds) if start <= token < end)
        vector = own.tables[cluster].weight[token - own.bounds[cluster][0]]
        torch.testing.assert_close(place, vector if own.wider is None else own.wider[cluster].weight @ vector)


def test_torchs_adaptive_softmax_is_a_case_of_it():
    """Torch's has no biases in its clusters, and the head's matrix in one piece."""
    torch.manual_seed(0)
    ours = AdaptiveVocabulary(15, 8, (4, 9), 2).double()
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 15, [4, 9], div_value=2.0, head_bias=True).double()
    with torch.no_grad():
        theirs.head.weight.copy_(torch.cat([ours.tables[0].weight, ours.clusters.weight]) @ ours.head.weight)
        theirs.head.bias.copy_(torch.cat([ours.biases[0], ours.clusters.bias]))
        for i in (1, 2):
            theirs.tail[i - 1][0].weight.copy_(ours.wider[i].weight.T)
            theirs.tail[i - 1][1].weight.copy_(ours.tables[i].weight)
    x = torch.randn(5, 8).double()
    torch.testing.assert_close(ours.log_probs(x), theirs.log_prob(x), rtol=0, atol=1e-12)
