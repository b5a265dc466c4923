"""Korean-English pairs for tests, as the first edition of the phrasebook drew them.

Small models with random weights are tuned to these texts (which of them loops, which ends early), so they stay when the
phrasebook changes.
"""

from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """A Korean sentence and its English."""

    source: str
    target: str


@cache
def _all(split: str) -> list[Pair]:
    lines = Path(__file__).with_suffix(".tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [Pair(source, target) for own, source, target in rows if own == split]


def pairs(split: str, count: int) -> list[Pair]:
    """The first `count` pairs of a split ('train', 'valid', 'test')."""
    found = list(islice(_all(split), count))
    assert len(found) == count, f"there are {len(found)} pairs of {split}"
    return found
