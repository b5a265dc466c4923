"""Words with vectors in a file, which is never loaded as a whole, or in memory."""

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from heed.data.vectors import reading, similarity
from heed.data.vectors.reading import Vectors
from heed.data.vectors.similarity import Neighbours
from heed.data.vectors.word_text import ngrams

SPELLING_CANDIDATES = 200_000  # a misspelled word is looked for among this many, the most frequent
WORD_START = "▁"  # the prefix of subwords that begin a word


class Store(NamedTuple):
    """`blocks` yields the vectors of some words, or of all with None; `words` yields all words; `ngrams` is a file of
    fastText n-grams, for the vectors of other words.
    """

    name: str
    blocks: Callable[[Container[str] | None], Iterable[Vectors]]
    words: Callable[[], Iterable[str]]
    ngrams: Path | None = None


def ngram_file(path: Path) -> Path:
    """The n-gram file of a word vector file: words.ngrams.bin next to words.vec."""
    name = path.name.removesuffix(".gz")
    return path.with_name((name.rpartition(".")[0] or name) + ".ngrams.bin")


def from_file(path: Path) -> Store:
    return Store(str(path), lambda wanted: reading.blocks(path, wanted), lambda: reading.words(path), ngram_file(path))


def from_memory(name: str, vectors: Vectors) -> Store:
    return Store(name, lambda wanted: [vectors], lambda: vectors.words)


def look_up(store: Store, words: Sequence[str]) -> Vectors:
    """The vectors of these words, in this order, under their names in the store. Unknown words get a vector from
    their n-grams, if the store has any; the notes say so.
    """
    rows, notes = {}, []
    for block in store.blocks({form for word in words for form in (word, WORD_START + word)}):
        rows |= dict(zip(block.words, block.matrix, strict=True))
    names = [next((form for form in (word, WORD_START + word) if form in rows), None) for word in words]
    for at, word in enumerate(words):
        if names[at] is None and (made := _from_ngrams(store, word)) is not None:
            names[at], (rows[word], note) = word, made
            notes.append(note)
        elif names[at] is None:
            meant = similarity.spelled_like(word, islice(store.words(), SPELLING_CANDIDATES))
            hint = f": did you mean {' or '.join(meant)}?" if meant else ", and nothing is spelled like it"
            raise ValueError(f"{word} is not in {store.name}{hint}{_without_ngrams(store)}")
    return Vectors(names, np.stack([rows[name] for name in names]), tuple(notes))


def _from_ngrams(store: Store, word: str) -> tuple[Float32[np.ndarray, " dim"], str] | None:
    """The mean vector of the known n-grams of a word, and a sentence about it; None if there are none."""
    if store.ngrams is None or not store.ngrams.is_file():
        return None
    sizes = [reading.detect_layout(path).dim for path in (Path(store.name), store.ngrams)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"{store.ngrams} has vectors of {sizes[1]} numbers, but {store.name} of {sizes[0]}: it belongs to other "
            "word vectors; remove it"
        )
    known = reading.read(store.ngrams, set(ngrams(word, 1, len(word) + 1)))
    if not known.words:
        return None
    note = f"{word} is not in {store.name}: its vector is the mean of {len(known.words)} of its n-grams, from {store.ngrams}."
    return known.matrix.mean(axis=0), note


def _without_ngrams(store: Store) -> str:
    """What a fastText file would need to support any word."""
    if store.ngrams is None or not store.name.removesuffix(".gz").endswith(".vec"):
        return ""
    if store.ngrams.is_file():
        return f"; {store.ngrams} has none of its n-grams"
    return f"; fastText's n-grams, which give every word a vector, would be in {store.ngrams}"


def neighbours(
    store: Store, words: Sequence[str], count: int, tell: Callable[[str], object] = lambda note: None
) -> list[Neighbours]:
    """The nearest words of each word, excluding itself; `tell` is told about vectors made from n-grams."""
    known = look_up(store, words)
    for note in known.notes:
        tell(note)
    return similarity.nearest(store.blocks(None), known.matrix, count, [{name} for name in known.words])


def analogies(
    store: Store, triples: Sequence[Sequence[str]], count: int, tell: Callable[[str], object] = lambda note: None
) -> list[Neighbours]:
    """For each three words those that are to the third as the second is to the first, nearest first."""
    known = look_up(store, [word for triple in triples for word in triple])
    for note in known.notes:
        tell(note)
    rows: Float32[np.ndarray, "triples 3 dim"] = known.matrix.reshape(len(triples), 3, -1)
    names = [set(known.words[i : i + 3]) for i in range(0, len(known.words), 3)]
    expected = np.stack([similarity.analogy(*triple) for triple in rows])
    return similarity.nearest(store.blocks(None), expected, count, names)
