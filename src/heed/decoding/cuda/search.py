"""The host side of a search on the GPU: assign sentences, launch steps, move to smaller buffers, fetch results."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch

from heed.decoding.cuda.buffers import LENGTH, SCORE, KeyPool, SearchBuffers, SearchRules, Size
from heed.decoding.cuda.plain import TorchOps
from heed.decoding.cuda.step import decode_step, encode_sources
from heed.decoding.cuda.weights import Weights
from heed.decoding.hypothesis import Hypothesis

Ids = Sequence[int]
Hypotheses = list[Hypothesis]


class SearchRunner:
    """Caches buffers by size and runs steps in them, one operation at a time; GraphRunner uses CUDA graphs."""

    shrink_above = 1  # rows: smaller buffers are not exchanged for even smaller ones
    max_buffers = 64
    initial_pool = (1, 1)  # minimum size of the first pool: slots of keys, and tokens of sources

    def __init__(self, weights: Weights):
        self.weights = weights
        self.pool: KeyPool | None = None
        self.buffers: dict[Size, SearchBuffers] = {}

    def ops(self, rows: int) -> TorchOps:
        return TorchOps()

    def get_buffers(self, sentences: int, beams: int, longest: int, source_tokens: int) -> SearchBuffers:
        """Buffers that are large enough, cached or new."""
        size = Size(rounded(sentences), beams, max(32, 1 << (longest - 1).bit_length()))
        if self.pool is None or not self.pool.fits(size, source_tokens):
            current = (self.pool.slots, self.pool.source_tokens) if self.pool else self.initial_pool
            self.release()  # before a new pool is allocated
            need = size.rows * size.max_length, 1 << (source_tokens - 1).bit_length()
            self.pool = KeyPool(self.weights, *map(max, need, current))
        buffers = self.buffers.pop(size, None) or self.make_buffers(size)
        while len(self.buffers) >= self.max_buffers:
            self.buffers.pop(next(iter(self.buffers)))
        self.buffers[size] = buffers  # the most recently used are last
        return buffers

    def release(self) -> None:
        """Free all buffers."""
        self.buffers.clear()
        self.pool = None

    def make_buffers(self, size: Size) -> SearchBuffers:
        return SearchBuffers(self.weights, size, self.pool)

    def encode(self, tokens: np.ndarray, positions: np.ndarray, longest: int, buffers: SearchBuffers) -> None:
        inputs = torch.from_numpy(np.stack([tokens, positions])).to(self.weights.output.device)
        encode_sources(self.weights, self.ops(len(tokens)), *inputs, longest, buffers)

    def step(self, buffers: SearchBuffers) -> None:
        decode_step(self.weights, self.ops(buffers.size.rows), buffers)

    def unfinished(self, buffers: SearchBuffers) -> int:
        """The number of unfinished sentences, or an earlier count if the current one is not known yet."""
        return int(buffers.unfinished)

    def fetch(self, *arrays: torch.Tensor) -> Callable[[], list[np.ndarray]]:
        """Copies for the host of what arrays have now; the function that is returned waits for them."""
        copies = [array.cpu().clone() for array in arrays]
        return lambda: [copy.numpy() for copy in copies]


class Batch(NamedTuple):
    """Sources, which include special tokens, as one array of tokens, with the positions of each and their lengths."""

    tokens: np.ndarray
    positions: np.ndarray
    lengths: np.ndarray
    limits: Ids

    @classmethod
    def of(cls, sources: Sequence[Ids], limits: Ids) -> "Batch":
        lengths = np.fromiter(map(len, sources), dtype=np.int64, count=len(sources))
        ends = lengths.cumsum()
        tokens = np.fromiter(chain.from_iterable(sources), dtype=np.int64, count=int(ends[-1]))
        return cls(tokens, np.arange(len(tokens)) - np.repeat(ends - lengths, lengths), lengths, limits)


class Found:
    """The hypotheses of a batch. The device may still be copying them: it need not wait until they are lists."""

    def __init__(self, sentences: int):
        self.sentences = sentences
        self.parts: list[
            tuple[Ids, Ids, Callable[[], list[np.ndarray]]]
        ] = []  # sentences, their slots, and their copies

    def hypotheses(self) -> list[Hypotheses]:
        """Those of each sentence, best first."""
        results: list[Hypotheses] = [[] for _ in range(self.sentences)]
        for numbers, slots, wait in self.parts:
            for number, own in zip(numbers, _hypotheses(slots, *wait()), strict=True):
                results[number] = own
        return results


def search(runner: SearchRunner, sources: Sequence[Ids], limits: Ids, rules: SearchRules) -> list[Hypotheses]:
    """The best hypotheses of each source, best first, within its length limit. Sources include special tokens."""
    return run(runner, Batch.of(sources, limits), rules).hypotheses()


@torch.inference_mode()
def run(runner: SearchRunner, batch: Batch, rules: SearchRules, meanwhile: Callable[[], None] = lambda: None) -> Found:
    """The search for a batch. `meanwhile` is called once while the device is busy with its beginning."""
    lengths, limits = batch.lengths, batch.limits
    buffers = runner.get_buffers(len(lengths), rules.beams, max(limits), len(batch.tokens))
    buffers.set_rules(rules)
    buffers.assign(lengths.cumsum() - lengths, lengths, limits)
    runner.encode(batch.tokens, batch.positions, int(lengths.max()), buffers)
    found, numbers = Found(len(lengths)), list(range(len(lengths)))  # the sentences, by slot
    for step in range(1, max(limits) + 1):
        runner.step(buffers)
        if step == 1:
            meanwhile()
        unfinished = runner.unfinished(buffers)
        if not unfinished:
            break
        if buffers.size.rows > runner.shrink_above and rounded(unfinished) <= buffers.size.sentences // 2:
            done = buffers.done[: len(numbers)].tolist()
            busy = [slot for slot, flag in enumerate(done) if not flag]
            _collect(runner, buffers, [slot for slot, flag in enumerate(done) if flag], step, numbers, found)
            if not busy:
                return found
            smaller = runner.get_buffers(len(busy), rules.beams, buffers.size.max_length, 1)
            smaller.set_rules(rules)
            smaller.take_over(buffers, busy, step)
            buffers, numbers = smaller, [numbers[slot] for slot in busy]
    _collect(runner, buffers, range(len(numbers)), step, numbers, found)
    return found


def rounded(number: int) -> int:
    """Round up to three significant binary digits: few sizes, none much too large."""
    unit = 1 << max(0, number.bit_length() - 3)
    return -(-number // unit) * unit


def _collect(runner: SearchRunner, buffers: SearchBuffers, slots: Ids, steps: int, numbers: Ids, found: Found) -> None:
    """Copy the hypotheses of the sentences in these slots after `steps` steps; `numbers` are the sentences by slot."""
    finished = buffers.finished[:, : LENGTH + 1, : buffers.rules.nbest]
    wait = runner.fetch(finished, runner.ops(buffers.size.rows).trace(buffers, steps))
    found.parts.append(([numbers[slot] for slot in slots], slots, wait))


def _hypotheses(slots: Ids, finished: np.ndarray, traced: np.ndarray) -> list[Hypotheses]:
    """Those in these slots, as lists. Only tokens that belong to one become numbers of Python."""
    nbest, steps, at = finished.shape[2], traced.shape[2], np.asarray(slots, dtype=np.int64)
    scores, lengths = finished[at, SCORE].reshape(-1), finished[at, LENGTH].reshape(-1)
    lengths = np.where(scores > -np.inf, lengths, 0).astype(np.int64)
    kept = np.arange(steps) < lengths[:, None]
    rows = (at[:, None] * nbest + np.arange(nbest)).reshape(-1)
    tokens, logps = (part[rows][kept] for part in traced)
    ends, tokens, logps = lengths.cumsum().tolist(), tokens.astype(np.int64).tolist(), logps.tolist()
    starts = [0, *ends]
    spans = list(map(slice, starts, ends))
    every = list(map(Hypothesis, map(tokens.__getitem__, spans), scores.tolist(), map(logps.__getitem__, spans)))
    if nbest == 1 and (scores > -np.inf).all():
        return [[own] for own in every]
    return [
        [own for own in every[first : first + nbest] if own.score > -np.inf] for first in range(0, len(every), nbest)
    ]
