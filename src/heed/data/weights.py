"""Which rows of several corpora an epoch reads: each corpus as often as its weight says."""

from collections.abc import Sequence

import numpy as np


def rows_of_epoch(counts: Sequence[int], weights: Sequence[float], seed: int, epoch: int) -> np.ndarray:
    """The rows of an epoch, where corpus i has `counts[i]` of all rows and is read `weights[i]` times.

    A corpus is read in an endless sequence of shuffled passes, of which each epoch takes the next part. So with a
    weight of 0.5 two epochs read each row once. The rows depend only on (seed, epoch).
    """
    parts, start = [np.zeros(0, dtype=np.int64)], 0
    for number, (count, weight) in enumerate(zip(counts, weights, strict=True)):
        size = max(1, round(weight * count)) if count else 0
        position, end = epoch * size, (epoch + 1) * size
        while position < end:
            cycle, offset = divmod(position, count)
            taken = min(end - position, count - offset)
            rows = (
                np.random.default_rng([seed, number, cycle]).permutation(count) if taken < count else np.arange(count)
            )
            parts.append(start + rows[offset : offset + taken])
            position += taken
        start += count
    rows = np.concatenate(parts)
    return rows.astype(np.int32) if start < 2**31 else rows
