"""Packed batches: sentences concatenated without padding."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.nn.packing import SHORT, SequenceOffsets
from heed.vocabularies.ragged import Ids, RaggedRows, as_ragged, slice_indices
from heed.vocabularies.sentencepiece import SPECIAL_PAIR
from heed.vocabularies.vocabulary import SpecialPair, SpecialTokens

SEQUENCES = 128  # the number of sequences is rounded up to a multiple of this, so that batches can share a CUDA graph


def map_tensors(part: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Apply a function to the tensors of a batch, including those in nested named tuples."""
    if isinstance(part, tuple):
        return part._make(map_tensors(each, function) for each in part)
    return function(part) if isinstance(part, Tensor) else part


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch on a device; from pinned memory, so that the copy does not block."""
    if device.type == "cpu":
        return batch
    return map_tensors(batch, lambda tensor: tensor.pin_memory().to(device, non_blocking=True))


class Packed(NamedTuple):
    """Source tokens and decoder inputs, one row each, and the expected token at each target position, -1 at padding."""

    source: Tensor
    valid: SequenceOffsets
    target: Tensor
    offsets: SequenceOffsets
    expected: Tensor
    count: int

    to = to_device

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches of equal shape use the same kernels."""
        lengths = [(len(b.starts), b.longest) for b in (self.valid, self.offsets)]
        return self.source.shape[1], self.target.shape[1], *lengths[0], *lengths[1]

    def tensors(self) -> list[Tensor]:
        parts = (self.source, self.target, self.expected)
        return [*parts, *(part for b in (self.valid, self.offsets) for part in (b.starts, b.positions))]

    def clone(self) -> "Packed":
        """A copy in new memory."""
        return map_tensors(self, torch.clone)

    def twice(self) -> "Packed":
        """The sequences twice, for two passes in one (R-Drop); `expected` is not repeated."""
        source, target = (part.repeat(1, 2) for part in (self.source, self.target))
        return Packed(source, self.valid.twice(), target, self.offsets.twice(), self.expected, self.count)


def pack(source: Sequence[Ids], target: Sequence[Ids], special: SpecialPair = SPECIAL_PAIR, slots: int = 1) -> Packed:
    """Pack sentences. Both sides are padded to a multiple of `slots` with equally many filler sequences."""
    if not len(source):  # a process without a share of a batch: nothing to predict
        empty = pack([[]], [[]], special, slots)
        return empty._replace(expected=torch.full_like(empty.expected, -1), count=0)
    sources, source_lengths = _concatenate(as_ragged(source), special[0])
    outputs, target_lengths = _concatenate(as_ragged(target), special[1])
    inputs = np.concatenate([[special[1].first], outputs[:-1]])
    inputs[target_lengths.cumsum()[:-1]] = special[1].first
    fillers = _filler_lengths((source_lengths, target_lengths), slots)
    lengths = [np.concatenate(pair) for pair in zip((source_lengths, target_lengths), fillers, strict=True)]
    longest = [int(side.max()) for side in lengths]
    if slots > 1:
        longest = [int(kernel_lengths(np.array(longest)).max())] * 2
    offsets = [_offsets(side, most, slots) for side, most in zip(lengths, longest, strict=True)]
    padded = [np.pad(t, (0, int(f.sum())), constant_values=v) for t, f, v in (
        (sources, fillers[0], special[0].pad), (inputs, fillers[1], special[1].pad), (outputs, fillers[1], -1))]  # fmt: skip
    tokens, decoder_inputs, expected = map(torch.from_numpy, padded)
    return Packed(tokens[None], offsets[0], decoder_inputs[None], offsets[1], expected, len(outputs))


def _concatenate(rows: RaggedRows, special: SpecialTokens) -> tuple[np.ndarray, np.ndarray]:
    """All rows with their special tokens in one array, and their lengths."""
    lengths = len(special.before) + rows.lengths + 1
    ends = lengths.cumsum()
    array = np.empty(ends[-1], dtype=np.int64)
    for i, mark in enumerate(special.before):
        array[ends - lengths + i] = mark
    array[slice_indices(ends - 1 - rows.lengths, rows.lengths)] = rows.ids
    array[ends - 1] = special.last
    return array, lengths


def _filler_lengths(lengths: Sequence[np.ndarray], slots: int) -> list[np.ndarray]:
    """The lengths of filler sequences: none longer than a sentence, equally many on both sides, some of them empty."""
    missing = [-int(side.sum()) % slots for side in lengths]
    counts = [-(-fill // int(side.max())) for fill, side in zip(missing, lengths, strict=True)]
    ends = [np.linspace(0, fill, count + 1).astype(np.int64) for fill, count in zip(missing, counts, strict=True)]
    return [np.pad(np.diff(side), (0, max(counts) + 1 - len(side))) for side in ends]


def kernel_lengths(lengths: np.ndarray) -> np.ndarray:
    """Round lengths up to those that kernels are compiled for: powers of two up to a tile, then multiples of it."""
    powers = 1 << np.ceil(np.log2(np.clip(lengths, 16, SHORT))).astype(np.int64)
    return np.where(lengths <= SHORT, powers, -(-lengths // SHORT) * SHORT)


def padded_offsets(lengths: np.ndarray, slots: int, most: int = 0) -> SequenceOffsets:
    """The offsets of sequences and of the filler after them, which makes the number of tokens a multiple of `slots`. If
    it is known that no sequence of any batch is longer than `most`, their upper bound is not either.
    """
    (filler,) = _filler_lengths((lengths,), slots)
    longest = int(lengths.max())
    if slots > 1:
        rounded = int(kernel_lengths(np.array([longest])).max())
        longest = max(longest, min(rounded, most or rounded))
    return _offsets(np.concatenate([lengths, filler]) if slots > 1 else lengths, longest, slots)


def offsets_of(lengths: np.ndarray) -> SequenceOffsets:
    """The offsets of concatenated sequences of these lengths."""
    return _offsets(lengths, int(lengths.max()), 1)


def _offsets(lengths: np.ndarray, longest: int, slots: int) -> SequenceOffsets:
    """The offsets of sequences; with `slots`, padded to a multiple of them with empty sequences."""
    if slots > 1:
        lengths = np.pad(lengths, (0, -len(lengths) % SEQUENCES))
    starts = np.concatenate([[0], lengths.cumsum()])
    positions = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    return SequenceOffsets(torch.from_numpy(starts.astype(np.int32)), longest, torch.from_numpy(positions))


def pack_texts(tokens: Tensor, valid: Tensor, *segments: Tensor) -> tuple:
    """Padded texts in one row without the padding; their offsets; and their segments."""
    offsets = offsets_of(valid.sum(dim=1).numpy())
    return (tokens[valid][None], offsets, *(part[valid][None] for part in segments))
