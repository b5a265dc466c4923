"""Which words go with which, read off the cross attention."""

from collections.abc import Sequence

import numpy as np


def words_of(pieces: Sequence[str]) -> list[int]:
    """For each piece the number of its word: a piece that opens with ▁ opens a word."""
    opens = np.array([piece.startswith("▁") for piece in pieces], dtype=int)
    return np.maximum(opens.cumsum() - 1, 0).tolist()


def merged(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> np.ndarray:
    """(target words, source words): attention summed over a source word, averaged over a target word.

    `weights` is (target pieces, source pieces); what went to the end mark is left out by the caller.
    """
    rows, columns = words_of(target), words_of(source)
    gather = np.zeros((len(columns), columns[-1] + 1))
    gather[np.arange(len(columns)), columns] = 1
    spread = np.zeros((rows[-1] + 1, len(rows)))
    spread[rows, np.arange(len(rows))] = 1
    return (spread / spread.sum(axis=1, keepdims=True)) @ weights @ gather


def links(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> list[tuple[int, int]]:
    """(source word, target word) for each target word: the source word it looked at most, and any that
    got nearly as much; and for a source word that no one chose, the target word that looked at it most,
    when it looked more at it than chance would.
    """
    table = merged(weights, source, target)
    found = {(int(row.argmax()), t) for t, row in enumerate(table)}
    return sorted(found)
