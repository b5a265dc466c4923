"""Documents for language models: texts that do not attend to each other, and windows at random offsets of one long
text. A document is a part of a stream: its lines, each with its end token. Documents longer than a window are split.
Each is read as if preceded by an end token, or by the control code of its corpus.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.batching import DataPosition, plan, plan_packed, shard_mask
from heed.data.packing import map_tensors, padded_offsets, to_device
from heed.data.readers import Line
from heed.data.streams import IGNORED, Window, check_rows
from heed.data.weights import rows_of_epoch
from heed.nn.packing import SequenceOffsets

DocumentKind = Literal["file", "paragraph", "line"]


class PackedDocuments(NamedTuple):
    """Documents in one row without padding, their start positions, and the expected next token of each token."""

    tokens: Tensor
    expected: Tensor
    offsets: SequenceOffsets
    count: int

    to = to_device

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches of equal shape use the same kernels."""
        return self.tokens.shape[1], len(self.offsets.starts), self.offsets.longest

    def tensors(self) -> list[Tensor]:
        return [self.tokens, self.expected, self.offsets.starts, self.offsets.positions]

    def clone(self) -> "PackedDocuments":
        """A copy in new memory."""
        return map_tensors(self, torch.clone)


class Boundaries:
    """Records which lines begin a document. Blank lines belong to the document before them."""

    def __init__(self, kind: DocumentKind):
        self.kind = kind
        self.lines: list[int] = []
        self.corpora: list[int] = []

    def watch(self, lines: Iterable[Line]) -> Iterator[str]:
        blank, corpus = True, None
        for number, line in enumerate(lines):
            first_of_file = line.location.endswith(":1") or line.corpus != corpus
            text = bool(line.source.strip())
            begins = first_of_file or (text and (self.kind == "line" or (self.kind == "paragraph" and blank)))
            if begins or not number:
                self.lines.append(number)
                self.corpora.append(line.corpus)
            blank, corpus = not text, line.corpus
            yield line.source

    def starts(self, lengths: Sequence[int]) -> np.ndarray:
        """The first token of each document; `lengths` are the numbers of tokens per line."""
        return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)[:-1]])[self.lines]


class Pieces(NamedTuple):
    """Documents split into windows: the start and length of each piece, its prefix, and its corpus."""

    starts: np.ndarray
    lengths: np.ndarray
    before: np.ndarray
    corpora: np.ndarray
    cut: int  # how many documents were too long for one window

    def __len__(self) -> int:
        return len(self.starts)


def cut_documents(
    ids: np.ndarray,
    starts: np.ndarray,
    corpora: np.ndarray,
    window: int,
    last: int,
    codes: Sequence[int | None] = (),
) -> Pieces:
    """Split each document into windows. `codes` are the control codes of the corpora; every piece begins with its
    code. Without one, the first piece of a document follows the end token `last`, and any other the token before it.
    """
    lengths = np.diff(starts, append=len(ids))
    counts = -(-lengths // window)
    first = np.repeat(starts, counts)
    number = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)  # within its document
    begins = first + number * window
    ends = np.minimum(begins + window, np.repeat(starts + lengths, counts))
    before = np.where(number > 0, ids[begins - 1].astype(np.int64), last)
    corpus = np.repeat(corpora, counts)
    for i, code in enumerate(codes):
        if code is not None:
            before[corpus == i] = code
    return Pieces(begins, ends - begins, before, corpus, int((counts > 1).sum()))


