"""A text as word ids, and the training data of word vectors: pairs of nearby words, their counts, and character
n-grams.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from heed.vocabularies.words import NAMES, Cut, Words

CHUNK = 200_000  # words whose pairs are held in memory at one time
Ids = Int64[np.ndarray, " n"]
Counts = Int64[np.ndarray, " words"]
Row = Int64[np.ndarray, " _"]  # of any length


@dataclass(frozen=True)
class WordText:
    """The running words of a text by id, the line of each, and what was dropped."""

    words: list[str]  # by id, the most frequent first
    counts: Counts
    ids: Ids
    lines: Ids  # the line of each running word: no pair crosses from one to another
    line_count: int
    empty_lines: int
    rare_words: int  # different words that occur too seldom
    rare_count: int  # and how often they occur together


def read_words(lines: Iterable[str], least: int = 1, *, cut: Cut = "punctuation", lower: bool = False) -> WordText:
    """Split lines into words and keep those that occur at least `least` times; windows skip the others."""
    splitter = Words([(name, 0) for name in NAMES], cut=cut, lower=lower)
    first: dict[str, int] = {}
    tokens, lengths = array("q"), array("q")
    for line in lines:
        before = len(tokens)
        tokens.extend(first.setdefault(word, len(first)) for word in splitter.split(line))
        lengths.append(len(tokens) - before)
    if not tokens:
        raise ValueError("there are no words in the text")
    counts = np.bincount(tokens)
    spelled = list(first)
    kept = sorted(np.flatnonzero(counts >= least).tolist(), key=lambda i: (-counts[i], spelled[i]))
    if not kept:
        raise ValueError(f"no word occurs {least} times in the text: keep rarer words too, or use more text")
    new = np.full(len(spelled), -1, np.int64)
    new[kept] = np.arange(len(kept))
    ids, line = new[np.asarray(tokens)], np.repeat(np.arange(len(lengths)), lengths)
    known, own = ids >= 0, counts[kept]
    rare = len(spelled) - len(kept), len(ids) - int(known.sum())
    empty = sum(length == 0 for length in lengths)
    return WordText([spelled[i] for i in kept], own, ids[known], line[known], len(lengths), empty, *rare)


def near_pairs(ids: Ids, lines: Ids, reach: Ids | int, distance: int) -> Iterator[tuple[Ids, Ids]]:
    """Centres and contexts `distance` apart on one line: first the contexts after their centres, then those before.

    `reach` is the window of each centre, or an integer for all of them, at least `distance`.
    """
    same = lines[distance:] == lines[:-distance]
    for centre, context in (
        (slice(None, -distance), slice(distance, None)),
        (slice(distance, None), slice(None, -distance)),
    ):
        near = same if isinstance(reach, int) else same & (reach[centre] >= distance)
        yield ids[centre][near], ids[context][near]


def cooccurrences(
    text: WordText, window: int, *, by_distance: bool = False
) -> tuple[Ids, Ids, Float64[np.ndarray, " n"]]:
    """X_ij, how often word j is at most `window` words from word i, as three lists: i, j and X_ij, where it is not 0.

    With `by_distance` a pair that is d words apart counts 1/d, as in GloVe.
    """
    size = len(text.words)
    keys, sums = np.empty(0, np.int64), np.empty(0)
    for distance in range(1, window + 1):
        for centre, context in near_pairs(text.ids, text.lines, window, distance):
            found, times = np.unique(centre * size + context, return_counts=True)
            keys, back = np.unique(np.concatenate([keys, found]), return_inverse=True)
            sums = np.bincount(back, np.concatenate([sums, times / distance if by_distance else times]), len(keys))
    return keys // size, keys % size, sums


def skipgram_pairs(
    text: WordText, window: int, keep: Float64[np.ndarray, " words"], rng: np.random.Generator
) -> Iterator[tuple[Ids, Ids]]:
    """The centres and contexts of one pass over the text, in chunks, each in random order.

    A running word is kept with the probability `keep` of its word (Mikolov et al., 2013, section 2.3). Its window is
    drawn at random, up to `window` words on either side, so that nearby words count more.
    """
    for start in range(0, len(text.ids), CHUNK):
        ids, lines = text.ids[start : start + CHUNK], text.lines[start : start + CHUNK]
        stays = rng.random(len(ids)) < keep[ids]
        ids, lines = ids[stays], lines[stays]
        reach = rng.integers(1, window, len(ids), endpoint=True)
        pairs = [pair for distance in range(1, window + 1) for pair in near_pairs(ids, lines, reach, distance)]
        centre, context = (np.concatenate(side) for side in zip(*pairs, strict=True))
        order = rng.permutation(len(centre))
        yield centre[order], context[order]


def ngrams(word: str, shortest: int, longest: int) -> list[str]:
    """The character n-grams of a word, which begins with < and ends with >, except the whole word (Bojanowski et al.,
    2017).
    """
    marked = f"<{word}>"
    lengths = range(shortest, min(longest, len(marked) - 1) + 1)
    return list(dict.fromkeys(marked[i : i + n] for n in lengths for i in range(len(marked) - n + 1)))


def index_ngrams(words: Sequence[str], shortest: int, longest: int) -> tuple[list[str], list[Row]]:
    """All n-grams of the words, and those of each word by number."""
    number: dict[str, int] = {}
    rows = [[number.setdefault(gram, len(number)) for gram in ngrams(word, shortest, longest)] for word in words]
    return list(number), [np.asarray(row, np.int64) for row in rows]
