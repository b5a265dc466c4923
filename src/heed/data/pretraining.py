"""Batches of rows with masked words: each has the same shape, and depends on (seed, epoch, index) alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.batching import DataPosition
from heed.data.masking import Masking
from heed.data.packing import map_tensors, to_device
from heed.data.segments import Row, RowSource
from heed.data.streams import IGNORED
from heed.vocabularies.vocabulary import SpecialTokens


class MaskedBatch(NamedTuple):
    """Corrupted rows, and the token that is expected at each of the `positions` of the flattened (b, t) rows.

    There are as many positions in every batch: IGNORED are those that no token was hidden at. `valid` is None where no row is padded,
    `segments` where a model tells no texts apart, `labels` (IGNORED: none) where there are no pairs. `count` hidden tokens.
    """

    tokens: Tensor
    valid: Tensor | None
    segments: Tensor | None
    positions: Tensor
    expected: Tensor
    labels: Tensor | None
    count: int

    to = to_device

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches of equal shape run the same kernels."""
        return *self.tokens.shape, len(self.positions), *(part is not None for part in self[1:3]), self.labels is not None

    def tensors(self) -> list[Tensor]:
        return [part for part in self[:-1] if part is not None]

    def clone(self) -> "MaskedBatch":
        """A copy in new memory."""
        return map_tensors(self, torch.clone)

    def originals(self) -> Tensor:
        """The rows as they were before words were hidden."""
        hidden = self.expected >= 0
        return self.tokens.flatten().scatter(0, self.positions[hidden], self.expected[hidden]).view_as(self.tokens)


@dataclass(frozen=True)
class RowShape:
    """How a row is laid out: `length` tokens, the special ones among them; with `told_apart`, texts have segment ids."""

    special: SpecialTokens
    length: int
    paired: bool = False
    told_apart: bool = False

    @property
    def room(self) -> int:
        """For how many tokens of text a row has room."""
        return self.length - len(self.special.before) - 1 - self.paired * len(self.special.delimiter)

    def lay_out(self, row: Row) -> tuple[np.ndarray, np.ndarray, int]:
        """The tokens of a row, where its sentences begin, and where its first text ends."""
        special, between = self.special, self.special.delimiter
        ids: list = [np.array(special.before), *row.parts[:1]]
        starts: list = [np.zeros(len(special.before), dtype=bool), *row.starts[:1]]
        for part, begins in zip(row.parts[1:], row.starts[1:], strict=True):
            ids += [np.array(between), part]
            starts += [np.zeros(len(between), dtype=bool), begins]
        first = sum(map(len, ids[: 3 if len(row.parts) > 1 else 2])) + (len(row.parts) == 1)
        return np.concatenate([*ids, [special.last]]).astype(np.int64), np.concatenate([*starts, [False]]), first


class MaskedBatches:
    """Batches of `rows` rows, epoch after epoch; the last of an epoch is filled up with rows of padding that do not count.

    `share` is (rank, processes). Without `dynamic` every epoch corrupts a row in the same way.
    """

    def __init__(
        self,
        source: RowSource,
        masking: Masking,
        shape: RowShape,
        *,
        rows: int,
        seed: int = 0,
        share: tuple[int, int] = (0, 1),
        dynamic: bool = True,
    ):
        if rows < 1 or rows % share[1]:
            processes = f", a multiple of {share[1]} of them," if share[1] > 1 else ""
            raise ValueError(
                f"training.batch_tokens is for {rows} rows of {shape.length} tokens; set it so that there is one{processes} at "
                "least, or set task.length lower"
            )
        self.source, self.masking, self.shape, self.rows = source, masking, shape, rows
        self.seed, self.share, self.dynamic = seed, share, dynamic
        self.predictions = int(masking.share * shape.room) + 1  # the most of a row

    def start(self, position: DataPosition, worker: int = 0, workers: int = 1) -> Iterator[tuple[DataPosition, MaskedBatch]]:
        """Batches from a position on, each with the position after it; of several workers, those of one."""
        for after, planned, numbers, epoch in islice(self._schedule(position), worker, None, workers):
            yield after, self.make(planned, numbers, epoch)

    def _schedule(self, position: DataPosition) -> Iterator[tuple[DataPosition, np.ndarray, np.ndarray, int]]:
        """For each batch the position after it, the rows of its epoch, which of them it has, and the epoch."""
        epoch, index = position
        while True:
            planned, order = self.plan(epoch)
            batches = -(-len(order) // self.rows)
            for i in range(index, batches):
                after = DataPosition(epoch, i + 1) if i + 1 < batches else DataPosition(epoch + 1, 0)
                yield after, planned, order[i * self.rows : (i + 1) * self.rows], epoch
            epoch, index = epoch + 1, 0

    def plan(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of an epoch, and their order."""
        planned = self.source.plan(self.seed, epoch if self.dynamic else 0)
        return planned, np.random.default_rng([self.seed, epoch]).permutation(len(planned))

    def make(self, planned: np.ndarray, numbers: np.ndarray, epoch: int) -> MaskedBatch:
        """A batch of this process's share of the rows with these numbers."""
        (rank, world), length, pad = self.share, self.shape.length, self.shape.special.pad
        size = self.rows // world
        mine = numbers[rank * size : (rank + 1) * size].tolist()
        tokens, valid = np.full((size, length), pad, dtype=np.int64), np.zeros((size, length), dtype=bool)
        valid[len(mine) :] = True  # attention over no keys is undefined
        segments, labels = np.zeros_like(tokens), np.full(size, IGNORED, dtype=np.int64)
        positions = np.zeros((size, self.predictions), dtype=np.int64)
        expected = np.full_like(positions, IGNORED)
        for i, number in enumerate(mine):
            generator = np.random.default_rng([self.seed, epoch if self.dynamic else 0, number + 1])
            row = self.source.make(planned[number], generator)
            ids, starts, end_of_first = self.shape.lay_out(row)
            tokens[i, : len(ids)], hidden = self.masking(ids, starts, generator)
            positions[i, : len(hidden)], expected[i, : len(hidden)] = i * length + hidden, ids[hidden]
            valid[i, : len(ids)], segments[i, end_of_first : len(ids)] = True, 1
            labels[i] = IGNORED if row.label is None else row.label
        shape, whole = self.shape, valid.all()
        return MaskedBatch(
            torch.from_numpy(tokens),
            None if whole else torch.from_numpy(valid),
            torch.from_numpy(segments) if shape.paired and shape.told_apart else None,
            torch.from_numpy(positions.ravel()),
            torch.from_numpy(expected.ravel()),
            torch.from_numpy(labels) if shape.paired else None,
            int((expected >= 0).sum()),
        )
