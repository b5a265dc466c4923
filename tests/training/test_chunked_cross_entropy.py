"""Cross entropy in chunks equals that of all logits at once, with its gradients."""

import pytest
import torch
import torch.nn.functional as F

from heed.training import loss


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("most", [2**22, 40, 1])
@pytest.mark.parametrize("with_bias", [False, True])
def test_it_is_torchs_cross_entropy_whatever_the_chunks(smoothing, most, with_bias, monkeypatch):
    monkeypatch.setitem(loss.MAX_LOGITS, "cpu", most)
    random = torch.Generator().manual_seed(0)
    shapes = [(9, 5), (13, 5), *([(13,)] if with_bias else [])]
    given = [(3 * torch.randn(shape, generator=random, dtype=torch.float64)).requires_grad_() for shape in shapes]
    expected = torch.randint(13, (9,), generator=random)
    expected[4] = -100  # does not count

    states, weight, *bias = given
    total, nll = loss.chunked_cross_entropy(states, weight, bias[0] if bias else None, expected, smoothing)
    ours = torch.autograd.grad(2 * total, given)
    logits = F.linear(states, weight, *bias)
    theirs = F.cross_entropy(logits, expected, label_smoothing=smoothing, reduction="sum")
    assert total.item() == pytest.approx(theirs.item(), abs=1e-10)
    assert nll.item() == pytest.approx(F.cross_entropy(logits, expected, reduction="sum").item(), abs=1e-10)
    for one, other in zip(ours, torch.autograd.grad(2 * theirs, given), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_a_very_unlikely_item_has_a_finite_loss():
    states, weight = torch.tensor([[300.0]], requires_grad=True), torch.tensor([[1.0], [-1.0]])
    total, nll = loss.chunked_cross_entropy(states, weight, None, torch.tensor([1]), 0.0)
    total.backward()
    assert total.item() == nll.item() == 600 and states.grad.item() == 2


@pytest.mark.parametrize("most", [2**22, 40])
def test_two_passes_give_their_mean_and_half_of_what_they_disagree(most, monkeypatch):
    """R-Drop by its definition, with the gradients of autograd."""
    monkeypatch.setitem(loss.MAX_LOGITS, "cpu", most)
    random = torch.Generator().manual_seed(0)
    states, weight = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((2, 9, 5), (13, 5)))
    given = states.requires_grad_(), weight.requires_grad_()
    expected = torch.randint(13, (9,), generator=random)
    expected[4] = -100  # does not count
    total, nll = loss.chunked_cross_entropy(*given, None, expected, smoothing=0.2, agreement=3.0)
    ours = torch.autograd.grad(total, given)

    logits = states @ weight.T
    smoothed = [F.cross_entropy(own, expected, label_smoothing=0.2, reduction="sum") for own in logits]
    p, q = logits[:, expected >= 0].log_softmax(dim=-1)
    symmetric = F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(q, p, reduction="sum", log_target=True)
    theirs = sum(smoothed) / 2 + 3.0 / 2 * symmetric / 2
    assert total.item() == pytest.approx(theirs.item(), abs=1e-10)
    plain = [F.cross_entropy(own, expected, reduction="sum").item() for own in logits]
    assert nll.item() == pytest.approx(sum(plain) / 2, abs=1e-10)
    for one, other in zip(ours, torch.autograd.grad(theirs, given), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