class DocumentBatches:
    """Batches of documents, epoch after epoch: packed into one row, or padded, one per row."""

    def __init__(  # noqa: PLR0913 (the parts of a batch, each by its name)
        self,
        ids: np.ndarray,
        pieces: Pieces,
        *,
        budget: int,
        pad: int,
        seed: int = 0,
        share: tuple[int, int] = (0, 1),
        grouping: Callable = plan_packed,
        weights: Sequence[float] = (),
        slots: int = 1,
        most: int = 0,
    ):
        """Packed batches are padded to a multiple of `slots`, so that few shapes occur. No piece has more than `most`
        tokens; 0: that is not known.
        """
        self.ids, self.pieces, self.budget, self.pad, self.seed, self.share = ids, pieces, budget, pad, seed, share
        self.grouping, self.slots, self.most = grouping, slots, most
        self.weights = list(weights) if any(weight != 1 for weight in weights) else []

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The pieces of each batch; they depend only on (seed, epoch)."""
        rows = np.arange(len(self.pieces))
        if self.weights:
            counts = np.bincount(self.pieces.corpora, minlength=len(self.weights)).tolist()
            rows = rows_of_epoch(counts, self.weights, self.seed, epoch)
        lengths = self.pieces.lengths[rows]
        return [rows[own] for own in self.grouping(lengths, lengths, self.budget, self.seed, epoch)]

    def start(
        self, position: DataPosition, worker: int = 0, workers: int = 1
    ) -> Iterator[tuple[DataPosition, Window | PackedDocuments]]:
        """Batches from a position on, each with the position after it; with several workers, those of one."""
        for after, rows in islice(self._schedule(position), worker, None, workers):
            yield after, self.make(rows)

    def _schedule(self, position: DataPosition) -> Iterator[tuple[DataPosition, np.ndarray]]:
        epoch, index = position
        while True:
            planned = self.plan(epoch)
            for i in range(index, len(planned)):
                yield DataPosition(epoch, i + 1) if i + 1 < len(planned) else DataPosition(epoch + 1, 0), planned[i]
            epoch, index = epoch + 1, 0

    def make(self, rows: np.ndarray) -> Window | PackedDocuments:
        """A batch of this process's share of these pieces; if it is empty, one token that is not predicted."""
        mine = rows[shard_mask(self.pieces.lengths[rows], *self.share)]
        collate = self._packed if self.grouping is plan_packed else self._padded
        return collate(mine, self.pieces.lengths[mine])

    def _packed(self, rows: np.ndarray, lengths: np.ndarray) -> PackedDocuments:
        offsets = padded_offsets(lengths if len(rows) else np.ones(1, dtype=np.int64), self.slots, self.most)
        tokens = np.full(len(offsets.positions), self.pad, dtype=np.int64)
        expected, count = np.full_like(tokens, IGNORED), int(lengths.sum())
        indices = np.repeat(self.pieces.starts[rows], lengths) + offsets.positions.numpy()[:count]
        expected[:count] = self.ids[indices]
        tokens[1:count] = expected[: max(0, count - 1)]
        tokens[offsets.starts[: len(rows)].numpy()] = self.pieces.before[rows]
        return PackedDocuments(torch.from_numpy(tokens)[None], torch.from_numpy(expected)[None], offsets, count)

    def _padded(self, rows: np.ndarray, lengths: np.ndarray) -> Window:
        if not len(rows):
            return Window(torch.full((1, 1), self.pad), torch.full((1, 1), IGNORED), True, 0)
        place = np.arange(lengths.max())
        present = place < lengths[:, None]
        indices = np.where(present, self.pieces.starts[rows][:, None] + place, 0)
        expected = np.where(present, self.ids[indices].astype(np.int64), IGNORED)
        tokens = np.full_like(expected, self.pad)
        tokens[:, 1:] = np.where(present[:, 1:], expected[:, :-1], self.pad)
        tokens[:, 0] = self.pieces.before[rows]
        return Window(torch.from_numpy(tokens), torch.from_numpy(expected), True, int(lengths.sum()))


class CorpusRange(NamedTuple):
    """The range of a corpus in a stream, how often it is read, and its control code."""

    start: int
    end: int
    weight: float = 1.0
    code: int | None = None


class RandomWindows:
    """Windows at random offsets of one long text, as in nanoGPT: documents are concatenated. A window lies in one of
    the `corpora` (default: the whole text), sampled by tokens times weight, and begins with its code, if any. A batch
    depends only on (seed, epoch, index). An epoch has as many tokens as the text times the weights; a token may occur
    twice in it, or not at all.
    """

    def __init__(
        self,
        ids: np.ndarray,
        last: int,
        *,
        rows: int,
        length: int,
        seed: int = 0,
        share: tuple[int, int] = (0, 1),
        corpora: Sequence[CorpusRange] = (),
    ):
        check_rows(rows, length, share)
        self.ids, self.last, self.rows, self.length, self.seed, self.share = ids, last, rows, length, seed, share
        self.corpora = list(corpora) or [CorpusRange(0, len(ids))]
        for own in self.corpora:
            if own.end - own.start < length:
                raise ValueError(
                    f"a corpus has {own.end - own.start:,} tokens, but task.window is {length}: lower it, or add more "
                    "text"
                )
        amounts = np.array([(own.end - own.start) * own.weight for own in self.corpora])
        self.chances, self.batches = amounts / amounts.sum(), max(1, round(amounts.sum() / (rows * length)))

    def __len__(self) -> int:
        """The number of batches in an epoch."""
        return self.batches

    def start(self, position: DataPosition, worker: int = 0, workers: int = 1) -> Iterator[tuple[DataPosition, Window]]:
        """Batches from a position on, each with the position after it; with several workers, those of one."""
        for number in islice(range(position.epoch * len(self) + position.index, 2**62), worker, None, workers):
            yield DataPosition(*divmod(number + 1, len(self))), self.make(DataPosition(*divmod(number, len(self))))

    def make(self, position: DataPosition) -> Window:
        """The rows of one batch that belong to this process."""
        random = np.random.default_rng([self.seed, *position])
        drawn = [self.corpora[i] for i in random.choice(len(self.corpora), self.rows, p=self.chances)]
        offsets = random.integers([own.start for own in drawn], [own.end - self.length for own in drawn], endpoint=True)
        rank, world = self.share
        mine = slice(rank * (self.rows // world), (rank + 1) * (self.rows // world))
        expected = self.ids[offsets[mine, None] + np.arange(self.length)].astype(np.int64)
        tokens = np.empty_like(expected)
        tokens[:, 1:] = expected[:, :-1]
        tokens[:, 0] = [self._before(i, own) for i, own in zip(offsets[mine].tolist(), drawn[mine], strict=True)]
        return Window(torch.from_numpy(tokens), torch.from_numpy(expected), True, expected.size)

    def _before(self, offset: int, corpus: CorpusRange) -> int:
        """The token before a window: a code, the preceding token or, at the beginning, the end token."""
        if corpus.code is not None:
            return corpus.code
        return int(self.ids[offset - 1]) if offset > corpus.start else self.last


def one_epoch(ids: np.ndarray, pieces: Pieces, budget: int, pad: int) -> Iterator[Window]:
    """Every piece once, in padded batches of similar lengths."""
    batches = DocumentBatches(ids, pieces, budget=budget, pad=pad, grouping=plan)
    return map(batches.make, batches.plan(0))
