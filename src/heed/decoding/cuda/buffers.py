"""Where a search on the card lives: arrays of fixed sizes that every step reads and writes in place."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from heed.decoding.cuda.weights import Weights
from heed.decoding.ranking import Penalty

EXACT, HEURISTIC, FIRST = 0, 1, 2
STOPS = {"exact": EXACT, "heuristic": HEURISTIC, "first": FIRST}
SCORE, LENGTH, BEAM, TOKEN, PART = range(5)  # of what is found
SAID, PARENT, COST = range(3)  # of what was chosen at each step


class Rules(NamedTuple):
    """What a search is to follow. `begin` is said first, at no cost; `force_end`: what has no more room ends, at no cost."""

    first: int
    last: int
    never: tuple[int, ...]
    begin: tuple[int, ...]
    least: int
    force_end: bool
    renormalize: bool
    beams: int
    nbest: int
    alpha: float
    penalty: Penalty
    stop: str


class Size(NamedTuple):
    """Sentences, beams of each, and tokens that each may become."""

    sentences: int
    beams: int
    longest: int

    @property
    def rows(self) -> int:
        return self.sentences * self.beams


class KeyPool:
    """What rooms stand on: the keys of what was said and of what was read. One search at a time has it all."""

    def __init__(self, weights: Weights, rows: int, sources: int):
        depth, dim, device = len(weights.target.layers), weights.dim, weights.output.device
        make = torch.empty if device.type == "cuda" else torch.zeros  # kernels do not look at what was not written
        self.rows, self.sources = rows, sources
        self.keys = make(rows * depth * 2 * dim, dtype=weights.dtype, device=device)
        self.memory = make((sources, depth, 2 * dim), dtype=weights.dtype, device=device)

    def holds(self, size: Size, sources: int) -> bool:
        return size.rows * size.longest <= self.rows and sources <= self.sources


class SearchBuffers:
    """One row of `keys` for each beam. Beams that change places leave their keys where they are: `lineage` tells where
    each place of a beam's past stands. Keys of the memory are kept once a sentence, end to end.

    `found` has the best `beams` of what has ended, best first, each with the beam it came from; `history` what every beam
    chose at every step. Both hold whole numbers as floats, so that each is one transfer.
    """

    def __init__(self, weights: Weights, size: Size, ground: KeyPool):
        n, beams, longest = self.size = size
        device, wide = weights.output.device, weights.stream
        shape = (len(weights.target.layers), size.rows, longest, 2 * weights.dim)
        self.keys, self.memory = ground.keys[: math.prod(shape)].view(shape), ground.memory

        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.plan = zeros(4, n)
        self.starts, self.lengths, self.limit, self.done = self.plan  # views of one array: one transfer
        self.done.fill_(1)
        self.said, self.remaining = zeros(n), zeros(1)
        self.token, self.live = zeros(n, beams), zeros(n, beams, dtype=wide)
        self.lineage = zeros(n, beams, longest)
        self.found = zeros(n, 5, beams, dtype=torch.float64)
        self.history = zeros(n, longest, 3, beams, dtype=wide)
        self.banned = zeros(weights.vocab, dtype=torch.uint8)
        self.opening, self.penalty = zeros(longest), zeros(longest + 1, dtype=torch.float64)
        self.facts = zeros(
            8
        )  # last, least, rank of what must be found, stop, force_end, renormalize, tokens of opening, first
        self.rules: Rules | None = None

    def follow(self, rules: Rules) -> None:
        """Take up the rules of a search."""
        if rules == self.rules:
            return
        self.rules, longest = rules, self.size.longest
        rank = (rules.nbest if rules.stop == "exact" else rules.beams) - 1
        facts = [rules.last, rules.least, rank, STOPS[rules.stop], rules.force_end, rules.renormalize]
        _put(self.facts, [*map(int, facts), len(rules.begin), rules.first])
        _put(self.opening, [*rules.begin, *[0] * longest][:longest])
        _put(self.penalty, [1.0, *(rules.penalty(length, rules.alpha) for length in range(1, longest + 1))])
        banned = torch.zeros(len(self.banned), dtype=torch.uint8)
        banned[list(rules.never)] = 1
        self.banned.copy_(banned)

    def assign(self, starts: Sequence[int], lengths: Sequence[int], limits: Sequence[int]) -> None:
        """These sentences are next; seats that are left over are done from the start."""
        rest = [0] * (self.size.sentences - len(starts))
        done = [0] * len(starts) + [1] * len(rest)
        _put(self.plan, [[*starts, *rest], [*lengths, *rest], [*limits, *rest], done])

    def begin(self) -> None:
        """Nothing is said: once the seats are taken."""
        self.said.zero_()
        self.remaining.copy_((self.done == 0).sum())
        self.token.copy_(self.facts[7])
        self.live.fill_(-torch.inf)
        self.live[:, 0] = 0.0  # all beams are the same now: let one of them speak
        self.found.fill_(-torch.inf)

    def take(self, other: "SearchBuffers", seats: Sequence[int], written: int) -> None:
        """Go on with these sentences of another room on the same ground, where each has said `written` tokens or fewer."""
        n, beams, device = len(seats), self.size.beams, self.keys.device
        index = torch.tensor(seats, dtype=torch.long, device=device)
        rows = (index[:, None] * beams + torch.arange(beams, device=device)).flatten()
        kept = min(written, self.size.longest)
        keys = other.keys[:, :, :kept].index_select(1, rows)  # a copy: the rooms overlap
        self.keys[:, : n * beams, :kept] = keys
        for name in ("lengths", "limit", "said", "done", "token", "live", "found"):
            getattr(self, name)[:n] = getattr(other, name).index_select(0, index)
        self.lineage[:n, :, :kept] = other.lineage[:, :, :kept].index_select(0, index)
        self.history[:n, :kept] = other.history[:, :kept].index_select(0, index)
        self.done[n:] = 1
        self.remaining.fill_(n)
        self._take_memory(other, index)

    def _take_memory(self, other: "SearchBuffers", index: Tensor) -> None:
        """The memories of these sentences, end to end again."""
        lengths = self.lengths[: len(index)].long()
        ends = lengths.cumsum(0)
        self.starts[: len(index)] = (ends - lengths).int()
        shift = other.starts.index_select(0, index).long() - (ends - lengths)
        tokens = int(ends[-1])
        places = torch.arange(tokens, device=index.device) + shift.repeat_interleave(lengths, output_size=tokens)
        self.memory[:tokens] = other.memory.index_select(0, places)


def _put(array: Tensor, values: Sequence) -> None:
    given = torch.tensor(values, dtype=array.dtype)
    if array.is_cuda:
        given = given.pin_memory()
    array.copy_(given, non_blocking=True)
