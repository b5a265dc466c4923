"""Random segmentations of words: BPE-dropout (Provilkov et al., 2020) and unigram sampling (Kudo, 2018).

SentencePiece samples too, but differently in each process, while a resumed run must match an uninterrupted one. Here
a segmentation depends only on the word, a number below DRAWS and the amount, so it can also be cached.
"""

import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import count, pairwise
from random import Random
from typing import Any

import numpy as np

from heed.vocabularies.ragged import RaggedRows, slice_indices

DRAWS = 64  # different segmentations of a word
MAX_CACHED_WORDS = 400_000
MAX_CACHED_IDS = 30_000_000


class Sampler:
    """Segments text into the ids of pieces, which have scores, or of bytes. `<s>` or `<0x41>` in a text is text, so
    special tokens and bytes are not in `ids`.
    """

    def __init__(self, ids: Mapping[str, int], score: Mapping[str, float], bytes: Sequence[int], amount: float):
        self.ids, self.score, self.bytes, self.amount = ids, score, bytes, amount
        # the scores of a BPE model are the ranks of its merges
        merges = all(float(rank).is_integer() for rank in score.values())
        self.split: Callable[[str, Random], list[str]] = self._drop_merges if merges else self._draw_unigrams
        self.floor = min(score.values(), default=0.0) - 10.0
        self.longest = max(map(len, score), default=1)
        self.rng = Random()
        self._clear_cache()

    def __reduce__(self):
        return Sampler, (self.ids, self.score, self.bytes, self.amount)  # without the cache

    def encode(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """A random segmentation of each text, drawn by `seed`."""
        words = [text.split() for text in texts]
        counts = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        draws = np.random.default_rng(seed).integers(0, DRAWS, counts.sum())
        return [row.tolist() for row in self.segment([word for text in words for word in text], draws).merge(counts)]

    def segment(self, words: Sequence[str], draws: np.ndarray) -> RaggedRows:
        """The ids of each word, segmented according to its draw."""
        if len(self.numbers) > MAX_CACHED_WORDS or self.used > MAX_CACHED_IDS:
            self._clear_cache()
        numbers = np.fromiter(map(self.numbers.__getitem__, words), dtype=np.int64, count=len(words))
        self.starts = _grow(self.starts, len(self.numbers) * DRAWS)
        cells = numbers * DRAWS + draws
        for i in np.flatnonzero(self.starts[cells] == 0).tolist():
            if not self.starts[cells[i]]:  # the same cell may occur twice
                self.starts[cells[i]] = self._cache(words[i], int(draws[i]))
        starts = self.starts[cells]
        lengths = self.cached[starts]
        return RaggedRows(self.cached[slice_indices(starts + 1, lengths)], lengths)

    def _cache(self, word: str, draw: int) -> int:
        """Segment a word, and cache the number of its ids and the ids; returns the position."""
        self.rng.seed(zlib.crc32(word.encode()) * DRAWS + draw)
        segmented = []
        for piece in self.split(f"▁{word}", self.rng):
            known = self.ids.get(piece)
            segmented += [self.bytes[byte] for byte in piece.encode()] if known is None else [known]
        start, self.used = self.used, self.used + 1 + len(segmented)
        self.cached = _grow(self.cached, self.used)
        self.cached[start : self.used] = [len(segmented), *segmented]
        return start

    def _clear_cache(self) -> None:
        """`numbers` of words; `starts` of their segmentations in `cached`, 0 if there is none; `cached` is used from 1 on."""
        self.numbers, self.used = defaultdict(count().__next__), 1
        self.starts, self.cached = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)

    def _drop_merges(self, word: str, rng: Random) -> list[str]:
        """Merge the best pair repeatedly, but ignore each pair with probability `amount` in each step."""
        pieces, rank_of, amount, draw = list(word), self.score.get, self.amount, rng.random
        ranks = [rank_of(left + right, -math.inf) for left, right in pairwise(word)]
        while True:
            best, position, i = -math.inf, -1, 0
            for rank in ranks:
                if rank > best and draw() >= amount:
                    best, position = rank, i
                i += 1  # noqa: SIM113 (enumerate is slower, and most of the time is spent here)
            if position < 0:
                return pieces
            pieces[position] = piece = pieces[position] + pieces.pop(position + 1)
            del ranks[position]
            if position:
                ranks[position - 1] = rank_of(pieces[position - 1] + piece, -math.inf)
            if position < len(ranks):
                ranks[position] = rank_of(piece + pieces[position + 1], -math.inf)

    def _draw_unigrams(self, word: str, rng: Random) -> list[str]:
        """A segmentation drawn with its probability to the power of `amount`: forward filtering, backward sampling."""
        total = [0.0] + [-math.inf] * len(word)
        steps: list[list[tuple[int, float]]] = [[]]
        for end in range(1, len(word) + 1):
            arcs = [(start, self.score.get(word[start:end])) for start in range(max(0, end - self.longest), end)]
            if arcs[-1][1] is None:  # a character that is no piece
                arcs[-1] = (end - 1, self.floor)
            steps.append([(start, total[start] + self.amount * s) for start, s in arcs if s is not None])
            total[end] = _log_sum([value for _, value in steps[end]])
        pieces, end = [], len(word)
        while end:
            weights = [math.exp(value - total[end]) for _, value in steps[end]]
            start = rng.choices([start for start, _ in steps[end]], weights)[0]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]


def sentencepiece_sampler(vocabulary: Any, amount: float) -> Sampler:
    """A sampler for a SentencePiece vocabulary."""
    p, last = vocabulary.processor, vocabulary.special.last
    pieces = enumerate(vocabulary.pieces(range(len(vocabulary))))
    ids = {piece: i for i, piece in pieces if i > last and not p.is_byte(i) and not p.is_control(i)}
    bytes = [p.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
    return Sampler(ids, {piece: p.get_score(i) for piece, i in ids.items()}, bytes, amount)


def _grow(array: np.ndarray, size: int) -> np.ndarray:
    """The array, extended by zeros to at least `size`."""
    return array if size <= len(array) else np.pad(array, (0, max(size - len(array), len(array))))


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))
