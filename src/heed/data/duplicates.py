"""Duplicate pairs of a corpus, and pairs held out for validation."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from heed.data import filters
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.vocabularies.sentencepiece import clean

SKIP_REASONS = (None, "duplicate", "held out", *(rule for rule in filters.RULES if rule != "duplicate"))


class Origin(NamedTuple):
    """What matters about a corpus for holding out pairs: its direction, and whether its pairs may be held out."""

    direction: int = 0
    genuine: bool = True


def find_skipped(
    lines: Iterable[Line],
    config: FiltersConfig,
    holdout: int = 0,
    share: float = 1.0,
    origins: Sequence[Origin] = (Origin(),),
) -> np.ndarray:
    """For each pair of a corpus an index into SKIP_REASONS: duplicate, held out for validation, or neither. Uses nine
    bytes of memory per pair. `data/cleaning.py` does the same with all rules.
    """
    hashed = (_hash_pair(line, config, origins[line.corpus]) for line in lines)
    checked = np.fromiter(hashed, dtype=[("hash", np.uint64), ("group", np.uint8)])
    repeated = find_repeated(checked["hash"])
    return choose_skipped(checked["hash"], repeated, checked["group"], config.duplicates, holdout, share)


def find_repeated(hashes: np.ndarray) -> np.ndarray:
    """Whether each hash occurred before."""
    order = np.argsort(hashes, kind="stable")
    repeated = np.zeros(len(hashes), dtype=bool)
    repeated[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    return repeated


def choose_skipped(
    hashes: np.ndarray, repeated: np.ndarray, group: np.ndarray, duplicates: bool, holdout: int, share: float
) -> np.ndarray:
    """Mark `duplicates`, if they are filtered, and pairs held out for validation. Pairs are held out by a hash of
    their text, regardless of their order; at most this `share` of the corpus, but at least one. Each `group` from 1
    on, a direction, gets its part of `holdout`; group 0 is never held out.
    """
    reasons = np.zeros(len(hashes), dtype=np.uint8)
    if duplicates:
        reasons[repeated] = 1
    groups = max(1, int(group.max(initial=0)))
    for number in range(1, 1 + groups if holdout else 1):
        candidates = np.flatnonzero((group == number) & ~repeated)
        candidates = candidates[np.argsort(hashes[candidates], kind="stable")]
        count = min(max(1, holdout // groups), max(1, int(share * len(candidates))))
        reasons[np.isin(hashes, hashes[candidates[:count]])] = 2
        reasons[repeated & (reasons == 2)] = 1
    return reasons


def pair_hash(source: str, target: str, origin: Origin = Origin()) -> int:  # noqa: B008 (it is frozen)
    """A 64-bit hash of a pair of texts; the same words may be correct in two languages."""
    direction = f"\t{origin.direction}" if origin.direction else ""
    digest = hashlib.blake2b(f"{source}\t{target}{direction}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _hash_pair(line: Line, config: FiltersConfig, origin: Origin) -> tuple[int, int]:
    """A hash of a pair, and its group: 0 if it must not be held out, because it is filtered or not genuine text."""
    source, target = clean(line.source), clean(line.target)
    good = origin.genuine and filters.rule_for_text(config, source, target) is None
    return pair_hash(source, target, origin), (1 + origin.direction) * good
