"""Batches of labelled texts: one input per text, one per order of its parts, or one per choice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from heed.data.batching import LabelledBatch, text_inputs
from heed.data.packing import map_tensors, pack_texts, padded_offsets, to_device
from heed.nn.packing import SequenceOffsets
from heed.vocabularies.ragged import Ids
from heed.vocabularies.text_parts import join_parts, split_parts
from heed.vocabularies.vocabulary import SpecialPair

Parts = list[list[int]]
Arrange = Callable[[Parts], list[Parts]]  # from the parts of an example to its inputs
NO_LABEL = -1  # of filler; where labels are numbers, NaN


def as_given(parts: Parts) -> list[Parts]:
    return [parts]


def both_orders(parts: Parts) -> list[Parts]:
    """Both orders, for similarity, which is symmetric (Radford et al., 2018)."""
    return [parts, parts[::-1]]


def each_choice(parts: Parts) -> list[Parts]:
    """The context with each choice."""
    return [[parts[0], choice] for choice in parts[1:]]


@dataclass(frozen=True)
class CollateTexts:
    """A padded batch. Each target is one id: a label index or, with `numbers`, the bits of a number."""

    arrange: Arrange = as_given
    numbers: bool = False

    def __call__(self, source: Sequence[Ids], target: Sequence[Ids], special: SpecialPair) -> LabelledBatch:
        if self.arrange is not as_given:
            delimiter = special[0].delimiter
            inputs = (self.arrange(split_parts(np.asarray(ids).tolist(), delimiter)) for ids in source)
            source = [join_parts(parts, delimiter) for own in inputs for parts in own]
        tokens, valid, *segments = text_inputs(source, special[0])
        ids = np.array([int(label) for (label,) in target], dtype=np.int64)
        labels = ids.astype(np.uint32).view(np.float32) if self.numbers else ids
        return LabelledBatch(tokens, valid, torch.from_numpy(labels), *segments)


class PackedTexts(NamedTuple):
    """Texts in one row without padding, and the label of each sequence or of each token; filler has none. `count` is
    the number of labels.
    """

    source: Tensor
    valid: SequenceOffsets
    labels: Tensor
    segments: Tensor | None
    count: int

    to = to_device

    @property
    def inputs(self) -> tuple[Any, ...]:
        """As of a padded batch."""
        return (self.source, self.valid) if self.segments is None else (self.source, self.valid, self.segments)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches of equal shape use the same kernels."""
        return self.source.shape[1], len(self.labels), len(self.valid.starts), self.valid.longest

    def tensors(self) -> list[Tensor]:
        parts = (self.source, self.valid.starts, self.valid.positions, self.labels, self.segments)
        return [part for part in parts if part is not None]

    def clone(self) -> "PackedTexts":
        """A copy in new memory."""
        return map_tensors(self, torch.clone)


@dataclass(frozen=True)
class PackTexts:
    """The batch of `collate` without padding: tokens are filled up to a multiple of `slots`, and sequences so that
    few shapes occur. Its labels are of texts or, with `tokens`, of tokens; `empty` is the target of an empty text.
    No text has more than `most` tokens; 0: that is not known.
    """

    collate: Callable[..., LabelledBatch]
    tokens: bool = False
    empty: tuple[int, ...] = (0,)
    most: int = 0

    def __call__(
        self, source: Sequence[Ids], target: Sequence[Ids], special: SpecialPair, slots: int = 1
    ) -> PackedTexts:
        if not len(source):  # a process without a share of a batch: nothing to predict
            empty = self([[]], [self.empty], special, slots)
            return empty._replace(labels=torch.full_like(empty.labels, self._no_label), count=0)
        padded = self.collate(source, target, special)
        tokens, _, *segments = pack_texts(*padded.inputs)
        offsets = padded_offsets(padded.valid.sum(dim=1).numpy(), slots, self.most)
        filler, sequences = len(offsets.positions) - tokens.shape[1], len(offsets.starts) - 1
        own = padded.labels[padded.valid] if self.tokens else padded.labels
        missing = filler if self.tokens else sequences - len(own)
        labels = F.pad(own, (0, 0) * (own.ndim - 1) + (0, missing), value=self._no_label)
        count = int((own >= 0).sum()) if self.tokens else len(own)
        filled = (F.pad(part, (0, filler)) for part in segments)
        tokens = F.pad(tokens, (0, filler), value=special[0].pad)
        return PackedTexts(tokens, offsets, labels, next(filled, None), count)

    @property
    def _no_label(self) -> float:
        return float("nan") if getattr(self.collate, "numbers", False) else NO_LABEL


def longest_input(inputs: Sequence[Parts], delimiter: int) -> int:
    """The length of the longest input of an example, with delimiters of this length."""
    return max(sum(map(len, parts)) + delimiter * (len(parts) - 1) for parts in inputs)


def shorten(parts: Parts, room: int, delimiter: int) -> Parts:
    """The parts, truncated until they and their delimiters fit into `room`, the longest first."""
    parts = [list(part) for part in parts]
    while sum(map(len, parts)) + delimiter * (len(parts) - 1) > max(0, room) and any(parts):
        max(parts, key=len).pop()
    return parts


def _repeated(plan: Callable, inputs: int, source: np.ndarray, target: np.ndarray, *rest: int) -> list[np.ndarray]:
    return plan(source * inputs, target, *rest)


def planner(plan: Callable, inputs: int) -> Callable:
    """The batch plan for examples with several inputs, which take as many times the space."""
    return plan if inputs == 1 else partial(_repeated, plan, inputs)
