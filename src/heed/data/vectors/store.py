"""Words with vectors in a file, which is never held in memory as a whole, or in memory."""

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from heed.data.vectors import reading, similarity
from heed.data.vectors.reading import Vectors
from heed.data.vectors.similarity import Neighbours

SPELLING_CANDIDATES = 200_000  # a misspelled word is looked for among this many, the most frequent
WORD_START = "▁"  # the prefix of subwords that begin a word


class Store(NamedTuple):
    """`blocks` gives the vectors of some words, or of all with None; `words` gives all words."""

    name: str
    blocks: Callable[[Container[str] | None], Iterable[Vectors]]
    words: Callable[[], Iterable[str]]


def from_file(path: Path) -> Store:
    return Store(str(path), lambda wanted: reading.blocks(path, wanted), lambda: reading.words(path))


def from_memory(name: str, vectors: Vectors) -> Store:
    return Store(name, lambda wanted: [vectors], lambda: vectors.words)


def look_up(store: Store, words: Sequence[str]) -> Vectors:
    """The vectors of these words, in this order, under the names they have in the store."""
    rows = {}
    for block in store.blocks({form for word in words for form in (word, WORD_START + word)}):
        rows |= dict(zip(block.words, block.matrix, strict=True))
    names = [next((form for form in (word, WORD_START + word) if form in rows), None) for word in words]
    for word, name in zip(words, names, strict=True):
        if name is None:
            meant = similarity.spelled_like(word, islice(store.words(), SPELLING_CANDIDATES))
            hint = f": did you mean {' or '.join(meant)}?" if meant else ", and nothing that is spelled like it"
            raise ValueError(f"{word} is not in {store.name}{hint}")
    return Vectors(names, np.stack([rows[name] for name in names]))


def neighbours(store: Store, words: Sequence[str], count: int) -> list[Neighbours]:
    """The nearest words of each word, without itself."""
    known = look_up(store, words)
    return similarity.nearest(store.blocks(None), known.matrix, count, [{name} for name in known.words])


def analogies(store: Store, triples: Sequence[Sequence[str]], count: int) -> list[Neighbours]:
    """For each three words those that are to the third as the second is to the first, nearest first."""
    known = look_up(store, [word for triple in triples for word in triple])
    rows: Float32[np.ndarray, "triples 3 dim"] = known.matrix.reshape(len(triples), 3, -1)
    names = [set(known.words[i : i + 3]) for i in range(0, len(known.words), 3)]
    expected = np.stack([similarity.analogy(*triple) for triple in rows])
    return similarity.nearest(store.blocks(None), expected, count, names)
