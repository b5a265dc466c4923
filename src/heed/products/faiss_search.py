"""Approximate search with faiss: a clustered index, of which only the nearest clusters are searched. Faster than
exact search, but may miss items.
"""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.products.item_search import ItemMatrix, SeenItems
from heed.vocabularies.ragged import RaggedRows

EXACT = 10_000  # items: of fewer, all are searched
SAMPLE = 64  # items of a cluster, on average, that clusters are learned from
SEARCHED = 16  # clusters that are searched for one user


class ItemIndex:
    """All items in clusters, about as many as the square root of their number."""

    def __init__(self, matrix: ItemMatrix):
        faiss = _faiss()
        self.items, vectors = len(matrix), _with_bias(matrix)
        self.biased, dim = matrix.bias is not None, vectors.shape[1]
        self.index = faiss.IndexFlatIP(dim)
        if self.items >= EXACT:
            clusters = round(math.sqrt(self.items))
            self.index = faiss.IndexIVFFlat(self.index, dim, clusters, faiss.METRIC_INNER_PRODUCT)
            self.index.nprobe = SEARCHED
            chosen = np.random.default_rng(0).permutation(self.items)[: SAMPLE * clusters]
            self.index.train(vectors[chosen])
        self.index.add(vectors)

    def best(
        self, states: Float[Tensor, "n dim"], count: int, seen: RaggedRows | None = None
    ) -> tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]:
        """The scores and ids of the best items, best first; -infinity if fewer are found, and for `seen` items."""
        asked = states.float().cpu().numpy()
        if self.biased:
            asked = np.concatenate([asked, np.ones((len(asked), 1), np.float32)], axis=1)
        more = int(seen.lengths.max(initial=0)) if seen is not None else 0
        found = self.index.search(np.ascontiguousarray(asked), min(self.items, count + more))
        scores, ids = (torch.from_numpy(part) for part in found)
        wrong = ids < 0
        if seen is not None and len(seen.ids):
            users = torch.arange(len(ids))[:, None]
            wrong |= SeenItems(seen, self.items, ids.device).has(users, ids)
        scores, order = scores.masked_fill(wrong, -torch.inf).topk(count, dim=1)
        return scores, ids.clamp(min=0).gather(1, order)


def _with_bias(matrix: ItemMatrix) -> Float[np.ndarray, "items dim"]:
    """The item vectors; a bias is one more dimension, multiplied by one."""
    parts = [matrix.weight] if matrix.bias is None else [matrix.weight, matrix.bias[:, None]]
    return np.ascontiguousarray(torch.cat(parts, dim=1).detach().float().cpu().numpy())


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise ValueError(
            "faiss is not installed: install it (pip install 'heed[faiss]'), or use exact search"
        ) from None
    return faiss
