"""The overlap of two bags of ids or n-grams, as in ROUGE (Lin, 2004)."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int


class Overlap(NamedTuple):
    """Precision, recall, and their harmonic mean."""

    precision: Any
    recall: Any
    f1: Any


def bag_counts(bags: Sequence[Sequence[Hashable]]) -> Int[np.ndarray, "bags things"]:
    """The count of each item in each bag; columns are distinct items in order of first occurrence."""
    number: dict[Hashable, int] = {}
    columns = [[number.setdefault(thing, len(number)) for thing in bag] for bag in bags]
    counts = [np.bincount(row, minlength=len(number)) for row in columns]
    return np.array(counts, dtype=np.int64).reshape(len(bags), len(number))


def overlap_of_counts(predicted: Int[np.ndarray, "... things"], reference: Int[np.ndarray, "... things"]) -> Overlap:
    """The overlap of bags given as counts; an item is shared as often as it is in both."""
    return overlap(np.minimum(predicted, reference).sum(-1), predicted.sum(-1), reference.sum(-1))


def overlap(shared: Any, predicted: Any, reference: Any) -> Overlap:
    """The overlap, given the numbers of shared, predicted and reference items; 0 if a bag is empty."""
    precision, recall = shared / np.maximum(predicted, 1), shared / np.maximum(reference, 1)
    return Overlap(precision, recall, 2 * shared / np.maximum(predicted + reference, 1))
