"""Rows of ids or bytes of different lengths in one flat array: selecting a thousand of them is one numpy call."""

from collections.abc import Sequence

import numpy as np

Ids = Sequence[int] | np.ndarray


class RaggedRows(Sequence):
    """Concatenated rows and their lengths; `rows[i]` is one row."""

    def __init__(self, ids: np.ndarray, lengths: np.ndarray):
        self.ids, self.lengths, self.ends = ids, lengths, lengths.cumsum()

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.ids[self.ends[i] - self.lengths[i] : self.ends[i]]

    def count(self, value: int) -> np.ndarray:
        """How often each row contains this value."""
        sums = np.concatenate([[0], (self.ids == value).cumsum()])
        return sums[self.ends] - sums[self.ends - self.lengths]

    def merge(self, counts: np.ndarray) -> "RaggedRows":
        """Merge rows: the first counts[0] rows become one, the next counts[1] another, and so on."""
        ends = np.concatenate([[0], self.ends])[np.concatenate([[0], counts.cumsum()])]
        return RaggedRows(self.ids, np.diff(ends))


def as_ragged(rows: Sequence[Ids]) -> RaggedRows:
    """Rows as RaggedRows; returned unchanged if they already are."""
    if isinstance(rows, RaggedRows):
        return rows
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    parts = [np.asarray(row, dtype=np.int64) for row in rows]
    return RaggedRows(np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64), lengths)


def slice_indices(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The indices of all elements of the slices [start, start + length), slice after slice."""
    before = lengths.cumsum() - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
