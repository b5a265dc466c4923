"""A loss as sums and a count, so that parts of a batch add up to the whole."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


class Loss(NamedTuple):
    """`total` is what is made small; `surprise` the plain -log p of what was expected, for perplexity."""

    total: Float[Tensor, ""]
    surprise: Float[Tensor, ""]
    count: int


def smoothed(
    logits: Float[Tensor, "n vocab"], expected: Int[Tensor, " n"], smoothing: float
) -> tuple[Loss, Float[Tensor, "n vocab"]]:
    """Cross entropy against (1 - smoothing) on what is expected and the rest spread over the vocabulary.

    (Szegedy et al., 2016.) The log probabilities come along for whoever needs them.
    """
    logp = logits.float().log_softmax(dim=-1) if logits.dtype.itemsize < 4 else logits.log_softmax(dim=-1)
    surprise = -logp.gather(1, expected[:, None]).sum()
    total = surprise
    if smoothing:
        total = (1 - smoothing) * surprise - smoothing * logp.mean(dim=1).sum()
    return Loss(total, surprise.detach(), len(expected)), logp


ROWS = 4096  # of the output that are there at one time


def smoothed_in_parts(
    states: Float[Tensor, "n dim"],
    weight: Float[Tensor, "vocab dim"],
    bias: Float[Tensor, " vocab"] | None,
    expected: Int[Tensor, " n"],
    smoothing: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The same of the scores `states @ weight.T + bias`, which never exist all at once: the total, and the surprise.

    Where less than nothing is expected, nothing counts. Gradients are made on the way, part by part.
    """
    dtype = (
        torch.get_autocast_dtype(states.device.type) if torch.is_autocast_enabled(states.device.type) else states.dtype
    )
    return _InParts.apply(states, weight, bias, expected, smoothing, dtype)


class _InParts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        expected: Tensor,
        smoothing: float,
        dtype: torch.dtype,
    ):
        matrix = weight.to(dtype)
        total = surprise = torch.zeros(
            (), dtype=torch.float64 if dtype == torch.float64 else torch.float32, device=states.device
        )
        to_states, to_weight = torch.empty_like(states), torch.zeros_like(weight)
        to_bias = None if bias is None else torch.zeros_like(bias)
        for start in range(0, len(states), ROWS):
            rows = states[start : start + ROWS].to(dtype)
            scores = F.linear(rows, matrix, None if bias is None else bias.to(dtype))
            own, plain, slope = _slopes(scores, expected[start : start + ROWS], smoothing)
            total, surprise = total + own, surprise + plain
            to_states[start : start + ROWS] = slope @ matrix
            to_weight += slope.T @ rows
            if bias is not None:
                to_bias += slope.sum(dim=0)
        ctx.save_for_backward(to_states, to_weight, to_bias)
        ctx.mark_non_differentiable(surprise)
        return total, surprise

    @staticmethod
    def backward(ctx: Any, change: Tensor, _: Tensor):
        return (
            *(None if part is None else part * change.to(part.dtype) for part in ctx.saved_tensors),
            None,
            None,
            None,
        )


def _slopes(scores: Tensor, expected: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Of each row's cross entropy the sum, the plain one, and the gradient to its scores."""
    z = scores if scores.dtype == torch.float64 else scores.float()
    due = (expected >= 0).to(z.dtype)
    size = torch.logsumexp(z, dim=-1)
    hit = z.gather(1, expected.clamp(min=0)[:, None])[:, 0]
    plain = ((size - hit) * due).sum()
    total = plain if not smoothing else (1 - smoothing) * plain + smoothing * ((size - z.mean(dim=-1)) * due).sum()
    slope = ((z - size[:, None]).exp() - smoothing / z.shape[-1]) * due[:, None]
    slope = slope.scatter_add(1, expected.clamp(min=0)[:, None], -(1 - smoothing) * due[:, None])
    return total, plain, slope.to(scores.dtype)
