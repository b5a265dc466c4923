"""Pairs with source and target swapped, detected by their letters: the script of each side is learned from the
corpus.
"""

from collections.abc import Sequence

import numpy as np

from heed.data.readers import Line

BUCKETS = 1 << 16  # of hashed byte trigrams
PSEUDO_COUNT = 0.5
MAX_RATIO = 3.0  # one trigram alone does not decide
MIN_MEAN = 0.25  # nats a trigram: a side is on the wrong side only if it clearly looks like the other
MIN_SUM = 12.0  # nats of both sides together
_MIX = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)


class SideModel:
    """Log-ratios of byte trigrams: how much more likely each is in the source than in the target."""

    def __init__(self, sample: Sequence[Line]):
        counts = [np.full(BUCKETS, PSEUDO_COUNT) for _ in range(2)]
        for side, own in enumerate(counts):
            buckets, _ = _trigrams([line[side] for line in sample])
            own += np.bincount(buckets, minlength=BUCKETS)
        source, target = (np.log(own / own.sum()) for own in counts)
        self.ratios = np.clip(source - target, -MAX_RATIO, MAX_RATIO).astype(np.float32)

    def swapped(self, lines: Sequence[Line]) -> np.ndarray:
        """Whether the source of each pair looks like a target, and the target like a source."""
        sums, counts = zip(*(self._sums([line[side] for line in lines]) for side in range(2)), strict=True)
        likelier = [-sums[0], sums[1]]  # than in the place where it is
        means = [total / np.maximum(count, 1) for total, count in zip(likelier, counts, strict=True)]
        return (np.minimum(*means) > MIN_MEAN) & (likelier[0] + likelier[1] > MIN_SUM)

    def _sums(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        buckets, lengths = _trigrams(texts)
        sums = np.concatenate([[0.0], np.cumsum(self.ratios[buckets], dtype=np.float64)])
        ends = np.cumsum(lengths)
        return sums[ends] - sums[ends - lengths], lengths


def _trigrams(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The hashed byte trigrams of some texts, and how many each text has."""
    rows = [f" {' '.join(text.lower().split())} ".encode() for text in texts]
    lengths = np.fromiter((max(len(row) - 2, 0) for row in rows), dtype=np.int64, count=len(rows))
    data = np.frombuffer(b"".join(rows), dtype=np.uint8).astype(np.uint32)
    if len(data) < 3:
        return np.zeros(0, np.uint32), lengths
    mixed = data[:-2] * np.uint32(_MIX[0]) ^ data[1:-1] * np.uint32(_MIX[1]) ^ data[2:] * np.uint32(_MIX[2])
    ends = np.cumsum([len(row) for row in rows])
    inside = np.ones(len(mixed), dtype=bool)  # two trigrams at each end of a text but the last reach into the next
    for back in (1, 2):
        across = ends[:-1] - back
        inside[across[(across >= 0) & (across < len(mixed))]] = False
    return (mixed[inside] >> np.uint32(16)), lengths
