"""Word alignments from cross-attention."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Links = list[tuple[int, int]]  # (source word, target word)


def words_of(pieces: Sequence[str]) -> list[int]:
    """The word index of each piece: the first piece begins a word, as does each piece that begins with ▁. A space
    before another space, or at the end, does not.
    """
    bare = [piece == "▁" and (i + 1 == len(pieces) or pieces[i + 1].startswith("▁")) for i, piece in enumerate(pieces)]
    opens = [i == 0 or (piece.startswith("▁") and not bare[i]) for i, piece in enumerate(pieces)]
    return (np.cumsum(opens, dtype=int) - 1).tolist()


def first_words(text: str, parts: Sequence[str], start: int = 0) -> list[int]:
    """The index of the word of `text` in which each of its parts begins, from `start` on; a part may begin within a
    word.
    """
    numbers = []
    for part in parts:
        start = text.index(part, start)
        numbers.append(len(f"{text[:start]}.".split()) - 1)
        start += len(part)
    return numbers


def join_links(whole: Any, parts: Sequence[Any], found: Sequence[Links], tag: str) -> Links:
    """The links of a translation from those of its parts. A tag is a word of each part, but occurs only once in the
    whole text.
    """
    links, before = [], len(tag.split())
    starts = first_words(whole.source, [part.source[len(tag) :] for part in parts], len(tag))
    targets = first_words(whole.text, [part.text for part in parts])
    for own, source, target in zip(found, starts, targets, strict=True):
        links += [(i if i < before else i - before + source, j + target) for i, j in own]
    return links


class WordPooling(NamedTuple):
    """From the attention of pieces to that of words: summed over a source word, averaged over a target word.
    Punctuation at the end of a word is ignored, because full stops attend to full stops.
    """

    rows: np.ndarray  # (target words, target pieces)
    columns: np.ndarray  # (source pieces, source words)

    @classmethod
    def of(cls, source: Sequence[str], target: Sequence[str]) -> "WordPooling":
        rows = _membership(target)
        return cls(rows / rows.sum(axis=1, keepdims=True), _membership(source).T)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        """(target words, source words) of (target pieces, source pieces), which may be padded, without special tokens."""
        return self.rows @ weights[: self.rows.shape[1], : len(self.columns)] @ self.columns


def _membership(pieces: Sequence[str]) -> np.ndarray:
    """(words, pieces): 1 if a piece counts for a word; punctuation counts only in words of nothing else."""
    words = words_of(pieces)
    every, lettered = np.zeros((2, words[-1] + 1, len(pieces)))
    every[words, np.arange(len(pieces))] = 1
    letters = [any(char.isalnum() for char in piece) or piece.startswith("<0x") for piece in pieces]
    lettered[:, letters] = every[:, letters]
    return np.where(lettered.any(axis=1, keepdims=True), lettered, every)


def links(table: np.ndarray) -> Links:
    """For each target word the source word it attends to most."""
    return sorted((int(row.argmax()), t) for t, row in enumerate(table))


def agreement(table: np.ndarray) -> float:
    """The share of target words whose source word, in turn, gets most attention from them."""
    back = table.argmax(axis=0)
    return float(np.mean([back[row.argmax()] == t for t, row in enumerate(table)]))
