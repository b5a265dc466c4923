"""Batches of rows with masked words, all of the same shape; they depend only on (seed, epoch, index)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.batching import DataPosition
from heed.data.documents import DocumentKind
from heed.data.masking import Masking, ordinary_ids, uniform, word_starts
from heed.data.noise import check_share, check_total
from heed.data.packing import map_tensors, pack_texts, to_device
from heed.data.segments import FullSentences, Row, RowSource, SegmentPairs, Segments, Text
from heed.data.streams import IGNORED, Stream
from heed.nn.packing import SequenceOffsets
from heed.vocabularies.text_parts import plain
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary


@dataclass(frozen=True)
class RowSettings:
    """How text is packed into rows, and which of their words are hidden."""

    length: int = 128  # row length in tokens, including special tokens
    document: DocumentKind = "paragraph"  # what is a document: a file, lines separated by blank lines, or a single line
    cut_sentences: bool = False  # fill every row: sentences may continue in the next; not for pairs
    halvings: int = 0  # train also on rows of half the length, a quarter and so on: so many shorter lengths, in turn
    share: float = 0.15  # share of tokens to predict
    masked: float = 0.8  # share of these replaced by the mask
    random: float = 0.1  # share of these replaced by a random token; the rest is unchanged
    dynamic: bool = True  # dynamic masking: mask different tokens in every epoch
    whole_words: bool = False  # whole-word masking
    spans: bool = False  # mask spans, 3.8 words on average (SpanBERT)

    pair: ClassVar[str] = "none"
    short: ClassVar[float] = 0.0

    def __post_init__(self):
        if self.length < 8:
            raise ValueError(f"task.length is {self.length}; it must be at least 8")
        for name in ("share", "masked", "random", "short"):
            check_share(name, getattr(self, name))
        check_total({"masked": self.masked, "random": self.random})
        for name in ("cut_sentences", "halvings"):
            if getattr(self, name) and self.pair != "none":
                raise ValueError(
                    f"task.{name} is for single-segment rows, and task.pair is {self.pair!r}: set one of them"
                )
        if self.halvings < 0:
            raise ValueError(f"task.halvings is {self.halvings}; it must be at least 0")
        if self.length >> self.halvings < 8 or self.length % 2**self.halvings:
            raise ValueError(
                f"task.halvings is {self.halvings}, but rows of {self.length} tokens (task.length) cannot be halved so "
                "often: the shortest must be a whole number of tokens, at least 8"
            )

    @property
    def lengths(self) -> list[int]:
        """Those of rows, the longest first."""
        return [self.length // 2**i for i in range(self.halvings + 1)]


@dataclass(frozen=True)
class PairSettings(RowSettings):
    """The same for rows that may be pairs."""

    pair: Literal["none", "next", "order"] = (
        "none"  # sentence-pair objective: next-sentence or sentence-order prediction
    )
    short: float = 0.1  # share of pairs with a random target length


class MaskedBatch(NamedTuple):
    """Corrupted rows, and the expected token at each of the `positions` of the flattened (b, t) rows. Every batch has
    the same number of positions: unused ones expect IGNORED. `valid` is None if no row is padded, and the offsets of
    rows that are `packed` one after the other; `segments` is None if the
    model has none, `labels` (IGNORED: none) if there are no pairs. `count` tokens are hidden, in `rows` rows of
    `size` tokens.
    """

    tokens: Tensor
    valid: Tensor | SequenceOffsets | None
    segments: Tensor | None
    positions: Tensor
    expected: Tensor
    labels: Tensor | None
    count: int
    rows: int
    size: int

    to = to_device

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches of equal shape use the same kernels."""
        return (
            *self.tokens.shape,
            len(self.positions),
            *(part is not None for part in self[1:3]),
            self.labels is not None,
        )

    def tensors(self) -> list[Tensor]:
        return [part for part in self[:6] if part is not None]

    def clone(self) -> "MaskedBatch":
        """A copy in new memory."""
        return map_tensors(self, torch.clone)

    def packed(self) -> "MaskedBatch":
        """The same rows one after the other, without their padding."""
        if self.valid is None:
            return self
        tokens, offsets, *segments = pack_texts(
            self.tokens, self.valid, *self[2:3] if self.segments is not None else ()
        )
        places = self.valid.flatten().cumsum(dim=0) - 1  # unused positions are the first token of the first row
        return self._replace(
            tokens=tokens, valid=offsets, segments=next(iter(segments), None), positions=places[self.positions]
        )

    def filled(self, words: Tensor) -> Tensor:
        """The rows with other words at the hidden positions; with the expected ones, the original rows."""
        flat = (
            self.tokens.flatten()
        )  # positions that are left over keep what is there: shapes do not depend on their number
        return flat.scatter(0, self.positions, torch.where(self.expected >= 0, words, flat[self.positions])).view_as(
            self.tokens
        )


