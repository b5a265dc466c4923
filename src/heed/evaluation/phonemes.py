"""Phoneme error rate and word accuracy of pronunciations."""

from collections.abc import Sequence
from dataclasses import dataclass

from heed.evaluation.speech import SAMPLES, ErrorRate, align, error_rate


@dataclass(frozen=True)
class PhonemeScores:
    """Phoneme error rate, and the share of correct words, both in per cent."""

    per: ErrorRate
    accuracy: float
    words: int


def score(found: Sequence[str], references: Sequence[Sequence[str]], samples: int = SAMPLES) -> PhonemeScores:
    """Each line has the phonemes of a word, separated by spaces; of several references the nearest counts."""
    if len({len(found), *map(len, references)}) != 1 or not found:
        raise ValueError("there must be as many references as pronunciations, and at least one")
    edits = []
    for own, *given in zip(found, *references, strict=True):
        every = [align(right.split(), own.split()) for right in dict.fromkeys(given)]
        edits.append(min(every, key=lambda one: sum(not edit.right for edit in one)))
    right = sum(all(edit.right for edit in one) for one in edits)
    return PhonemeScores(error_rate(edits, samples), 100 * right / len(edits), len(edits))
