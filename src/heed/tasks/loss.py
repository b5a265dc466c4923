"""A loss as sums and a count, so that parts of a batch add up to the whole."""

from typing import NamedTuple

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
