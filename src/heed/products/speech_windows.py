"""Long recordings in windows: split at quiet points, and read with context on both sides."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

SMOOTH = 10  # frames over which loudness is averaged


class Window(NamedTuple):
    """The frames that are read, from `start` to before `end`, and the part of them that counts, from `first` to
    before `last`.
    """

    start: int
    end: int
    first: int
    last: int


def cut(loudness: np.ndarray, size: int, context: int) -> list[Window]:
    """Windows of at most `size` frames with consecutive parts; each is split at the quietest point in its last
    third.
    """
    frames = len(loudness)
    if frames <= size:
        return [Window(0, frames, 0, frames)]
    own = size - 2 * context
    smooth = np.convolve(loudness, np.ones(SMOOTH) / SMOOTH, mode="same")
    cuts = [0]
    while frames - cuts[-1] > own:
        first, last = cuts[-1] + max(1, 2 * own // 3), cuts[-1] + own
        cuts.append(first + int(smooth[first:last].argmin()) if last > first else last)
    cuts.append(frames)
    return [Window(max(0, one - context), min(frames, other + context), one, other) for one, other in pairwise(cuts)]


def kept(words: Sequence[Any], window: Window, seconds: float) -> list[Any]:
    """The words whose middle is in the part of a window that counts; `seconds` is the length of a frame."""
    first, last = window.first * seconds, window.last * seconds
    return [word for word in words if first <= (word.start + word.end) / 2 < last]


def group_words(pieces: Sequence[str]) -> list[list[int]]:
    """The pieces of each word: the first piece begins with "▁", which in a character vocabulary is a space."""
    words: list[list[int]] = []
    for i, piece in enumerate(pieces):
        if piece.startswith("▁") or not words:
            words.append([])
        if piece != "▁":
            words[-1].append(i)
    return [own for own in words if own]
