"""Pairs whose target belongs to the previous or next line, found with a lexicon learned from the corpus. The lexicon
is IBM model 1 (Brown et al., 1993). The score of a pair is how much more likely its target is given its source than
alone, in nats per subword.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heed.data.shortlist import expected_counts
from heed.vocabularies.ragged import RaggedRows, as_ragged, slice_indices

SLOTS = 1 << 22  # of the hashed lexicon
DISCOUNT = 1.0  # what a pair of subwords was seen once for, it was perhaps seen for by a misaligned pair alone
FLOOR = 0.05  # the share of a target subword's probability that does not depend on the source
MAX_TOKENS = 48  # of a side: more make no difference
BLOCK_ROWS = 4000
LEARNING_ROWS = 20_000  # counted together
MAX_CELLS = 24_000_000  # pairs of subwords to learn from
MAX_OWN = 0.6  # nats: a pair that fits better than this is kept
MIN_GAIN = 0.7  # nats by which a neighbour fits better


class Lexicon(NamedTuple):
    """p(target | source) of subword pairs in a hashed table, and p(target)."""

    keys: np.ndarray
    values: np.ndarray
    unigrams: np.ndarray
    vocab_size: int

    def scores(self, sources: RaggedRows, targets: RaggedRows) -> np.ndarray:
        """For each pair the mean over target subwords of log p(t | source) - log p(t)."""
        counts = np.repeat(sources.lengths, targets.lengths)
        starts = np.repeat(sources.ends - sources.lengths, targets.lengths)
        codes = sources.ids[slice_indices(starts, counts)] * self.vocab_size + np.repeat(targets.ids, counts)
        slots = _slots(codes)
        found = np.where(self.keys[slots] == codes, self.values[slots], 0)
        sums = np.concatenate([[0.0], np.cumsum(found, dtype=np.float64)])
        ends = np.cumsum(counts)
        translated = (sums[ends] - sums[ends - counts]) / np.maximum(counts, 1)
        ratios = np.log(FLOOR + (1 - FLOOR) * translated / self.unigrams[targets.ids])
        sums = np.concatenate([[0.0], np.cumsum(ratios)])
        return (sums[targets.ends] - sums[targets.ends - targets.lengths]) / np.maximum(targets.lengths, 1)


def learn(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], sizes: tuple[int, int]) -> Lexicon:
    """A lexicon from the ids of pairs."""
    sides = cut(sources), cut(targets)
    cells = np.cumsum((sides[0].lengths + 1) * sides[1].lengths)
    rows = np.random.default_rng(1).permutation(len(sources))[: int(len(sources) * min(1.0, MAX_CELLS / cells[-1]))]
    codes, counts = np.zeros(0, np.int64), np.zeros(0)
    for start in range(0, len(rows), LEARNING_ROWS):
        more = expected_counts(*(_take(side, rows[start : start + LEARNING_ROWS]) for side in sides), sizes)
        codes, inverse = np.unique(np.concatenate([codes, more[0]]), return_inverse=True)
        counts = np.bincount(inverse, np.concatenate([counts, more[1]]))
    totals = np.bincount(codes // sizes[1], counts, minlength=sizes[0] + 1)
    unigrams = np.bincount(sides[1].ids, minlength=sizes[1]) + 0.5
    keep = (counts > DISCOUNT) & (codes < sizes[0] * sizes[1])  # without the empty source
    codes, counts = codes[keep], counts[keep]
    values = (counts - DISCOUNT) / totals[codes // sizes[1]]
    keys, table = np.full(SLOTS, -1, np.int64), np.zeros(SLOTS, np.float32)
    order = np.argsort(counts, kind="stable")  # where two share a slot, the more frequent stays
    slots = _slots(codes[order])
    keys[slots], table[slots] = codes[order], values[order]
    return Lexicon(keys, table, unigrams / unigrams.sum(), sizes[1])


def find(lexicon: Lexicon, sources: RaggedRows, targets: RaggedRows) -> np.ndarray:
    """Whether the target of each pair fits the previous or next source clearly better than its own."""
    count = len(sources)
    own = _scores(lexicon, sources, targets, np.arange(count), np.arange(count))
    doubtful = np.flatnonzero(own < MAX_OWN)
    found = np.zeros(count, dtype=bool)
    for step in (-1, 1):
        rows = doubtful[(doubtful + step >= 0) & (doubtful + step < count)]
        other = _scores(lexicon, sources, targets, rows + step, rows)
        found[rows[other - own[rows] > MIN_GAIN]] = True
    return found


def cut(rows: Sequence[Sequence[int]]) -> RaggedRows:
    return as_ragged([row[:MAX_TOKENS] for row in rows])


def _scores(lexicon: Lexicon, sources: RaggedRows, targets: RaggedRows, left: np.ndarray, right: np.ndarray):
    parts = [
        lexicon.scores(_take(sources, left[i : i + BLOCK_ROWS]), _take(targets, right[i : i + BLOCK_ROWS]))
        for i in range(0, len(left), BLOCK_ROWS)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _take(rows: RaggedRows, which: np.ndarray) -> RaggedRows:
    lengths = rows.lengths[which]
    return RaggedRows(rows.ids[slice_indices(rows.ends[which] - lengths, lengths)], lengths)


def _slots(codes: np.ndarray) -> np.ndarray:
    return (codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(42)).astype(np.int64)
