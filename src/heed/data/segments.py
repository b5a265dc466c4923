"""Rows for pre-training an encoder: sentences packed to a length, or pairs of document segments. A sentence is a line
of the text. A sentence too long for a row, or for half of a pair, is split into equal segments.
"""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple, Protocol

import numpy as np

from heed.data.documents import Boundaries, DocumentKind
from heed.data.readers import Line
from heed.data.streams import Stream, join_lines
from heed.vocabularies.vocabulary import Vocabulary


class Text(NamedTuple):
    """A text in memory: ids with the end token `last` after each line, and the first token of each document."""

    ids: np.ndarray
    documents: np.ndarray
    last: int


def read_text(lines: Sequence[Line], vocabulary: Vocabulary, document: DocumentKind) -> Text:
    """The text of these lines."""
    boundaries, last = Boundaries(document), vocabulary.special.last
    encoded = vocabulary.encode(list(boundaries.watch(lines)))
    return Text(join_lines(encoded, last), boundaries.starts([len(ids) + 1 for ids in encoded]), last)


class Segments:
    """The sentences of a text, none longer than `most` tokens, and their document numbers. With `paired` every
    document has at least two segments: a single sentence is split in two.
    """

    def __init__(self, text: Stream | Text, most: int, paired: bool = False):
        self.text, self.most, self.paired = text, most, paired
        ends = np.flatnonzero(text.ids == text.last)
        starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
        lengths = ends - starts
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        documents = np.searchsorted(text.documents, starts, side="right") - 1
        self.sentences, self.split = len(starts), int((lengths > most).sum())
        parts = -(-lengths // most)
        alone = self._alone(documents) & (parts == 1)
        self.too_short = int((alone & (lengths < 2)).sum()) if paired else 0  # documents of one token make no pair
        if paired:
            parts = np.where(alone, np.where(lengths < 2, 0, 2), parts)
        number = np.arange(parts.sum()) - np.repeat(parts.cumsum() - parts, parts)
        whole, count = np.repeat(lengths, parts), np.repeat(parts, parts)
        first, end = number * whole // np.maximum(count, 1), (number + 1) * whole // np.maximum(count, 1)
        self.starts, self.lengths = np.repeat(starts, parts) + first, end - first
        self.documents = np.repeat(documents, parts)

    @staticmethod
    def _alone(documents: np.ndarray) -> np.ndarray:
        """Whether each sentence is the only one of its document."""
        return np.bincount(documents, minlength=1)[documents] == 1

    def __reduce__(self):
        return Segments, (self.text, self.most, self.paired)  # another process finds them anew: that is less to send

    def __len__(self) -> int:
        return len(self.starts)

    def ids(self, number: int, first: int = 0, end: int | None = None) -> np.ndarray:
        """The tokens of a segment, or those from one to another."""
        start, length = int(self.starts[number]), int(self.lengths[number])
        return self.text.ids[start + first : start + (length if end is None else end)]

    def bounds(self) -> list[tuple[int, int]]:
        """The first segment of each document, and the one after its last."""
        first = np.flatnonzero(np.diff(self.documents, prepend=-1)).tolist()
        return list(zip(first, [*first[1:], len(self)], strict=True))


class Row(NamedTuple):
    """The parts of a row, each with the places where its sentences begin; `label` is that of a pair."""

    parts: list[np.ndarray]
    starts: list[np.ndarray]
    label: int | None = None


class RowSource(Protocol):
    """Rows of an epoch by number; they depend only on (seed, epoch). What is random in a row depends on its own seed."""

    def plan(self, seed: int, epoch: int) -> np.ndarray: ...

    def make(self, row: np.ndarray, seed: Sequence[int]) -> Row: ...


class FullSentences:
    """Sentences packed into rows across documents, with an end token between documents (RoBERTa: Liu et al., 2019).
    `room` is the number of tokens per row. With `cut`, every row but the last is full: a sentence may continue in the
    next.
    """

    def __init__(self, segments: Segments, room: int, cut: bool = False):
        self.segments, self.room, self.cut = segments, room, cut

    def __reduce__(self):
        return FullSentences, (self.segments, self.room, self.cut)

    @cached_property
    def _separated(self) -> np.ndarray:
        """Whether there is an end token before a segment."""
        return np.diff(self.segments.documents, prepend=self.segments.documents[:1]) > 0

    @cached_property
    def _ends(self) -> np.ndarray:
        """The boundaries of all segments in one text with the end tokens."""
        return np.concatenate([[0], np.cumsum(self.segments.lengths + self._separated)])

    @cached_property
    def rows(self) -> np.ndarray:
        """The start and end of each row in this text."""
        total = int(self._ends[-1])
        if self.cut:
            starts = np.arange(0, total, self.room)
            return np.stack([starts, np.minimum(starts + self.room, total)], axis=1)
        ends, separated, found, first = self._ends.tolist(), self._separated, [], 0
        while first < len(self.segments):
            start = ends[first] + int(separated[first])  # none at the beginning of a row
            after = bisect_left(ends, start + self.room + 1, first + 1) - 1
            found.append((start, ends[after]))
            first = after
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    def plan(self, seed: int, epoch: int) -> np.ndarray:
        return self.rows

    def make(self, row: np.ndarray, seed: Sequence[int]) -> Row:
        (low, high), ends = row.tolist(), self._ends
        first, after = int(np.searchsorted(ends, low, side="right")) - 1, int(np.searchsorted(ends, high))
        return _joined([part for number in range(first, after) for part in self._slice(number, low, high)])

    def _slice(self, number: int, low: int, high: int) -> list[np.ndarray]:
        """The part of a segment, and of the end token before it, that lies in a row."""
        start, separator = int(self._ends[number]), int(self._separated[number])
        first, end = max(low - start, 0), min(high, int(self._ends[number + 1])) - start
        mark = [np.array([self.segments.text.last])] if separator and first == 0 else []
        return [*mark, self.segments.ids(number, max(first - separator, 0), end - separator)]


PairKind = Literal["next", "order"]


class SegmentPairs:
    """Two texts of consecutive segments, as in BERT: segments are added until the target length, which is `room` or,
    for the share `short`, random. Longer texts are truncated.

    "next": the second text is replaced, half of the time, by one of another document, and its own begins the next
    pair. "order": the two are swapped half of the time (ALBERT). The label is 1 for a replaced or swapped text.
    Unlike in BERT's code, a leftover last segment of a document may follow the one before it.
    """

    def __init__(self, segments: Segments, room: int, kind: PairKind, short: float = 0.1):
        self.segments, self.room, self.kind, self.short = segments, room, kind, short
        if not len(segments):
            raise ValueError(f"task.pair is {kind!r}, but no document has two words: use another text")
        if kind == "next" and len(segments.bounds()) < 2:
            raise ValueError(
                "task.pair is 'next', but the text is a single document, and negative pairs come from other documents: "
                "give several files, or put blank lines between documents and set task.document to 'paragraph', or set task.pair"
            )

    def __reduce__(self):
        return SegmentPairs, (self.segments, self.room, self.kind, self.short)

    def plan(self, seed: int, epoch: int) -> np.ndarray:
        """Rows of (first, end) of the first text, (first, end) of the second, and the label."""
        # this generator is as quick as a call can be, and its floats are the same in every version of Python
        draw, bounds = random.Random(f"{seed} {epoch}").random, self.segments.bounds()
        ends = [0, *np.cumsum(self.segments.lengths).tolist()]
        found: list[tuple[int, ...]] = []
        for number, (first, stop) in enumerate(bounds):
            place = first
            while place < stop:
                alone = place == stop - 1
                place -= alone
                target = 2 + int(draw() * (self.room - 1)) if draw() < self.short else self.room
                end = min(max(bisect_left(ends, ends[place] + target, place + 1), place + 2), stop)
                middle = place + 1 + int(draw() * (end - place - 1))
                label, other = int(draw() < 0.5), (middle, end)
                if label and self.kind == "next":
                    place, middle = (stop - 1, stop) if alone else (place, middle)
                    left = max(1, target - (ends[middle] - ends[place]))
                    end, other = middle, self._other(number, left, bounds, ends, draw)
                pair = [(place, middle), other]
                one, two = pair[::-1] if label and self.kind == "order" else pair
                found.append((*one, *two, label))
                place = stop if alone else end
        return np.array(found, dtype=np.int64).reshape(-1, 5)

    @staticmethod
    def _other(number: int, target: int, bounds: list, ends: list[int], draw: Callable) -> tuple[int, int]:
        """Segments of another document, starting at a random one."""
        other = int(draw() * (len(bounds) - 1))
        first, stop = bounds[other + (other >= number)]
        start = first + int(draw() * (stop - first))
        return start, min(bisect_left(ends, ends[start] + target, start + 1), stop)

    def make(self, row: np.ndarray, seed: Sequence[int]) -> Row:
        *bounds, label = row.tolist()
        parts, starts = [], []
        for first, end in (bounds[:2], bounds[2:]):
            own = _joined([self.segments.ids(number) for number in range(first, end)])
            parts += own.parts
            starts += own.starts
        cuts = _cuts(len(parts[0]), len(parts[1]), self.room)
        if any(cuts):
            generator = np.random.default_rng(list(seed))
            for i, cut in enumerate(cuts):
                before = int(generator.binomial(cut, 0.5)) if cut else 0
                end = len(parts[i]) - (cut - before)
                parts[i] = parts[i][before:end]
                starts[i] = starts[i][(starts[i] >= before) & (starts[i] < end)] - before
        return Row(parts, starts, label)

    def tokens_cut(self, rows: np.ndarray) -> tuple[int, int]:
        """How many tokens of these rows are truncated, and how many there are."""
        ends = np.concatenate([[0], np.cumsum(self.segments.lengths)])
        sizes = ends[rows[:, 1]] - ends[rows[:, 0]] + ends[rows[:, 3]] - ends[rows[:, 2]]
        return int(np.maximum(sizes - self.room, 0).sum()), int(sizes.sum())


def _joined(parts: Sequence[np.ndarray]) -> Row:
    """A text of these parts, each of which begins a sentence."""
    starts = list(accumulate((len(part) for part in parts[:-1]), initial=0))
    return Row([parts[0] if len(parts) == 1 else np.concatenate(parts)], [np.array(starts)])


def _cuts(one: int, other: int, room: int) -> tuple[int, int]:
    """How many tokens to remove from two texts, always from the longer one, until both fit."""
    excess = max(0, one + other - room)
    first = min(excess, max(0, one - other))
    second = min(excess, max(0, other - one))
    rest = excess - first - second
    return first + rest // 2, second + rest - rest // 2  # of two that are as long, the second goes first
