"""Sentences end to end: a batch in which every slot is a token."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.ragged import Ids, RaggedRows, join, places
from heed.nn.packing import SHORT, SequenceOffsets
from heed.vocabularies.sentencepiece import MARKS
from heed.vocabularies.vocabulary import SpecialTokens

SEQUENCES = 128  # their number is filled up to a multiple of this: what is compiled for one batch serves others


class Packed(NamedTuple):
    """Sources and targets, as the decoder reads them, one row each; what it should say at each place, -1 where nothing is due."""

    source: Tensor
    valid: SequenceOffsets
    target: Tensor
    borders: SequenceOffsets
    expected: Tensor
    count: int

    def to(self, device: torch.device) -> "Packed":
        if device.type == "cpu":
            return self
        source, target, expected = (_moved(part, device) for part in (self.source, self.target, self.expected))
        valid, borders = (
            SequenceOffsets(_moved(b.starts, device), b.longest, _moved(b.positions, device))
            for b in (self.valid, self.borders)
        )
        return Packed(source, valid, target, borders, expected, self.count)

    @property
    def shape(self) -> tuple[int, ...]:
        """What two batches have in common for which the same kernels run."""
        lengths = [(len(b.starts), b.longest) for b in (self.valid, self.borders)]
        return self.source.shape[1], self.target.shape[1], *lengths[0], *lengths[1]

    def tensors(self) -> list[Tensor]:
        parts = (self.source, self.target, self.expected)
        return [*parts, *(own for b in (self.valid, self.borders) for own in (b.starts, b.positions))]

    def cloned(self) -> "Packed":
        """One of the same shape and content, in memory of its own."""
        source, target, expected, *own = (part.clone() for part in self.tensors())
        valid, borders = (
            SequenceOffsets(own[0], self.valid.longest, own[1]),
            SequenceOffsets(own[2], self.borders.longest, own[3]),
        )
        return Packed(source, valid, target, borders, expected, self.count)

    def twice(self) -> "Packed":
        """All of it a second time, after the first; what is due is still said once."""
        source, target = (part.repeat(1, 2) for part in (self.source, self.target))
        return Packed(source, self.valid.twice(), target, self.borders.twice(), self.expected, self.count)


def pack(
    source: Sequence[Ids],
    target: Sequence[Ids],
    marks: tuple[SpecialTokens, SpecialTokens] = (MARKS, MARKS),
    slots: int = 1,
) -> Packed:
    """Sentences end to end. Each side is filled up to a multiple of `slots` with sequences of padding, as many on both."""
    if not len(source):  # nothing is due: for a process without a share of a batch
        one = pack([[]], [[]], marks, slots)
        return one._replace(expected=torch.full_like(one.expected, -1), count=0)
    (sources, *lengths), (outputs, own) = _joined(join(source), marks[0]), _joined(join(target), marks[1])
    lengths.append(own)
    inputs = np.concatenate([[marks[1].first], outputs[:-1]])
    inputs[lengths[1].cumsum()[:-1]] = marks[1].first
    fills = _fills(lengths, slots)
    whole = [np.concatenate(pair) for pair in zip(lengths, fills, strict=True)]
    longest = [int(own.max()) for own in whole]
    if slots > 1:
        longest = [int(rounded(np.array(longest)).max())] * 2
    borders = [_borders(own, most, slots) for own, most in zip(whole, longest, strict=True)]
    padded = [np.pad(t, (0, int(f.sum())), constant_values=v) for t, f, v in (
        (sources, fills[0], marks[0].pad), (inputs, fills[1], marks[1].pad), (outputs, fills[1], -1))]  # fmt: skip
    tokens, given, due = map(torch.from_numpy, padded)
    return Packed(tokens[None], borders[0], given[None], borders[1], due, len(outputs))


def _joined(rows: RaggedRows, marks: SpecialTokens) -> tuple[np.ndarray, np.ndarray]:
    """All rows within their marks, end to end, and how long each is then."""
    lengths = len(marks.before) + rows.lengths + 1
    ends = lengths.cumsum()
    array = np.empty(ends[-1], dtype=np.int64)
    for i, mark in enumerate(marks.before):
        array[ends - lengths + i] = mark
    array[places(ends - 1 - rows.lengths, rows.lengths)] = rows.ids
    array[ends - 1] = marks.last
    return array, lengths


def _fills(lengths: Sequence[np.ndarray], slots: int) -> list[np.ndarray]:
    """The lengths of sequences that fill both sides up: none longer than a sentence, equally many, some of them empty."""
    fills = [-int(own.sum()) % slots for own in lengths]
    numbers = [-(-fill // int(own.max())) for fill, own in zip(fills, lengths, strict=True)]
    each = [
        np.diff(np.linspace(0, *pair).astype(np.int64)) for pair in zip(fills, [n + 1 for n in numbers], strict=True)
    ]
    return [np.pad(own, (0, max(numbers) - len(own))) for own in each]


def rounded(lengths: np.ndarray) -> np.ndarray:
    """To what lengths kernels are made for: powers of two up to that of a tile, then multiples of it."""
    powers = 1 << np.ceil(np.log2(np.clip(lengths, 16, SHORT))).astype(np.int64)
    return np.where(lengths <= SHORT, powers, -(-lengths // SHORT) * SHORT)


def _borders(lengths: np.ndarray, longest: int, slots: int) -> SequenceOffsets:
    """Where they begin; to a round number of them, of which the last are empty."""
    if slots > 1:
        lengths = np.pad(lengths, (0, -len(lengths) % SEQUENCES))
    starts = np.concatenate([[0], lengths.cumsum()])
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    return SequenceOffsets(torch.from_numpy(starts.astype(np.int32)), longest, torch.from_numpy(places))


def _moved(part: Tensor, device: torch.device) -> Tensor:
    return part.pin_memory().to(device, non_blocking=True)
