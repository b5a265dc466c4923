"""Which words go with which, read off the cross attention."""

from collections.abc import Sequence

import numpy as np


def words_of(pieces: Sequence[str]) -> list[int]:
    """For each piece the number of its word: a piece that opens with ▁ opens a word."""
    opens = np.array([piece.startswith("▁") for piece in pieces], dtype=int)
    return np.maximum(opens.cumsum() - 1, 0).tolist()


def first_words(text: str, parts: Sequence[str]) -> list[int]:
    """The number of the word of `text` in which each of its parts begins; a part may begin within a word."""
    numbers, place = [], 0
    for part in parts:
        place = text.index(part, place)
        numbers.append(len(f"{text[:place]}.".split()) - 1)
        place += len(part)
    return numbers


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


def links(table: np.ndarray) -> list[tuple[int, int]]:
    """(source word, target word) for each target word: the source word it looked at most."""
    return sorted((int(row.argmax()), t) for t, row in enumerate(table))


def agreement(table: np.ndarray) -> float:
    """The share of target words whose source word, of all target words, is looked at most by them."""
    back = table.argmax(axis=0)
    return float(np.mean([back[row.argmax()] == t for t, row in enumerate(table)]))
