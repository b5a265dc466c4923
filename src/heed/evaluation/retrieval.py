"""Cosine search over vectors, and retrieval metrics."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

BLOCK = 65536  # vectors that are compared at one time


def unit_rows(matrix: Float[np.ndarray, "n dim"]) -> Float[np.ndarray, "n dim"]:
    """Rows scaled to length 1 in their own precision; zero rows stay zero."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)


def row_cosines(one: Float[np.ndarray, "n dim"], other: Float[np.ndarray, "n dim"]) -> Float[np.ndarray, " n"]:
    """The cosine of each row with its counterpart, in double precision."""
    return np.einsum("nd,nd->n", *(unit_rows(own.astype(np.float64)) for own in (one, other)))


def nearest_rows(
    queries: Float[np.ndarray, "q dim"], vectors: Float[np.ndarray, "n dim"], count: int, block: int = BLOCK
) -> tuple[Int[np.ndarray, "q k"], Float[np.ndarray, "q k"]]:
    """For each query the `count` rows with the largest cosines, best first, and these cosines; ties by order."""
    queries, best = unit_rows(queries), min(count, len(vectors))
    rows, cosines = np.zeros((len(queries), 0), dtype=np.int64), np.zeros((len(queries), 0), dtype=vectors.dtype)
    for start in range(0, len(vectors), block):
        found = queries @ unit_rows(vectors[start : start + block]).T
        numbers = np.broadcast_to(np.arange(start, start + found.shape[1]), found.shape)
        cosines, rows = np.concatenate([cosines, found], axis=1), np.concatenate([rows, numbers], axis=1)
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :best]
        cosines, rows = (np.take_along_axis(part, order, axis=1) for part in (cosines, rows))
    return rows, cosines


def ranks(
    queries: Float[np.ndarray, "n dim"], targets: Float[np.ndarray, "n dim"], texts: Sequence[str], block: int = 1024
) -> Int[np.ndarray, " n"]:
    """The rank of each query's target among all, by cosine; `texts` are the targets, of which duplicates count once.
    A different text at the same distance counts as nearer, so that constant vectors find nothing.
    """
    queries, targets = unit_rows(queries), unit_rows(targets)
    _, kinds = np.unique(np.array(texts, dtype=object).astype(str), return_inverse=True)
    found = np.zeros(len(queries), dtype=np.int64)
    _, first = np.unique(kinds, return_index=True)
    for start in range(0, len(queries), block):
        own = np.arange(start, min(start + block, len(queries)))
        cosines = queries[own] @ targets.T
        limit = cosines[np.arange(len(own)), own]
        nearer = cosines[:, first] >= limit[:, None]
        nearer &= kinds[first][None] != kinds[own][:, None]
        found[own] = 1 + nearer.sum(axis=1)
    return found


def retrieval_scores(found: Int[np.ndarray, " n"]) -> dict[str, float]:
    """From ranks: how often the target comes first, and the mean of 1 / rank; times 100."""
    if not len(found):
        return {"recall@1": 0.0, "mrr": 0.0}
    return {"recall@1": 100 * float((found == 1).mean()), "mrr": 100 * float((1 / found).mean())}


def rank_scores(found: Int[np.ndarray, " n"], expected: Int[np.ndarray, " n"]) -> dict[str, float]:
    """The same as a metric of found and expected ranks, where the expected rank is always the first."""
    return retrieval_scores(found)
