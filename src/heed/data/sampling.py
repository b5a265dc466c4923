"""Words cut another way each time: BPE-dropout (Provilkov et al., 2020) and unigram sampling (Kudo, 2018).

SentencePiece samples too, but what it draws differs from process to process, and a run that goes on must see what
it would have seen. Here a cut depends on the word, a number below DRAWS and the amount alone, so it can be kept.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from random import Random

import numpy as np

DRAWS = 64  # how many cuts of a word are told apart
KEPT = 2_000_000  # how many cuts are remembered at most


class Sampler:
    """Cuts texts into ids: of the pieces that text is made of, with a score each, or of its bytes.

    `<s>` or `<0x41>` in a text is text, so the tokens that are written like that are not among `ids`.
    """

    def __init__(self, ids: Mapping[str, int], score: Mapping[str, float], bytes: Sequence[int], amount: float):
        self.ids, self.score, self.bytes, self.amount = ids, score, bytes, amount
        merges = all(float(rank).is_integer() for rank in score.values())  # a BPE model's scores are its merges' ranks
        self.cut: Callable[[str, Random], list[str]] = self._drop_merges if merges else self._draw_unigrams
        self.kept: dict[tuple[str, int], list[int]] = {}

    def encode(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """One cut of each text, drawn by `seed`."""
        words = [text.split() for text in texts]
        luck = iter(np.random.default_rng(seed).integers(0, DRAWS, sum(map(len, words))).tolist())
        return [[i for word in own for i in self._word(word, next(luck))] for own in words]

    def _word(self, word: str, number: int) -> list[int]:
        found = self.kept.get((word, number))
        if found is None:
            chance = Random(zlib.crc32(word.encode()) * DRAWS + number)
            found = [i for piece in self.cut(f"▁{word}", chance) for i in self._ids_of(piece)]
            if len(self.kept) >= KEPT:
                self.kept.clear()
            self.kept[word, number] = found
        return found

    def _ids_of(self, piece: str) -> list[int]:
        """The piece's id or, where the vocabulary has none, those of its bytes."""
        known = self.ids.get(piece)
        return [known] if known is not None else [self.bytes[byte] for byte in piece.encode()]

    def _drop_merges(self, word: str, chance: Random) -> list[str]:
        """Merge the best pair again and again, but each time each pair may be passed over."""
        pieces, score, amount = list(word), self.score, self.amount
        while True:
            best, place = -math.inf, -1
            for i in range(len(pieces) - 1):
                rank = score.get(pieces[i] + pieces[i + 1])
                if rank is not None and rank > best and chance.random() >= amount:
                    best, place = rank, i
            if place < 0:
                return pieces
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]

    def _draw_unigrams(self, word: str, chance: Random) -> list[str]:
        """A cut drawn with its probability to the power of `amount`: forwards sums, then backwards by chance."""
        floor = min(self.score.values()) - 10.0
        total = [0.0] + [-math.inf] * len(word)
        steps: list[list[tuple[int, float]]] = [[]]
        for end in range(1, len(word) + 1):
            arcs = [(start, self.score.get(word[start:end])) for start in range(end)]
            own = [(start, s if s is not None else floor) for start, s in arcs if s is not None or start == end - 1]
            steps.append([(start, total[start] + self.amount * s) for start, s in own])
            total[end] = _log_sum([value for _, value in steps[end]])
        pieces, end = [], len(word)
        while end:
            weights = [math.exp(value - total[end]) for _, value in steps[end]]
            start = chance.choices([start for start, _ in steps[end]], weights)[0]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))
