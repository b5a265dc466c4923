"""Contrastive loss with in-batch negatives (InfoNCE; van den Oord et al., 2018)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.data.text_pairs import PairBatch
from heed.models.abilities import EncodesText
from heed.nn.pooling import POOLINGS
from heed.tasks.text_losses import PacksTexts
from heed.training.loss import Loss


def in_batch_nll(
    queries: Float[Tensor, "n dim"],
    candidates: Float[Tensor, "m dim"],
    masked: Bool[Tensor, "n m"],
    scale: float,
) -> Float[Tensor, ""]:
    """The sum of -log p of candidate i for query i, by the cosines times `scale`; `masked` candidates are ignored."""
    cosines = F.normalize(queries, dim=1) @ F.normalize(candidates, dim=1).T
    logits = (scale * cosines).masked_fill(masked, -torch.inf)
    return -logits.log_softmax(dim=1).diagonal().sum()


def not_negative(
    queries: Int[Tensor, " n"], own: Int[Tensor, " n"], candidates: Int[Tensor, " m"], owners: Int[Tensor, " m"]
) -> Bool[Tensor, "n m"]:
    """Candidates that are not negatives of a query though they are not its own: duplicates of the query or of its
    candidate, and candidates of an equal query.
    """
    same = (candidates == queries[:, None]) | (candidates == own[:, None]) | (owners == queries[:, None])
    return same & ~torch.eye(len(queries), len(candidates), dtype=torch.bool, device=queries.device)


@dataclass(frozen=True)
class ContrastiveLoss(PacksTexts):
    """Match each first text with its second among all second texts and negatives of the batch; with `both_directions`
    also the reverse.
    """

    pooling: str
    scale: float
    both_directions: bool = True
    few_shapes: ClassVar = False  # each batch has its own number of pairs

    def __call__(self, model: EncodesText, batch: PairBatch) -> Loss:
        states = model.encode_text(batch.tokens, batch.valid)
        vectors = POOLINGS[self.pooling](states, batch.valid)
        exact = torch.promote_types(vectors.dtype, torch.float32)
        with torch.autocast(vectors.device.type, enabled=False):
            total = self.of_vectors(vectors.to(exact), batch.kinds, batch.columns)
        return Loss(total, total.detach(), len(vectors) // batch.columns)

    def of_vectors(
        self, vectors: Float[Tensor, "all dim"], kinds: Int[Tensor, " all"], columns: int
    ) -> Float[Tensor, ""]:
        """The loss of texts with known vectors, in the order of a PairBatch."""
        n = len(vectors) // columns
        one, other = kinds[:n], kinds[n : 2 * n]
        nothing = torch.full_like(kinds[2 * n :], -1)  # negatives belong to no text
        masked = not_negative(one, other, kinds[n:], torch.cat([one, nothing]))
        total = in_batch_nll(vectors[:n], vectors[n:], masked, self.scale)
        if not self.both_directions:
            return total
        masked = not_negative(other, one, one, other)
        return (total + in_batch_nll(vectors[n : 2 * n], vectors[:n], masked, self.scale)) / 2
