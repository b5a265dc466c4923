"""The gradients of cross entropy, R-Drop and distillation with respect to the logits, written out.

Autograd would pass over the logits several times, and they are by far the largest tensor.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def loss_and_gradient(
    logits: Float[Tensor, "passes n columns"],
    expected: Int[Tensor, " n"],
    smoothing: float,
    agreement: float,
    teacher: tuple[Tensor, float] | None,
    vocab: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss and the nll, summed over rows, and the gradient of the loss with respect to the logits.

    Columns after the first `vocab` are padding, with gradient 0.
    """
    if logits.is_cuda and logits.dtype.itemsize < 4:
        from heed.kernels.cross_entropy import cross_entropy_gradients

        return cross_entropy_gradients(logits, expected, smoothing, agreement, teacher, vocab)
    padding, logits = 0 if vocab is None else logits.shape[-1] - vocab, logits[..., :vocab]
    z = logits if logits.dtype == torch.float64 else logits.float()
    if teacher is not None:
        total, nll, grad = _distilled_loss_and_gradient(z[0], expected, smoothing, *teacher)
    elif len(z) == 1:
        total, nll, grad = _plain_loss_and_gradient(z[0], expected, smoothing)
    else:
        total, nll, grad = _agreeing_loss_and_gradient(z, expected, smoothing, agreement)
    grad = (grad if grad.ndim == 3 else grad[None]).to(logits.dtype)
    return total, nll, F.pad(grad, (0, padding)) if padding else grad


def _plain_loss_and_gradient(
    z: Float[Tensor, "n vocab"], expected: Int[Tensor, " n"], smoothing: float
) -> tuple[Tensor, Tensor, Float[Tensor, "n vocab"]]:
    """In place, since most of the time is spent reading and writing logits."""
    counts, targets = (expected >= 0).to(z.dtype), expected.clamp(min=0)[:, None]
    grad = z.log_softmax(dim=-1)
    total, nll = _smoothed(grad, targets, counts, smoothing)
    grad.exp_()
    if smoothing:
        grad.sub_(smoothing / z.shape[-1])
    return total, nll, _minus_targets(grad, targets, 1 - smoothing).mul_(counts[:, None])


def _agreeing_loss_and_gradient(
    z: Float[Tensor, "2 n vocab"], expected: Int[Tensor, " n"], smoothing: float, agreement: float
) -> tuple[Tensor, Tensor, Float[Tensor, "2 n vocab"]]:
    """The mean of two passes, and `agreement` / 2 times half of their symmetric divergence."""
    counts, targets = (expected >= 0).to(z.dtype), expected.clamp(min=0)[:, None]
    logp = z.log_softmax(dim=-1)
    sums = [_smoothed(one, targets, counts, smoothing) for one in logp]
    total, nll = ((one + other) / 2 for one, other in zip(*sums, strict=True))
    difference = logp[0] - logp[1]
    p, weight, grads = logp.exp_(), agreement / 4, []
    for one, other, sign in ((p[0], p[1], 1.0), (p[1], p[0], -1.0)):
        divergence = torch.linalg.vecdot(one, difference) * sign
        total = total + weight * (divergence * counts).sum()
        grad = torch.mul(difference, sign * weight).add_((0.5 + weight - weight * divergence)[:, None])
        grad.mul_(one).sub_(other, alpha=weight).sub_(smoothing / 2 / z.shape[-1])
        grads.append(_minus_targets(grad, targets, (1 - smoothing) / 2).mul_(counts[:, None]))
    return total, nll, torch.stack(grads)


def _distilled_loss_and_gradient(
    z: Float[Tensor, "n vocab"], expected: Int[Tensor, " n"], smoothing: float, teacher: Tensor, share: float
) -> tuple[Tensor, Tensor, Float[Tensor, "n vocab"]]:
    """A `share` of the loss is the cross entropy with the distribution of a teacher's logits."""
    counts, targets = (expected >= 0).to(z.dtype), expected.clamp(min=0)[:, None]
    logp, q = z.log_softmax(dim=-1), teacher.to(z.dtype).softmax(dim=-1)
    total, nll = _smoothed(logp, targets, counts, smoothing)
    total = (1 - share) * total - share * (torch.linalg.vecdot(q, logp) * counts).sum()
    grad = logp.exp_().sub_(q, alpha=share).sub_((1 - share) * smoothing / z.shape[-1])
    return total, nll, _minus_targets(grad, targets, (1 - share) * (1 - smoothing)).mul_(counts[:, None])


def _smoothed(logp: Tensor, targets: Tensor, counts: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss of `smoothed_cross_entropy` and the nll of the rows that count."""
    nll = -(logp.gather(1, targets)[:, 0] * counts).sum()
    if not smoothing:
        return nll, nll
    return (1 - smoothing) * nll - smoothing * (logp.mean(dim=-1) * counts).sum(), nll


def _minus_targets(grad: Tensor, targets: Tensor, amount: float) -> Tensor:
    """Subtract `amount` at the targets, in place."""
    return grad.scatter_add_(1, targets, grad.new_full((), -amount).expand(targets.shape))
