"""Masked words (Devlin et al., 2019): which tokens of a text are hidden, and what replaces them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int
from numpy.random import Generator

from heed.data.noise import check_share, check_total, protected_ids
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.vocabulary import Vocabulary

STOP, LONGEST = (
    0.2,
    10,
)  # spans: the geometric distribution of their lengths in words, and the longest (Joshi et al., 2020)
TRIES = 10  # spans drawn for each token that is to be hidden; a text of few words may have no room for more


@dataclass(frozen=True, eq=False)
class Masking:
    """Of the `share` of hidden tokens, `masked` become the mask, `random` another token, and the rest is unchanged.
    `ordinary` says which ids are not special tokens: only these are hidden or drawn. `word_starts` says which ids
    begin a word: then whole words are hidden, and with `spans` several consecutive words, all in the same way.
    """

    mask: int
    ordinary: Bool[np.ndarray, " vocab"]
    word_starts: Bool[np.ndarray, " vocab"] | None = None
    share: float = 0.15
    masked: float = 0.8
    random: float = 0.1
    spans: bool = False

    def __post_init__(self):
        for name in ("share", "masked", "random"):
            check_share(name, getattr(self, name))
        check_total({"masked": self.masked, "random": self.random})
        object.__setattr__(self, "pool", np.flatnonzero(self.ordinary))
        object.__setattr__(self, "rank", np.cumsum(self.ordinary) - 1)  # the index of an ordinary id in the pool

    def __call__(
        self, tokens: Int[np.ndarray, " t"], starts: Bool[np.ndarray, " t"], generator: Generator
    ) -> tuple[Int[np.ndarray, " t"], Int[np.ndarray, " n"]]:
        """The corrupted text and the hidden positions, in order; `starts` marks the beginnings of sentences."""
        able = self.ordinary[tokens]
        budget = int(self.share * np.count_nonzero(able) + generator.random())  # random rounding: the mean is the share
        if self.word_starts is None:
            chosen = np.sort(generator.choice(np.flatnonzero(able), budget, replace=False, shuffle=False))
            fates = generator.random(budget)
        else:
            begins = able & (self.word_starts[tokens] | starts | ~np.concatenate([[False], able[:-1]]))
            choose = _choose_spans if self.spans else _choose_words
            chosen, fates = choose(np.where(able, np.cumsum(begins) - 1, -1), budget, generator)
        source = tokens.copy()
        source[chosen[fates < self.masked]] = self.mask
        swapped = chosen[(fates >= self.masked) & (fates < self.masked + self.random)]
        if len(self.pool) > 1:
            drawn = generator.integers(len(self.pool) - 1, size=len(swapped))
            source[swapped] = self.pool[drawn + (drawn >= self.rank[tokens[swapped]])]  # never the token itself
        return source, chosen


def _choose_words(words: np.ndarray, budget: int, generator: Generator) -> tuple[np.ndarray, np.ndarray]:
    """Whole words in random order; words that do not fit are skipped. `words` are the words of positions, -1 for
    none.
    """
    sizes, left, taken = np.bincount(words[words >= 0]), budget, []
    for word in generator.permutation(len(sizes)).tolist():
        if not left:
            break
        if sizes[word] <= left:
            taken.append(word)
            left -= int(sizes[word])
    chosen = np.flatnonzero(np.isin(words, taken))
    return chosen, generator.random(len(chosen))


def _choose_spans(words: np.ndarray, budget: int, generator: Generator) -> tuple[np.ndarray, np.ndarray]:
    """Spans of whole words without special tokens; the last one is shortened to fit."""
    count = int(words.max(initial=-1)) + 1
    first = np.searchsorted(np.maximum.accumulate(words), np.arange(count))
    sizes = np.bincount(words[words >= 0], minlength=count)
    fates, left = np.full(len(words), np.nan), budget
    for _ in range(TRIES * budget):
        if not left:
            break
        length, word, fate = (
            min(int(generator.geometric(STOP)), LONGEST),
            int(generator.integers(count)),
            generator.random(),
        )
        end = int(first[word])
        for own in range(word, min(word + length, count)):
            place, size = int(first[own]), int(sizes[own])
            if place != end or size > left or not np.isnan(fates[place]):
                break  # after a special token, too long, or hidden already
            fates[place : place + size], end, left = fate, place + size, left - size
    chosen = np.flatnonzero(~np.isnan(fates))
    return chosen, fates[chosen]


def ordinary_ids(vocabulary: Vocabulary) -> Bool[np.ndarray, " vocab"]:
    """Which ids are words or word pieces: all but the special tokens, including the unknown token."""
    special, found = vocabulary.special, np.ones(len(vocabulary), dtype=bool)
    own = {*protected_ids(special, (special.unknown, *special.never, *special.delimiter))}
    own |= vocabulary.special_ids() if isinstance(vocabulary, FastTokenizer) else set()
    found[[i for i in own if i < len(found)]] = False
    return found


def word_starts(vocabulary: Vocabulary) -> Bool[np.ndarray, " vocab"]:
    """Which ids begin a word."""
    return np.array([piece.startswith("▁") for piece in vocabulary.pieces(range(len(vocabulary)))], dtype=bool)
