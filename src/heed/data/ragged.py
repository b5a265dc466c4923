"""Rows of ids, or of bytes, end to end in one array: to take a thousand of them is one step, not a thousand."""

from collections.abc import Sequence

import numpy as np

Ids = Sequence[int] | np.ndarray


class RaggedRows(Sequence):
    """Rows end to end, and how long each is; `rows[i]` is one of them."""

    def __init__(self, ids: np.ndarray, lengths: np.ndarray):
        self.ids, self.lengths, self.ends = ids, lengths, lengths.cumsum()

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.ids[self.ends[i] - self.lengths[i] : self.ends[i]]

    def count(self, value: int) -> np.ndarray:
        """How often each row has this value."""
        sums = np.concatenate([[0], (self.ids == value).cumsum()])
        return sums[self.ends] - sums[self.ends - self.lengths]

    def joined(self, counts: np.ndarray) -> "RaggedRows":
        """Of so many rows each time, one."""
        ends = np.concatenate([[0], self.ends])[np.concatenate([[0], counts.cumsum()])]
        return RaggedRows(self.ids, np.diff(ends))


def join(rows: Sequence[Ids]) -> RaggedRows:
    """Rows that were given one by one, or are joined already."""
    if isinstance(rows, RaggedRows):
        return rows
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    parts = [np.asarray(row, dtype=np.int64) for row in rows]
    return RaggedRows(np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64), lengths)


def places(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Where everything is that begins at `starts` and is so long: first all places of the first, then of the next."""
    before = lengths.cumsum() - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
