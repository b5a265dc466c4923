"""Words cut another way each time: BPE-dropout (Provilkov et al., 2020) and unigram sampling (Kudo, 2018).

SentencePiece samples too, but what it draws differs from process to process, and a run that goes on must see what
it would have seen. Here a cut depends on the word, a number below DRAWS and the amount alone, so it can be kept.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np

from heed.data.ragged import RaggedRows, places

DRAWS = 64  # how many cuts of a word are told apart
WORDS = 400_000  # how many words are remembered at most, with
KEPT = 30_000_000  # so many ids


class Sampler:
    """Cuts texts into ids: of the pieces that text is made of, with a score each, or of its bytes.

    `<s>` or `<0x41>` in a text is text, so the tokens that are written like that are not among `ids`.
    """

    def __init__(self, ids: Mapping[str, int], score: Mapping[str, float], bytes: Sequence[int], amount: float):
        self.ids, self.score, self.bytes, self.amount = ids, score, bytes, amount
        merges = all(float(rank).is_integer() for rank in score.values())  # a BPE model's scores are its merges' ranks
        self.split: Callable[[str, Random], list[str]] = self._drop_merges if merges else self._draw_unigrams
        self.floor = min(score.values(), default=0.0) - 10.0
        self.longest = max(map(len, score), default=1)
        self.chance = Random()
        self._forget()

    def __reduce__(self):
        return Sampler, (self.ids, self.score, self.bytes, self.amount)  # another process remembers for itself

    def encode(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """One cut of each text, drawn by `seed`."""
        words = [text.split() for text in texts]
        counts = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        luck = np.random.default_rng(seed).integers(0, DRAWS, counts.sum())
        return [row.tolist() for row in self.cut([word for own in words for word in own], luck).joined(counts)]

    def cut(self, words: Sequence[str], luck: np.ndarray) -> RaggedRows:
        """The ids of each word, cut by a number of its own."""
        if len(self.numbers) > WORDS or self.used > KEPT:
            self._forget()
        numbers = np.fromiter(map(self.numbers.__getitem__, words), dtype=np.int64, count=len(words))
        self.starts = _room(self.starts, len(self.numbers) * DRAWS)
        cells = numbers * DRAWS + luck
        for i in np.flatnonzero(self.starts[cells] == 0).tolist():
            if not self.starts[cells[i]]:  # it may come twice
                self.starts[cells[i]] = self._cut(words[i], int(luck[i]))
        starts = self.starts[cells]
        lengths = self.kept[starts]
        return RaggedRows(self.kept[places(starts + 1, lengths)], lengths)

    def _cut(self, word: str, number: int) -> int:
        """Cut a word, and say where its ids are now kept, after their number."""
        self.chance.seed(zlib.crc32(word.encode()) * DRAWS + number)
        ids, found = self.ids, []
        for piece in self.split(f"▁{word}", self.chance):
            known = ids.get(piece)
            found += [self.bytes[byte] for byte in piece.encode()] if known is None else [known]
        start, self.used = self.used, self.used + 1 + len(found)
        self.kept = _room(self.kept, self.used)
        self.kept[start : self.used] = [len(found), *found]
        return start

    def _forget(self) -> None:
        """The number of each word; where the ids of its cuts begin, or 0; these ids, from 1 on."""
        self.numbers, self.used = _Numbers(), 1
        self.starts, self.kept = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)

    def _drop_merges(self, word: str, chance: Random) -> list[str]:
        """Merge the best pair again and again, but each time each pair may be passed over."""
        pieces, rank_of, amount, draw = list(word), self.score.get, self.amount, chance.random
        ranks = [rank_of(one + other, -math.inf) for one, other in pairwise(word)]
        while True:
            best, place, i = -math.inf, -1, 0
            for rank in ranks:
                if rank > best and draw() >= amount:
                    best, place = rank, i
                i += 1  # noqa: SIM113 (enumerate is slower, and nearly all the time goes here)
            if place < 0:
                return pieces
            pieces[place] = piece = pieces[place] + pieces.pop(place + 1)
            del ranks[place]
            if place:
                ranks[place - 1] = rank_of(pieces[place - 1] + piece, -math.inf)
            if place < len(ranks):
                ranks[place] = rank_of(piece + pieces[place + 1], -math.inf)

    def _draw_unigrams(self, word: str, chance: Random) -> list[str]:
        """A cut drawn with its probability to the power of `amount`: forwards sums, then backwards by chance."""
        total = [0.0] + [-math.inf] * len(word)
        steps: list[list[tuple[int, float]]] = [[]]
        for end in range(1, len(word) + 1):
            arcs = [(start, self.score.get(word[start:end])) for start in range(max(0, end - self.longest), end)]
            own = [
                (start, s if s is not None else self.floor) for start, s in arcs if s is not None or start == end - 1
            ]
            steps.append([(start, total[start] + self.amount * s) for start, s in own])
            total[end] = _log_sum([value for _, value in steps[end]])
        pieces, end = [], len(word)
        while end:
            weights = [math.exp(value - total[end]) for _, value in steps[end]]
            start = chance.choices([start for start, _ in steps[end]], weights)[0]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]


def sampler(subwords: Any, amount: float) -> Sampler:
    """A sampler for a vocabulary of SentencePiece's."""
    p, last = subwords.processor, subwords.marks.last
    pieces = enumerate(subwords.pieces(range(len(subwords))))
    ids = {piece: i for i, piece in pieces if i > last and not p.is_byte(i)}
    bytes = [p.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
    return Sampler(ids, {piece: p.get_score(i) for piece, i in ids.items()}, bytes, amount)


class _Numbers(dict):
    """Words, numbered as they come."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def _room(array: np.ndarray, size: int) -> np.ndarray:
    """The array, followed by zeros where it was too short."""
    if size <= len(array):
        return array
    larger = np.zeros(max(size, 2 * len(array)), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))
