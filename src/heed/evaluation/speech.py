"""Word and character error rates, with the alignment of errors and an interval."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

SAMPLES, SEED = 1000, 0


class Edit(NamedTuple):
    """A unit of the reference and what was recognized for it; None marks a deletion or an insertion."""

    expected: str | None
    found: str | None

    @property
    def right(self) -> bool:
        return self.expected == self.found


def align(expected: Sequence[str], found: Sequence[str]) -> list[Edit]:
    """The minimum edits from one to the other, in order; substitutions are preferred."""
    cost = np.zeros((len(expected) + 1, len(found) + 1), dtype=np.int64)
    cost[:, 0], cost[0] = np.arange(len(expected) + 1), np.arange(len(found) + 1)
    for i, one in enumerate(expected, 1):
        row = np.minimum(
            cost[i - 1, 1:] + 1, cost[i - 1, :-1] + np.array([one != other for other in found], dtype=bool)
        )
        for j in range(1, len(found) + 1):
            cost[i, j] = min(row[j - 1], cost[i, j - 1] + 1)
    edits, i, j = [], len(expected), len(found)
    while i or j:
        if i and j and cost[i, j] == cost[i - 1, j - 1] + (expected[i - 1] != found[j - 1]):
            i, j = i - 1, j - 1
            edits.append(Edit(expected[i], found[j]))
        elif i and cost[i, j] == cost[i - 1, j] + 1:
            i -= 1
            edits.append(Edit(expected[i], None))
        else:
            j -= 1
            edits.append(Edit(None, found[j]))
    return edits[::-1]


@dataclass(frozen=True)
class ErrorRate:
    """Errors per reference unit in per cent, with the 95 % interval of a bootstrap over recordings."""

    rate: float
    low: float
    high: float
    units: int
    substitutions: int
    deletions: int
    insertions: int


@dataclass(frozen=True)
class SpeechScores:
    """`exact` is the share of recordings without errors, in per cent; `confused` are the most frequent wrong words."""

    wer: ErrorRate
    cer: ErrorRate
    exact: float
    recordings: int
    confused: list[tuple[str, str, int]] = field(default_factory=list)


def error_rate(edits: Sequence[Sequence[Edit]], samples: int = SAMPLES) -> ErrorRate:
    kinds = [_kinds(own) for own in edits]
    errors, units = np.array([sum(own[:3]) for own in kinds]), np.array([own[3] for own in kinds])
    drawn = np.random.default_rng(SEED).integers(0, len(edits), (samples, len(edits)))
    rates = 100 * errors[drawn].sum(axis=1) / np.maximum(1, units[drawn].sum(axis=1))
    low, high = np.percentile(rates, [2.5, 97.5])
    substituted, deleted, inserted, _ = (int(sum(column)) for column in zip(*kinds, strict=True))
    rate = 100 * int(errors.sum()) / max(1, int(units.sum()))
    return ErrorRate(rate, float(low), float(high), int(units.sum()), substituted, deleted, inserted)


def _kinds(edits: Sequence[Edit]) -> tuple[int, int, int, int]:
    """Substitutions, deletions, insertions, and the number of reference units."""
    substituted = sum(not e.right and None not in e for e in edits)
    return substituted, sum(e.found is None for e in edits), sum(e.expected is None for e in edits), sum(
        e.expected is not None for e in edits
    )  # fmt: skip


def score(
    texts: Sequence[str], references: Sequence[str], *, lowercase: bool = False, samples: int = SAMPLES
) -> SpeechScores:
    """Compare transcripts with references. Characters are those of the text, with single spaces."""
    if not references:
        raise ValueError("no recording has a reference text")
    pairs = [tuple(" ".join(text.split()) for text in pair) for pair in zip(references, texts, strict=True)]
    pairs = [(one.lower(), other.lower()) for one, other in pairs] if lowercase else pairs
    words = [align(one.split(), other.split()) for one, other in pairs]
    confused = Counter((e.expected or "", e.found or "") for own in words for e in own if not e.right)
    return SpeechScores(
        error_rate(words, samples),
        error_rate([align(one, other) for one, other in pairs], samples),
        100 * sum(one == other for one, other in pairs) / len(pairs),
        len(pairs),
        [(*pair, count) for pair, count in confused.most_common(20)],
    )
