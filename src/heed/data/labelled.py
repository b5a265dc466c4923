"""Batches of labelled texts: one input per text, one per order of its parts, or one per choice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from heed.data.batching import LabelledBatch, text_inputs
from heed.vocabularies.ragged import Ids
from heed.vocabularies.text_parts import join_parts, split_parts
from heed.vocabularies.vocabulary import SpecialPair

Parts = list[list[int]]
Arrange = Callable[[Parts], list[Parts]]  # from the parts of an example to its inputs


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
