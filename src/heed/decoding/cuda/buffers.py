"""Buffers of fixed sizes for a search on the GPU: every step reads and writes them in place."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from heed.decoding.cuda.weights import Weights
from heed.decoding.ranking import Penalty

EXACT, HEURISTIC, FIRST = 0, 1, 2
STOPS = {"exact": EXACT, "heuristic": HEURISTIC, "first": FIRST}
SCORE, LENGTH, BEAM, LAST_TOKEN, LAST_LOGP = range(5)  # fields of `finished`
TOKEN, PARENT, LOGP = range(3)  # fields of `history`


class SearchRules(NamedTuple):
    """Options of a search. `prefix` is forced at no cost; with `force_end`, so is the end at the length limit."""

    first: int
    last: int
    never: tuple[int, ...]
    prefix: tuple[int, ...]
    min_length: int
    force_end: bool
    renormalize: bool
    beams: int
    nbest: int
    alpha: float
    penalty: Penalty
    stop: str


class Size(NamedTuple):
    """Number of sentences, beams of each, and the maximum length of a hypothesis."""

    sentences: int
    beams: int
    max_length: int

    @property
    def rows(self) -> int:
        return self.sentences * self.beams


@runtime_checkable
class SelfAttentionBuffers(Protocol):
    """The buffers of self-attention."""

    size: Size
    keys: Tensor
    ancestors: Tensor
    generated: Tensor
    done: Tensor


class KeyPool:
    """Memory for keys and values of self-attention and cross-attention, shared by all buffers: one search at a time."""

    def __init__(self, weights: Weights, slots: int, source_tokens: int):
        depth, dim, device = len(weights.target.layers), weights.dim, weights.output.device
        make = torch.empty if device.type == "cuda" else torch.zeros  # kernels do not read what was not written
        self.slots, self.source_tokens = slots, source_tokens
        self.keys = make(slots * depth * 2 * dim, dtype=weights.dtype, device=device)
        self.memory = make((source_tokens, depth, 2 * dim), dtype=weights.dtype, device=device)

    def fits(self, size: Size, source_tokens: int) -> bool:
        return size.rows * size.max_length <= self.slots and source_tokens <= self.source_tokens


class SearchBuffers:
    """The state of a search. Each beam writes its keys to its own row and never moves them: `ancestors` says which
    beam holds the keys of each past position. The source keys are stored once per sentence, packed.

    `finished` has the best `beams` finished hypotheses, best first, and the beam that each came from; `history` the
    choice of every beam at every step. Both hold integers as floats, so that each is one transfer.
    """

    def __init__(self, weights: Weights, size: Size, pool: KeyPool):
        n, beams, max_length = self.size = size
        device, score_dtype = weights.output.device, weights.accumulate_dtype
        shape = (len(weights.target.layers), size.rows, max_length, 2 * weights.dim)
        self.keys, self.memory = pool.keys[: math.prod(shape)].view(shape), pool.memory

        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.plan = zeros(4, n)
        self.starts, self.lengths, self.limit, self.done = self.plan  # views of one array: one transfer
        self.done.fill_(1)
        self.generated, self.unfinished = zeros(n), zeros(1)  # tokens of each sentence so far; sentences
        self.token, self.beam_scores = zeros(n, beams), zeros(n, beams, dtype=score_dtype)
        self.ancestors = zeros(n, beams, max_length)
        self.finished = zeros(n, 5, beams, dtype=torch.float64)
        self.history = zeros(n, max_length, 3, beams, dtype=score_dtype)
        self.banned = zeros(weights.vocab, dtype=torch.uint8)
        self.prefix, self.penalty = zeros(max_length), zeros(max_length + 1, dtype=torch.float64)
        # last, min_length, rank that must be finished, stop, force_end, renormalize, length of prefix, first
        self.options = zeros(8)
        self.rules: SearchRules | None = None

    def set_rules(self, rules: SearchRules) -> None:
        """Upload the options of a search."""
        if rules == self.rules:
            return
        self.rules, max_length = rules, self.size.max_length
        rank = (rules.nbest if rules.stop == "exact" else rules.beams) - 1
        options = [rules.last, rules.min_length, rank, STOPS[rules.stop], rules.force_end, rules.renormalize]
        _upload(self.options, [*map(int, options), len(rules.prefix), rules.first])
        _upload(self.prefix, [*rules.prefix, *[0] * max_length][:max_length])
        _upload(self.penalty, [1.0, *(rules.penalty(length, rules.alpha) for length in range(1, max_length + 1))])
        banned = torch.zeros(len(self.banned), dtype=torch.uint8)
        banned[list(rules.never)] = 1
        self.banned.copy_(banned)

    def assign(self, starts: Sequence[int], lengths: Sequence[int], limits: Sequence[int]) -> None:
        """Set the sentences of the next search; unused slots are done from the start."""
        plan = np.zeros(self.plan.shape, dtype=np.int32)
        plan[:3, : len(starts)] = starts, lengths, limits
        plan[3, len(starts) :] = 1
        _upload(self.plan, plan)

    def reset(self) -> None:
        """Start the search over the assigned sentences."""
        self.generated.zero_()
        self.unfinished.copy_((self.done == 0).sum())
        self.token.copy_(self.options[7])
        self.beam_scores.fill_(-torch.inf)
        self.beam_scores[:, 0] = 0.0  # all beams are equal now: only one may compete
        self.finished.fill_(-torch.inf)

    def take_over(self, other: "SearchBuffers", slots: Sequence[int], steps: int) -> None:
        """Continue with the sentences in these slots of other buffers in the same pool, after `steps` steps."""
        n, beams, device = len(slots), self.size.beams, self.keys.device
        index = torch.tensor(slots, dtype=torch.long, device=device)
        rows = (index[:, None] * beams + torch.arange(beams, device=device)).flatten()
        used = min(steps, self.size.max_length)
        keys = other.keys[:, :, :used].index_select(1, rows)  # a copy: the buffers overlap in the pool
        self.keys[:, : n * beams, :used] = keys
        for name in ("lengths", "limit", "generated", "done", "token", "beam_scores", "finished"):
            getattr(self, name)[:n] = getattr(other, name).index_select(0, index)
        self.ancestors[:n, :, :used] = other.ancestors[:, :, :used].index_select(0, index)
        self.history[:n, :used] = other.history[:, :used].index_select(0, index)
        self.done[n:] = 1
        self.unfinished.fill_(n)
        self._take_over_memory(other, index)

    def _take_over_memory(self, other: "SearchBuffers", index: Tensor) -> None:
        """Repack the source keys of these sentences."""
        lengths = self.lengths[: len(index)].long()
        ends = lengths.cumsum(0)
        self.starts[: len(index)] = (ends - lengths).int()
        shift = other.starts.index_select(0, index).long() - (ends - lengths)
        tokens = int(ends[-1])
        source = torch.arange(tokens, device=index.device) + shift.repeat_interleave(lengths, output_size=tokens)
        self.memory[:tokens] = other.memory.index_select(0, source)


def _upload(array: Tensor, values: Sequence) -> None:
    given = torch.tensor(values, dtype=array.dtype)
    if array.is_cuda:
        given = given.pin_memory()
    array.copy_(given, non_blocking=True)
