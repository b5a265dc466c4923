"""Which words are near which, by the angle between their vectors (Mikolov et al., 2013)."""

import difflib
import unicodedata
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from jaxtyping import Float, Float64

from heed.data.vectors.reading import Vectors

Found = list[tuple[str, float]]  # words with their cosines, nearest first


def near(
    blocks: Iterable[Vectors], asked: Float[np.ndarray, "q dim"], count: int, without: Sequence[Collection[str]]
) -> list[Found]:
    """For each vector that is asked for, the `count` words nearest to it that are not among those it goes `without`."""
    asked, found = unit(asked), [[] for _ in asked]
    for block in blocks:
        cosines = asked @ unit(block.matrix).T
        for own, row, skip in zip(found, cosines, without, strict=True):
            order = np.argsort(-row, kind="stable")[: count + len(skip)]
            own += [(block.words[i], float(row[i])) for i in order if block.words[i] not in skip]
            own.sort(key=lambda pair: -pair[1])  # of equals, what stands first in the file
            del own[count:]
    return found


def analogy(
    first: Float[np.ndarray, " dim"], second: Float[np.ndarray, " dim"], third: Float[np.ndarray, " dim"]
) -> Float64[np.ndarray, " dim"]:
    """Where the fourth word should be: as the second is to the first, so it is to the third."""
    first, second, third = unit(np.stack([first, second, third]))
    return second - first + third


def unit(matrix: Float[np.ndarray, "rows dim"]) -> Float64[np.ndarray, "rows dim"]:
    """Rows of length 1; one of zeros stays as it is."""
    matrix = matrix.astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)


def spelled_like(word: str, words: Iterable[str], count: int = 3) -> list[str]:
    """Words that someone might have meant; Hangul is compared letter by letter, and accents as letters of their own."""
    shapes: dict[str, str] = {}
    for other in words:
        shapes.setdefault(_shape(other), other)
    return [shapes[shape] for shape in difflib.get_close_matches(_shape(word), shapes, count)]


def _shape(word: str) -> str:
    return unicodedata.normalize("NFD", word).casefold()
