"""Scores of taggers by entity, as in conlleval and seqeval: an entity is correct if its type, start and end are."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from heed.data.entities import Entity, entities

Labels = Sequence[str]
COUNTS = ("right", "found", "expected", "right words", "words")


def sentence_counts(found: Labels, expected: Labels) -> list[int]:
    """For one sentence: correct, found and expected entities; correctly labelled words, and words."""
    ours, theirs = set(entities(found)), set(entities(expected))
    right = sum(one == other for one, other in zip(found, expected, strict=True))
    return [len(ours & theirs), len(ours), len(theirs), right, len(expected)]


def count(found: Sequence[Labels], expected: Sequence[Labels]) -> Int[np.ndarray, "n 5"]:
    rows = [sentence_counts(*pair) for pair in zip(found, expected, strict=True)]
    return np.array(rows, dtype=np.int64).reshape(-1, len(COUNTS))


def measure(counts: Int[np.ndarray, "n 5"], _: np.ndarray | None = None) -> dict[str, float]:
    """Scores from the counts of sentences, which the bootstrap resamples."""
    right, found, expected, right_words, words = counts.sum(axis=0).tolist()
    return {**_entity_scores(right, found, expected), "accuracy": _per_cent(right_words, words)}


def type_scores(found: Sequence[Labels], expected: Sequence[Labels]) -> dict[str, dict[str, float]]:
    """The scores of each type, and how many of its entities are expected."""
    ours, theirs = _by_type(found), _by_type(expected)
    return {
        kind: _entity_scores(len(own & other), len(own), len(other)) | {"entities": len(other)}
        for kind in sorted(ours | theirs)
        for own, other in [(ours.get(kind, set()), theirs.get(kind, set()))]
    }


def _by_type(labels: Sequence[Labels]) -> dict[str, set[tuple[int, Entity]]]:
    found: dict[str, set[tuple[int, Entity]]] = {}
    for number, own in enumerate(labels):
        for one in entities(own):
            found.setdefault(one.type, set()).add((number, one))
    return found


def _entity_scores(right: int, found: int, expected: int) -> dict[str, float]:
    return {
        "f1": _per_cent(2 * right, found + expected),
        "precision": _per_cent(right, found),
        "recall": _per_cent(right, expected),
    }


def _per_cent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
