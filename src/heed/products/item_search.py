"""Exact top-k search over many items for some users: all items are scored in blocks, and only the maximum of each
group is kept. The k best items are in the k groups with the best maxima, so a block needs one pass for its maxima,
and k groups are scored again.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.vocabularies.ragged import RaggedRows

MANY = 1 << 16  # items, from which on groups are larger
GROUPS = (8, 32)  # items of a group: of few, and of many
BLOCK = {"cuda": 1 << 17, "cpu": 1 << 13}  # items that are scored at one time, for as many users:
USERS = {"cuda": 1024, "cpu": 64}  # on a CPU their scores fit into its caches
WHOLE = ("cuda",)  # devices on which fewer kernels are faster than fewer scores: all scores of few items are kept,
SCORES = 1 << 28  # so many at one time
CANDIDATES = 1 << 24  # numbers of the items that are scored again, at one time


@dataclass(frozen=True)
class ItemMatrix:
    """The matrix and bias that score each item."""

    weight: Float[Tensor, "items dim"]
    bias: Float[Tensor, " items"] | None = None

    def __len__(self) -> int:
        return len(self.weight)


class SeenItems:
    """Pairs of a user and an item to exclude."""

    def __init__(self, rows: RaggedRows, items: int, device: torch.device):
        users = np.repeat(np.arange(len(rows)), rows.lengths)
        ids = rows.ids.astype(np.int64)
        order = np.argsort(ids, kind="stable")
        self.by_item, self.ids = ids[order], torch.from_numpy(ids[order]).to(device)
        self.users = torch.from_numpy(users[order]).to(device)
        self.items, self.keys = items, torch.from_numpy(np.sort(users * items + ids)).to(device)

    def hide(self, scores: Float[Tensor, "block users"], first: int) -> None:
        """Set the scores of those within a block to -infinity."""
        start, end = np.searchsorted(self.by_item, [first, first + len(scores)])
        scores[self.ids[start:end] - first, self.users[start:end]] = -torch.inf

    def has(self, user: Int[Tensor, "n 1"], items: Int[Tensor, "n k"]) -> Tensor:
        """Which items their user has."""
        asked = user * self.items + items
        return self.keys[torch.searchsorted(self.keys, asked).clamp(max=len(self.keys) - 1)] == asked


@torch.inference_mode()
def best_items(
    states: Float[Tensor, "n dim"], matrix: ItemMatrix, count: int, seen: RaggedRows | None = None
) -> tuple[Float[Tensor, "n k"], Int[Tensor, "n k"]]:
    """The scores and ids of the best items, best first, ties in any order; `seen` items have a score of -infinity."""
    kind, count = states.device.type, min(count, len(matrix))
    few = kind in WHOLE and len(matrix) <= MANY
    step = max(1, SCORES // len(matrix)) if few else USERS.get(kind, USERS["cpu"])
    best = _best_of_few if few else _best
    found = []
    for start in range(0, len(states), step):
        own = states[start : start + step]
        hidden = None
        if seen is not None:
            rows = RaggedRows(seen.ids[_span(seen, start, start + len(own))], seen.lengths[start : start + len(own)])
            hidden = SeenItems(rows, len(matrix), states.device) if len(rows.ids) else None
        found.append(best(own, matrix, count, hidden))
    scores, ids = (torch.cat(parts) for parts in zip(*found, strict=True))
    return scores, ids


def _span(rows: RaggedRows, start: int, end: int) -> slice:
    ends = np.concatenate([[0], rows.ends])
    return slice(int(ends[start]), int(ends[end]))


def _best_of_few(states: Tensor, matrix: ItemMatrix, count: int, seen: SeenItems | None) -> tuple[Tensor, Tensor]:
    """By computing all scores at once."""
    scores = F.linear(states, matrix.weight, matrix.bias)
    if seen is not None:
        seen.hide(scores.T, 0)
    return scores.topk(count, dim=1)


def _best(states: Tensor, matrix: ItemMatrix, count: int, seen: SeenItems | None) -> tuple[Tensor, Tensor]:
    group = GROUPS[len(matrix) > MANY]
    maxima = _maxima(states, matrix, group, seen)
    groups = maxima.T.contiguous().topk(min(count, len(maxima)), dim=1, sorted=False).indices
    step = max(1, CANDIDATES // (groups.shape[1] * group * states.shape[1]))
    parts = [
        _within(states[start : start + step], groups[start : start + step], matrix, group, count, seen, start)
        for start in range(0, len(states), step)
    ]
    return torch.cat([scores for scores, _ in parts]), torch.cat([ids for _, ids in parts])


def _maxima(states: Tensor, matrix: ItemMatrix, group: int, seen: SeenItems | None) -> Float[Tensor, "groups n"]:
    """The best score of each group of items, for each user."""
    columns, items = states.T.contiguous(), len(matrix)
    maxima = states.new_empty(-(-items // group), len(states))
    block = BLOCK.get(states.device.type, BLOCK["cpu"])
    for first in range(0, items, block):
        scores = matrix.weight[first : first + block] @ columns
        if matrix.bias is not None:
            scores += matrix.bias[first : first + block, None]
        if seen is not None:
            seen.hide(scores, first)
        whole, at = len(scores) // group, first // group
        torch.amax(scores[: whole * group].unflatten(0, (whole, group)), dim=1, out=maxima[at : at + whole])
        if whole * group < len(scores):
            maxima[-1] = scores[whole * group :].amax(dim=0)
    return maxima


def _within(
    states: Tensor,
    groups: Int[Tensor, "n g"],
    matrix: ItemMatrix,
    group: int,
    count: int,
    seen: SeenItems | None,
    first: int,
) -> tuple[Tensor, Tensor]:
    """The best items of some groups of each user; `first` is the index of the first user."""
    places = (groups[:, :, None] * group + torch.arange(group, device=groups.device)).flatten(1)
    ids = places.clamp(max=len(matrix) - 1)
    scores = (F.embedding(ids, matrix.weight) @ states[:, :, None])[:, :, 0]
    if matrix.bias is not None:
        scores += matrix.bias[ids]
    wrong = places >= len(matrix)
    if seen is not None:
        users = torch.arange(first, first + len(states), device=ids.device)[:, None]
        wrong |= seen.has(users, ids)
    scores, order = scores.masked_fill_(wrong, -torch.inf).topk(count, dim=1)
    return scores, ids.gather(1, order)