@dataclass(frozen=True)
class RowShape:
    """The layout of a row: `length` tokens, including special tokens."""

    special: SpecialTokens
    length: int
    paired: bool = False

    @property
    def room(self) -> int:
        """The number of text tokens that fit in a row."""
        return self.length - len(self.special.before) - 1 - self.paired * len(self.special.delimiter)

    def lay_out(self, row: Row, tokens: np.ndarray, starts: np.ndarray) -> tuple[int, int]:
        """Write the tokens of a row, and where its sentences begin; where its first text ends, and where the row does."""
        special, place, first = self.special, 0, 0
        for number, part in enumerate(row.parts):
            between = special.delimiter if number else special.before
            tokens[place : place + len(between)] = between
            place += len(between)
            first = first or (place if number else 0)
            tokens[place : place + len(part)] = part
            starts[place + row.starts[number]] = True
            place += len(part)
        tokens[place] = special.last
        return first or place + 1, place + 1


class MaskedBatches:
    """Batches of `rows` rows, epoch after epoch; the last of an epoch is filled with padding rows that are ignored.
    `share` is (rank, world size). Without `dynamic` every epoch corrupts a row in the same way. With `packed`, rows
    have no padding.
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
        packed: bool = False,
    ):
        if rows < 1 or rows % share[1]:
            processes = f", and a multiple of {share[1]}" if share[1] > 1 else ""
            raise ValueError(
                f"training.batch_tokens is for {rows} rows of {shape.length} tokens; raise it to fit at least "
                f"one{processes}, or lower task.length"
            )
        self.source, self.masking, self.shape, self.rows = source, masking, shape, rows
        self.seed, self.share, self.dynamic, self.packed = seed, share, dynamic, packed
        self.predictions = int(masking.share * shape.room) + 1  # the most of a row

    def start(
        self, position: DataPosition, worker: int = 0, workers: int = 1
    ) -> Iterator[tuple[DataPosition, MaskedBatch]]:
        """Batches from a position on, each with the position after it; with several workers, those of one."""
        for after, planned, numbers, epoch in islice(self.schedule(position), worker, None, workers):
            yield after, self.make(planned, numbers, epoch)

    def schedule(self, position: DataPosition) -> Iterator[tuple[DataPosition, np.ndarray, np.ndarray, int]]:
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
        mine = numbers[rank * size : (rank + 1) * size]
        tokens, starts = np.full((size, length), pad, dtype=np.int64), np.zeros((size, length), dtype=bool)
        labels, ends = np.full(size, IGNORED, dtype=np.int64), np.zeros((size, 2), dtype=np.int64)
        seed = (self.seed, epoch if self.dynamic else 0)
        for i, number in enumerate(mine.tolist()):
            row = self.source.make(planned[number], (*seed, number + 1))
            ends[i] = self.shape.lay_out(row, tokens[i], starts[i])
            labels[i] = IGNORED if row.label is None else row.label
        corrupted, positions, expected = self._hide(tokens, starts, ends[:, 1], mine, seed)
        places = np.arange(length)
        valid, segments = places < ends[:, 1:], ((places >= ends[:, :1]) & (places < ends[:, 1:])).astype(np.int64)
        valid[len(mine) :, 0] = True  # attention over no keys is undefined
        shape = self.shape
        made = MaskedBatch(
            torch.from_numpy(corrupted),
            None if valid.all() else torch.from_numpy(valid),
            torch.from_numpy(segments) if shape.paired and shape.special.segments else None,
            torch.from_numpy(positions.ravel()),
            torch.from_numpy(expected.ravel()),
            torch.from_numpy(labels) if shape.paired else None,
            int((expected >= 0).sum()),
            len(mine),
            int(valid[: len(mine)].sum()),
        )
        return made.packed() if self.packed else made

    def _hide(
        self, tokens: np.ndarray, starts: np.ndarray, ends: np.ndarray, numbers: np.ndarray, seed: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The corrupted rows, the hidden positions in the flattened rows, and the tokens that were there."""
        size, length = tokens.shape
        corrupted, positions = tokens.copy(), np.zeros((size, self.predictions), dtype=np.int64)
        hidden = np.zeros(positions.shape, dtype=bool)
        if self.masking.word_starts is None:
            count = len(numbers)
            drawn = uniform(seed, numbers, self.masking.draws(length))
            corrupted[:count], chosen, used = self.masking.rows(tokens[:count], drawn)
            hidden[:count] = used[:, : self.predictions]
            positions[hidden] = chosen[:, : self.predictions][hidden[:count]]
        else:
            for i, number in enumerate(numbers.tolist()):
                generator, end = np.random.default_rng([*seed, number + 1]), ends[i]
                corrupted[i, :end], chosen = self.masking(tokens[i, :end], starts[i, :end], generator)
                positions[i, : len(chosen)], hidden[i, : len(chosen)] = chosen, True
        expected = np.where(hidden, np.take_along_axis(tokens, positions, axis=1), IGNORED)
        return corrupted, np.where(hidden, positions + length * np.arange(size)[:, None], 0), expected

    @cached_property
    def per_epoch(self) -> int:
        """The number of batches of an epoch, unless rows are pairs, of which every epoch has its own."""
        return -(-len(self.source.plan(self.seed, 0)) // self.rows)

    def one_epoch(self) -> Iterator[MaskedBatch]:
        """All rows once."""
        planned, order = self.plan(0)
        for start in range(0, len(order), self.rows):
            yield self.make(planned, order[start : start + self.rows], 0)


class AlternatingBatches:
    """Batches of several kinds in turn. An epoch has as many as one of the first kind, so each kind goes through a part
    of its own epoch.
    """

    def __init__(self, kinds: Sequence[MaskedBatches]):
        self.kinds = kinds

    def start(
        self, position: DataPosition, worker: int = 0, workers: int = 1
    ) -> Iterator[tuple[DataPosition, MaskedBatch]]:
        """As those of one kind."""
        for after, kind, planned in islice(self._schedule(position), worker, None, workers):
            yield after, kind.make(*planned)

    def _schedule(
        self, position: DataPosition
    ) -> Iterator[tuple[DataPosition, MaskedBatches, tuple[np.ndarray, np.ndarray, int]]]:
        """For each batch the position after it, its kind, and what it is made of."""
        batches, turns = self.kinds[0].per_epoch, len(self.kinds)
        number = position.epoch * batches + position.index
        schedules = []
        for turn, kind in enumerate(self.kinds):
            earlier = -((turn - number) // turns)  # batches of this kind before this position
            schedules.append(kind.schedule(DataPosition(*divmod(earlier, kind.per_epoch))))
        while True:
            turn, number = number % turns, number + 1
            _, *planned = next(schedules[turn])
            yield DataPosition(*divmod(number, batches)), self.kinds[turn], tuple(planned)


def training_batches(
    text: Stream | Text, vocabulary: Vocabulary, settings: RowSettings, **options: Any
) -> MaskedBatches | AlternatingBatches:
    """Those of `masked_batches`, of each length in turn if the settings have several."""
    kinds = [
        masked_batches(text, vocabulary, replace(settings, length=length, halvings=0), **options)
        for length in settings.lengths
    ]
    return AlternatingBatches(kinds) if settings.halvings else kinds[0]


def masked_batches(
    text: Stream | Text,
    vocabulary: Vocabulary,
    settings: RowSettings,
    *,
    batch_tokens: int,
    seed: int = 0,
    share: tuple[int, int] = (0, 1),
    packed: bool = False,
) -> MaskedBatches:
    """The batches of a text according to the settings; all rows have `settings.length` tokens."""
    s, words, paired = settings, plain(vocabulary), settings.pair != "none"
    shape = RowShape(words.special, s.length, paired)
    if paired:
        source: RowSource = SegmentPairs(Segments(text, shape.room // 2, paired=True), shape.room, s.pair, s.short)
    else:
        source = FullSentences(Segments(text, shape.room), shape.room, s.cut_sentences)
    starts = word_starts(words) if s.whole_words or s.spans else None
    masking = Masking(words.special.mask, ordinary_ids(words), starts, s.share, s.masked, s.random, s.spans)
    return MaskedBatches(
        source, masking, shape, rows=batch_tokens // s.length, seed=seed, share=share, dynamic=s.dynamic, packed=packed
    )
