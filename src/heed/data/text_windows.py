"""Texts longer than the model's maximum, in overlapping windows."""

import numpy as np
from jaxtyping import Int

Window = tuple[int, int]  # the first token, and the one after the last


def split_windows(length: int, room: int, overlap: int) -> list[Window]:
    """Windows of at most `room` tokens; neighbours share `overlap`, but at most half a window."""
    step, found = room - min(overlap, room // 2), [(0, min(room, length))]
    while found[-1][1] < length:
        start = found[-1][0] + step
        found.append((start, min(start + room, length)))
    return found


def best_windows(windows: list[Window], length: int) -> Int[np.ndarray, " n"]:
    """For each token the window in which its shorter context, left or right, is longest (Devlin et al., 2019)."""
    place, best, chosen = np.arange(length), np.full(length, -1), np.zeros(length, dtype=np.int64)
    for number, (start, end) in enumerate(windows):
        context = np.minimum(place - start, end - 1 - place)
        better = context > best
        chosen[better], best[better] = number, context[better]
    return chosen
