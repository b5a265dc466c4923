"""Words with vectors, wherever they are: in a file, which is never held whole, or in memory."""

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from heed.data.vectors import near, reading
from heed.data.vectors.near import Found
from heed.data.vectors.reading import Vectors

MEANT = 200_000  # among so many words, the most frequent, one that is misspelled is looked for
OPENS = "▁"  # what pieces of subword vocabularies begin with where they begin a word


class Store(NamedTuple):
    """`blocks` are the vectors of some words, or with None of all; `words` are all words."""

    name: str
    blocks: Callable[[Container[str] | None], Iterable[Vectors]]
    words: Callable[[], Iterable[str]]


def of_file(path: Path) -> Store:
    return Store(str(path), lambda wanted: reading.blocks(path, wanted), lambda: reading.words(path))


def of_memory(name: str, vectors: Vectors) -> Store:
    return Store(name, lambda wanted: [vectors], lambda: vectors.words)


def find(store: Store, words: Sequence[str]) -> Vectors:
    """The vectors of these words, in this order, each under the name it has there."""
    rows = {}
    for block in store.blocks({form for word in words for form in (word, OPENS + word)}):
        rows |= dict(zip(block.words, block.matrix, strict=True))
    names = [next((form for form in (word, OPENS + word) if form in rows), None) for word in words]
    for word, name in zip(words, names, strict=True):
        if name is None:
            meant = near.spelled_like(word, islice(store.words(), MEANT))
            hint = f": did you mean {' or '.join(meant)}?" if meant else ", and nothing that is spelled like it"
            raise ValueError(f"{word} is not in {store.name}{hint}")
    return Vectors(names, np.stack([rows[name] for name in names]))


def neighbours(store: Store, words: Sequence[str], count: int) -> list[Found]:
    """Of each word those nearest to it, itself left out."""
    known = find(store, words)
    return near.near(store.blocks(None), known.matrix, count, [{name} for name in known.words])


def analogies(store: Store, threes: Sequence[Sequence[str]], count: int) -> list[Found]:
    """Of each three words what is to the third as the second is to the first, nearest first."""
    known = find(store, [word for three in threes for word in three])
    rows: Float32[np.ndarray, "threes 3 dim"] = known.matrix.reshape(len(threes), 3, -1)
    names = [set(known.words[i : i + 3]) for i in range(0, len(known.words), 3)]
    return near.near(store.blocks(None), np.stack([near.analogy(*three) for three in rows]), count, names)
