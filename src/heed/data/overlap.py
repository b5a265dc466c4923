"""How much two bags of things share: what ROUGE counts (Lin, 2004), of ids as of words."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int


class Overlap(NamedTuple):
    """Of what was said, how much was wanted; of what was wanted, how much was said; and their harmonic mean."""

    precision: Any
    recall: Any
    f1: Any


def counts(bags: Sequence[Sequence[Hashable]]) -> Int[np.ndarray, "bags things"]:
    """How often each thing is in each bag; the columns are all different things in the order of their first use."""
    number: dict[Hashable, int] = {}
    columns = [[number.setdefault(thing, len(number)) for thing in bag] for bag in bags]
    return np.array([np.bincount(row, minlength=len(number)) for row in columns], dtype=np.int64).reshape(
        len(bags), len(number)
    )


def compare(said: Int[np.ndarray, "... things"], wanted: Int[np.ndarray, "... things"]) -> Overlap:
    """The overlap of bags, given by their counts; a thing is shared as often as it is in both."""
    return measure(np.minimum(said, wanted).sum(-1), said.sum(-1), wanted.sum(-1))


def measure(shared: Any, said: Any, wanted: Any) -> Overlap:
    """The overlap, given how much is shared, said and wanted; nothing said or nothing wanted counts as 0."""
    parts = (shared / np.maximum(said, 1), shared / np.maximum(wanted, 1), 2 * shared / np.maximum(said + wanted, 1))
    return Overlap(*parts)
