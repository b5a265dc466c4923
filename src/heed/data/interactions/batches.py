"""Batches of histories without padding, in an order that depends on the seed and the epoch alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.batching import DataPosition
from heed.data.interactions.augment import Augmentation, draw, two_views
from heed.data.packing import map_tensors, offsets_of, to_device
from heed.nn.packing import SequenceOffsets
from heed.vocabularies.histories import Histories
from heed.vocabularies.ragged import RaggedRows, slice_indices


class ItemViews(NamedTuple):
    """All histories of a batch in one view, then all in another, packed in one row; `last` are the places of their last items."""

    items: Tensor
    offsets: SequenceOffsets
    last: Tensor


class ItemBatch(NamedTuple):
    """Histories packed in one row. At each of `places` the item `expected` is predicted, -1 at padding; `seen` are all items of
    each history, which are never drawn as negatives.
    """

    items: Tensor
    offsets: SequenceOffsets
    places: Tensor
    expected: Tensor
    seen: Tensor  # (2, n): the number of a history in the batch, and an item of it
    count: int  # of predictions
    views: ItemViews | None = None

    to = to_device

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches of equal shape run the same kernels."""
        return self.items.shape[1], len(self.offsets.starts), self.offsets.longest, len(self.places), self.seen.shape[1]

    def tensors(self) -> list[Tensor]:
        return [self.items, self.offsets.starts, self.offsets.positions, self.places, self.expected, self.seen]

    def clone(self) -> "ItemBatch":
        """A copy in new memory."""
        return map_tensors(self, torch.clone)


class Inputs(NamedTuple):
    """What a model reads, where it predicts, and what is right there."""

    rows: RaggedRows
    places: np.ndarray
    expected: np.ndarray


Form = Callable[[RaggedRows, np.random.Generator], Inputs]  # of the examples that a model learns from


def next_items(rows: RaggedRows, random: np.random.Generator) -> Inputs:
    """All items but the last are read; at each, the next is predicted (SASRec)."""
    ends = np.zeros(len(rows.ids), dtype=bool)
    ends[rows.ends - 1] = True
    starts = np.zeros(len(rows.ids), dtype=bool)
    starts[rows.ends - rows.lengths] = True
    inputs = RaggedRows(rows.ids[~ends], rows.lengths - 1)
    return Inputs(inputs, np.arange(len(inputs.ids)), rows.ids[~starts])


@dataclass(frozen=True)
class MaskItems:
    """Items are masked and predicted (BERT4Rec): `share` of them, at least one; in some histories the last alone."""

    masked: int
    share: float
    last: float

    def __call__(self, rows: RaggedRows, random: np.random.Generator) -> Inputs:
        counts = np.maximum(1, np.round(self.share * rows.lengths)).astype(np.int64)
        at_end = random.random(len(rows)) < self.last
        chosen = draw(rows, np.where(at_end, 0, counts), random)
        chosen[rows.ends[at_end] - 1] = True
        places = np.flatnonzero(chosen)
        return Inputs(RaggedRows(np.where(chosen, self.masked, rows.ids), rows.lengths), places, rows.ids[places])


