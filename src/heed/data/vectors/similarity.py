"""Nearest neighbours and analogies by cosine similarity (Mikolov et al., 2013)."""

import difflib
import unicodedata
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from jaxtyping import Float, Float64

from heed.data.vectors.reading import Vectors

Neighbours = list[tuple[str, float]]  # words with their cosines, nearest first


def nearest(
    blocks: Iterable[Vectors], queries: Float[np.ndarray, "q dim"], count: int, excluded: Sequence[Collection[str]]
) -> list[Neighbours]:
    """For each query vector the `count` nearest words that are not excluded for it."""
    queries, found = unit_rows(queries), [[] for _ in queries]
    for block in blocks:
        cosines = queries @ unit_rows(block.matrix).T
        for neighbours, row, skip in zip(found, cosines, excluded, strict=True):
            order = np.argsort(-row, kind="stable")[: count + len(skip)]
            neighbours += [(block.words[i], float(row[i])) for i in order if block.words[i] not in skip]
            neighbours.sort(key=lambda pair: -pair[1])  # stable: of equals, the first in the file
            del neighbours[count:]
    return found


def analogy(
    first: Float[np.ndarray, " dim"], second: Float[np.ndarray, " dim"], third: Float[np.ndarray, " dim"]
) -> Float64[np.ndarray, " dim"]:
    """The expected vector of the fourth word, which is to the third as the second is to the first."""
    first, second, third = unit_rows(np.stack([first, second, third]))
    return second - first + third


def unit_rows(matrix: Float[np.ndarray, "rows dim"]) -> Float64[np.ndarray, "rows dim"]:
    """Rows scaled to length 1; rows of zeros stay zero."""
    matrix = matrix.astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)


def spelled_like(word: str, words: Iterable[str], count: int = 3) -> list[str]:
    """Suggestions for a misspelled word; Hangul and accented letters are compared decomposed (NFD)."""
    decomposed_words: dict[str, str] = {}
    for other in words:
        decomposed_words.setdefault(_decompose(other), other)
    return [decomposed_words[form] for form in difflib.get_close_matches(_decompose(word), decomposed_words, count)]


def _decompose(word: str) -> str:
    return unicodedata.normalize("NFD", word).casefold()
