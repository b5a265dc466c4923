"""Which words go with which, read off the cross attention."""

from collections.abc import Sequence

import numpy as np


def words_of(pieces: Sequence[str]) -> list[int]:
    """For each piece the number of its word: the first piece opens one, and so does each that opens with ▁.

    A space before another, or at the end, opens none.
    """
    bare = [piece == "▁" and (i + 1 == len(pieces) or pieces[i + 1].startswith("▁")) for i, piece in enumerate(pieces)]
    opens = [i == 0 or (piece.startswith("▁") and not bare[i]) for i, piece in enumerate(pieces)]
    return (np.cumsum(opens, dtype=int) - 1).tolist()


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

    `weights` is (target pieces, source pieces); what went to the end mark is left out by the caller. The marks at a
    word's end do not speak for it: full stops look at full stops.
    """
    rows, columns = _belongs(target), _belongs(source)
    return (rows / rows.sum(axis=1, keepdims=True)) @ weights @ columns.T


def _belongs(pieces: Sequence[str]) -> np.ndarray:
    """(words, pieces): 1 where a piece speaks for a word; punctuation does where the word is nothing else."""
    words = words_of(pieces)
    every, spoken = np.zeros((2, words[-1] + 1, len(pieces)))
    every[words, np.arange(len(pieces))] = 1
    letters = [any(char.isalnum() for char in piece) or piece.startswith("<0x") for piece in pieces]
    spoken[:, letters] = every[:, letters]
    return np.where(spoken.any(axis=1, keepdims=True), spoken, every)


def links(table: np.ndarray) -> list[tuple[int, int]]:
    """(source word, target word) for each target word: the source word it looked at most."""
    return sorted((int(row.argmax()), t) for t, row in enumerate(table))


def agreement(table: np.ndarray) -> float:
    """The share of target words whose source word, of all target words, is looked at most by them."""
    back = table.argmax(axis=0)
    return float(np.mean([back[row.argmax()] == t for t, row in enumerate(table)]))
