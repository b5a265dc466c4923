"""Count-based recommenders as baselines: popularity and item-kNN."""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.vocabularies.ragged import RaggedRows, slice_indices

NEIGHBOURS = 100  # of each item
LAST = 100  # items of a history that are compared with each other
PAIRS = 1 << 24  # in memory at one time


class Popularity:
    """Every user gets the most frequent items of the training data."""

    def __init__(self, counts: Int[np.ndarray, " items"]):
        self.counts = torch.from_numpy(counts.astype(np.float32))

    def __call__(self, histories: RaggedRows) -> Float[Tensor, "n items"]:
        return self.counts.expand(len(histories), -1)


class ItemKNN:
    """Item-kNN (Sarwar et al., 2001): the cosine of two items as sets of users, summed over a history."""

    def __init__(self, rows: RaggedRows, items: int):
        users, ids = unique_items(rows, items)
        counts = np.bincount(ids, minlength=items)
        keys, together = _together(users, ids, items)
        one, other = keys // items, keys % items
        cosine = together / np.sqrt(counts[one] * counts[other])
        order = np.lexsort((other, -cosine, one))
        one, other, cosine = one[order], other[order], cosine[order]
        starts = np.searchsorted(one, np.arange(items + 1))
        kept = np.arange(len(one)) - starts[one] < NEIGHBOURS
        self.items, self.other, self.cosine = items, other[kept], cosine[kept].astype(np.float32)
        self.starts = np.searchsorted(one[kept], np.arange(items + 1))

    def __call__(self, histories: RaggedRows) -> Float[Tensor, "n items"]:
        rows, ids = unique_items(histories, self.items)
        sizes = np.diff(self.starts)[ids]
        places = slice_indices(self.starts[ids], sizes)
        at = torch.from_numpy(np.repeat(rows, sizes)), torch.from_numpy(self.other[places])
        scores = torch.zeros(len(histories), self.items)
        return scores.index_put_(at, torch.from_numpy(self.cosine[places]), accumulate=True)


def unique_items(rows: RaggedRows, items: int) -> tuple[np.ndarray, np.ndarray]:
    """The number of a row and one of its items, each pair once, rows in order."""
    keys = np.unique(np.repeat(np.arange(len(rows)), rows.lengths) * items + rows.ids.astype(np.int64))
    return keys // items, keys % items


def _together(users: np.ndarray, ids: np.ndarray, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of items as one number each, and how many users have both."""
    lengths = np.bincount(users)
    ends = lengths.cumsum()
    sizes = np.minimum(lengths, LAST)
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    squares = np.concatenate([[0], (sizes.astype(np.int64) ** 2).cumsum()])
    start = 0
    while start < len(sizes):
        end = max(start + 1, int(np.searchsorted(squares, squares[start] + PAIRS, side="right")) - 1)
        own = slice_indices((ends - sizes)[start:end], sizes[start:end])
        each = np.repeat(sizes[start:end], sizes[start:end])  # of the items of a user, that user's number of items
        first = np.repeat(ids[own], each)
        firsts = np.repeat(ends[start:end] - sizes[start:end], sizes[start:end])
        second = ids[slice_indices(firsts, each)]
        found, times = np.unique((first * items + second)[first != second], return_counts=True)
        keys, inverse = np.unique(np.concatenate([keys, found]), return_inverse=True)
        counts = np.bincount(inverse, weights=np.concatenate([counts, times]), minlength=len(keys)).astype(np.int64)
        start = end
    return keys, counts
