"""Masked words (Devlin et al., 2019): which tokens of a text are hidden, and what replaces them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
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
        if self.word_starts is None:
            source, chosen, hidden = self.rows(tokens[None], generator.random((1, self.draws(len(tokens)))))
            return source[0], chosen[0, hidden[0]]
        able = self.ordinary[tokens]
        budget = int(self.share * np.count_nonzero(able) + generator.random())  # random rounding: the mean is the share
        begins = able & (self.word_starts[tokens] | starts | ~np.concatenate([[False], able[:-1]]))
        choose = _choose_spans if self.spans else _choose_words
        chosen, fates = choose(np.where(able, np.cumsum(begins) - 1, -1), budget, generator)
        source = tokens.copy()
        self._replace(source, (chosen,), fates, generator.random(len(chosen)))
        return source, chosen

    def draws(self, length: int) -> int:
        """How many random numbers `rows` needs for each row of this length."""
        return length + 1 + 2 * self._most(length)

    def rows(
        self, tokens: Int[np.ndarray, "b t"], uniform: Float[np.ndarray, "b draws"]
    ) -> tuple[Int[np.ndarray, "b t"], Int[np.ndarray, "b n"], Bool[np.ndarray, "b n"]]:
        """All rows at once, without whole words, from numbers between 0 and 1: the corrupted rows, the hidden positions
        of each in order, and which of these are in use.
        """
        (size, length), most = tokens.shape, self._most(tokens.shape[1])
        able = self.ordinary[tokens]
        keys, rounding, fates, draws = np.split(uniform, np.cumsum([length, 1, most]), axis=1)
        budgets = (self.share * able.sum(axis=1) + rounding[:, 0]).astype(np.int64)
        lowest = np.argsort(np.where(able, keys, 1.0), axis=1)[:, :most]
        hidden = np.arange(most) < budgets[:, None]
        chosen = np.sort(np.where(hidden, lowest, length), axis=1)
        source, row = tokens.copy(), np.broadcast_to(np.arange(size)[:, None], hidden.shape)
        self._replace(source, (row[hidden], chosen[hidden]), fates[hidden], draws[hidden])
        return source, chosen, hidden

    def _most(self, length: int) -> int:
        return min(length, int(self.share * length) + 1)

    def _replace(
        self, tokens: np.ndarray, places: tuple[np.ndarray, ...], fates: np.ndarray, draws: np.ndarray
    ) -> None:
        """What becomes of the tokens at some places, by two random numbers each."""
        replaced = (fates >= self.masked) & (fates < self.masked + self.random)
        if len(self.pool) > 1:
            swapped, drawn = tuple(part[replaced] for part in places), draws[replaced] * (len(self.pool) - 1)
            drawn = drawn.astype(np.int64)
            tokens[swapped] = self.pool[drawn + (drawn >= self.rank[tokens[swapped]])]  # never the token itself
        tokens[tuple(part[fates < self.masked] for part in places)] = self.mask


def uniform(seed: Sequence[int], rows: Int[np.ndarray, " b"], count: int) -> Float[np.ndarray, "b count"]:
    """Numbers between 0 and 1 for each row, which depend only on (seed, row, place): SplitMix64 (Steele et al., 2014)."""
    start = np.random.SeedSequence(list(seed)).generate_state(1, np.uint64)
    seeds = _mixed(start + _STEP * (rows.astype(np.uint64) + np.uint64(1)))
    return (_mixed(seeds[:, None] + _STEP * np.arange(1, count + 1, dtype=np.uint64)) >> np.uint64(11)) * 2.0**-53


_STEP = np.uint64(0x9E3779B97F4A7C15)


def _mixed(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


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