def cut(lengths: np.ndarray, most: int, windows: bool, shared: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The user, the start and the end of each example: the last `most` items, or with `windows` all, in parts of as many.

    Two parts share `shared` items: the last target of one is the first input of the next.
    """
    users = np.flatnonzero(lengths >= 2)
    ends = lengths[users].astype(np.int64)
    if windows:
        counts = 1 + np.maximum(0, -(-(ends - most) // (most - shared)))
        users, back = np.repeat(users, counts), np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        ends = np.repeat(ends, counts) - back * (most - shared)
    return users, np.maximum(0, ends - most), ends


class ItemBatches:
    """The batches of a log, epoch after epoch, from any position on."""

    def __init__(  # noqa: PLR0913 (settings, each by its name)
        self,
        histories: Histories,
        form: Form,
        *,
        longest: int,
        budget: int,
        seed: int,
        windows: bool = False,
        augmentations: Sequence[Augmentation] = (),
        share: tuple[int, int] = (0, 1),
        equal: bool = False,
    ):
        """`longest` is the most items of an example. `share` is (rank, processes): each gets its part of every batch.

        With `equal` all batches are padded to one shape, so that a CUDA graph can be replayed for each.
        """
        self.histories, self.form, self.budget, self.seed = histories, form, budget, seed
        self.augmentations, self.share, self.equal = augmentations, share, equal
        overlap = int(form is next_items)
        self.longest = longest - overlap  # of what the model reads
        self.users, starts, ends = cut(histories.train_end, longest, windows, overlap)
        self.starts, self.lengths = histories.offsets[self.users] + starts, ends - starts

    def __len__(self) -> int:
        return len(self.users)

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The examples of each batch: as many as the budget of items takes, none more than twice as long as another.

        Packed attention is padded where there is no kernel for it, as on a CPU.
        """
        random = np.random.default_rng([self.seed, epoch])
        order = random.permutation(len(self.users))
        sizes = np.ceil(np.log2(np.maximum(4, self.lengths))).astype(np.int8)
        order = order[np.argsort(sizes[order], kind="stable")]
        ends = np.concatenate([[0], self.lengths[order].cumsum()])
        bounds = [0]
        while bounds[-1] < len(order):
            most = int(np.searchsorted(ends, ends[bounds[-1]] + self.budget, side="right")) - 1
            bounds.append(max(most, bounds[-1] + 1))
        batches = [order[start:end] for start, end in pairwise(bounds)]
        return [batches[i] for i in random.permutation(len(batches))]

    def start(self, position: tuple[int, int] = (0, 0)) -> Iterator[tuple[DataPosition, ItemBatch]]:
        """Each batch with the position after it."""
        epoch, index = position
        while True:
            planned = self.plan(epoch)
            for i in range(index, len(planned)):
                after = DataPosition(epoch, i + 1) if i + 1 < len(planned) else DataPosition(epoch + 1, 0)
                yield after, self.make(planned[i], (epoch, i))
            epoch, index = epoch + 1, 0

    def make(self, chosen: np.ndarray, position: tuple[int, int]) -> ItemBatch:
        """A batch of this process's share of the examples; where it has none, one without anything to predict."""
        mine = chosen[self.share[0] :: self.share[1]]
        random = np.random.default_rng([self.seed, *position, self.share[0]])
        found = self._batch(mine if len(mine) else chosen[:1], random)
        return found if len(mine) else found._replace(places=found.places[:0], expected=found.expected[:0], count=0)

    def _batch(self, chosen: np.ndarray, random: np.random.Generator) -> ItemBatch:
        lengths = self.lengths[chosen]
        rows = RaggedRows(self.histories.items[slice_indices(self.starts[chosen], lengths)].astype(np.int64), lengths)
        inputs, places, expected = self.form(rows, random)
        seen = np.stack([np.repeat(np.arange(len(rows)), lengths), rows.ids])
        views = None
        if self.augmentations:
            one, other = two_views(inputs, self.augmentations, random)
            both = np.concatenate([one.lengths, other.lengths])
            items = torch.from_numpy(np.concatenate([one.ids, other.ids]))[None]
            views = ItemViews(items, offsets_of(both), torch.from_numpy(both.cumsum() - 1))
        if self.equal:
            return self._padded(inputs, places, expected, seen)
        packed = torch.from_numpy(inputs.ids)[None], offsets_of(inputs.lengths)
        return ItemBatch(*packed, *map(torch.from_numpy, (places, expected, seen)), len(places), views)

    def _padded(self, inputs: RaggedRows, places: np.ndarray, expected: np.ndarray, seen: np.ndarray) -> ItemBatch:
        """A batch filled up to the largest that there can be: histories of padding, then empty ones."""
        slots = max(self.budget, int(self.lengths.max()))
        histories = slots // int(self.lengths.min()) + -(-slots // self.longest) + 1
        missing = slots - len(inputs.ids)
        fillers = np.diff([*range(0, missing, self.longest), missing])
        lengths = np.concatenate([inputs.lengths, fillers])
        offsets = offsets_of(np.pad(lengths, (0, histories - len(lengths))))._replace(longest=self.longest)
        filled = [
            np.pad(inputs.ids, (0, missing)),
            np.concatenate([places, np.arange(len(places), slots)]),
            np.pad(expected, (0, slots - len(expected)), constant_values=-1),
            np.pad(seen, ((0, 0), (0, slots - seen.shape[1])), constant_values=histories),
        ]
        items, *rest = map(torch.from_numpy, filled)
        return ItemBatch(items[None], offsets, *rest, len(places))
