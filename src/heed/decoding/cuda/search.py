"""The host side of a search on the GPU: assign sentences, launch steps, move to smaller buffers, fetch results."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch

from heed.decoding.cuda.buffers import LENGTH, KeyPool, SearchBuffers, SearchRules, Size
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


@torch.inference_mode()
def search(runner: SearchRunner, sources: Sequence[Ids], limits: Ids, rules: SearchRules) -> list[Hypotheses]:
    """The best hypotheses of each source, best first, within its length limit. Sources include special tokens."""
    lengths = np.array([len(source) for source in sources])
    ends = lengths.cumsum()
    buffers = runner.get_buffers(len(sources), rules.beams, max(limits), int(ends[-1]))
    buffers.set_rules(rules)
    buffers.assign((ends - lengths).tolist(), lengths.tolist(), limits)
    tokens = np.fromiter(chain.from_iterable(sources), dtype=np.int64, count=int(ends[-1]))
    positions = np.arange(len(tokens)) - np.repeat(ends - lengths, lengths)
    runner.encode(tokens, positions, int(lengths.max()), buffers)
    results: list[Hypotheses] = [[] for _ in sources]
    numbers = list(range(len(sources)))  # of the sentences, by slot
    for step in range(1, max(limits) + 1):
        runner.step(buffers)
        unfinished = runner.unfinished(buffers)
        if not unfinished:
            break
        if buffers.size.rows > runner.shrink_above and rounded(unfinished) <= buffers.size.sentences // 2:
            done = buffers.done[: len(numbers)].tolist()
            busy = [slot for slot, flag in enumerate(done) if not flag]
            over = [slot for slot, flag in enumerate(done) if flag]
            for slot, hypotheses in zip(over, _collect(runner, buffers, over, step), strict=True):
                results[numbers[slot]] = hypotheses
            if not busy:
                return results
            smaller = runner.get_buffers(len(busy), rules.beams, buffers.size.max_length, 1)
            smaller.set_rules(rules)
            smaller.take_over(buffers, busy, step)
            buffers, numbers = smaller, [numbers[slot] for slot in busy]
    for number, hypotheses in zip(numbers, _collect(runner, buffers, range(len(numbers)), step), strict=True):
        results[number] = hypotheses
    return results


def rounded(number: int) -> int:
    """Round up to three significant binary digits: few sizes, none much too large."""
    unit = 1 << max(0, number.bit_length() - 3)
    return -(-number // unit) * unit


def _collect(runner: SearchRunner, buffers: SearchBuffers, slots: Ids, steps: int) -> list[Hypotheses]:
    """The hypotheses of the sentences in these slots after `steps` steps."""
    finished = buffers.finished[:, : LENGTH + 1, : buffers.rules.nbest]
    traced = runner.ops(buffers.size.rows).trace(buffers, steps)
    scores, lengths, tokens, logps = _fetch(finished, traced)
    results = []
    for slot in slots:
        rows = range(slot * buffers.rules.nbest, (slot + 1) * buffers.rules.nbest)
        found = [(row, int(lengths[row])) for row in rows if scores[row] > -np.inf]
        results.append([Hypothesis(tokens[row][:size], scores[row], logps[row][:size]) for row, size in found])
    return results


def _fetch(finished: torch.Tensor, traced: torch.Tensor) -> tuple[list, ...]:
    """Scores, lengths, tokens and log-probabilities of hypotheses as lists."""
    scores, lengths = finished.transpose(0, 1).flatten(1).tolist()
    tokens, logps = traced.cpu().numpy()
    return scores, lengths, tokens.astype(np.int64).tolist(), logps.tolist()
