"""The host's part of a search on the card: seat sentences, let steps run, move to a smaller room, read the results."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch

from heed.decoding.cuda.buffers import LENGTH, KeyPool, Rules, SearchBuffers, Size
from heed.decoding.cuda.plain import Plain
from heed.decoding.cuda.step import remember, say
from heed.decoding.cuda.weights import Weights
from heed.decoding.steps import Hypothesis

Found = list[Hypothesis]


class Machine:
    """Rooms, and how steps run in them: here one operation after another. Graphs have a machine of their own."""

    smallest = 1  # rows: a room of no more is not left for a smaller one
    most_rooms = 64
    least = (1, 1)  # what the first ground holds: places of rows, and tokens of sources

    def __init__(self, weights: Weights):
        self.weights = weights
        self.ground: KeyPool | None = None
        self.rooms: dict[Size, SearchBuffers] = {}

    def ops(self, rows: int) -> Plain:
        return Plain()

    def room(self, sentences: int, beams: int, longest: int, sources: int) -> SearchBuffers:
        """One that has place for all that; it may have been used before."""
        size = Size(rounded(sentences), beams, max(32, 1 << (longest - 1).bit_length()))
        if self.ground is None or not self.ground.holds(size, sources):
            own = (self.ground.rows, self.ground.sources) if self.ground else self.least
            self.leave()  # before there is a new one
            need = size.rows * size.longest, 1 << (sources - 1).bit_length()
            self.ground = KeyPool(self.weights, *map(max, need, own))
        room = self.rooms.pop(size, None) or self.build(size)
        while len(self.rooms) >= self.most_rooms:
            self.rooms.pop(next(iter(self.rooms)))
        self.rooms[size] = room  # the latest is the last
        return room

    def leave(self) -> None:
        """Give all rooms up."""
        self.rooms.clear()
        self.ground = None

    def build(self, size: Size) -> SearchBuffers:
        return SearchBuffers(self.weights, size, self.ground)

    def remember(self, tokens: np.ndarray, places: np.ndarray, longest: int, room: SearchBuffers) -> None:
        given = torch.from_numpy(np.stack([tokens, places])).to(self.weights.output.device)
        remember(self.weights, self.ops(len(tokens)), *given, longest, room)

    def step(self, room: SearchBuffers) -> None:
        say(self.weights, self.ops(room.size.rows), room)

    def left(self, room: SearchBuffers) -> int:
        """How many sentences are not done; where that is not known yet, how many were not done before."""
        return int(room.remaining)


@torch.inference_mode()
def search(machine: Machine, sources: Sequence[Sequence[int]], limits: Sequence[int], rules: Rules) -> list[Found]:
    """The best for each source, best first, none longer than its limit; sources with their marks."""
    lengths = np.array([len(source) for source in sources])
    ends = lengths.cumsum()
    room = machine.room(len(sources), rules.beams, max(limits), int(ends[-1]))
    room.follow(rules)
    room.assign((ends - lengths).tolist(), lengths.tolist(), limits)
    tokens = np.fromiter(chain.from_iterable(sources), dtype=np.int64, count=int(ends[-1]))
    places = np.arange(len(tokens)) - np.repeat(ends - lengths, lengths)
    machine.remember(tokens, places, int(lengths.max()), room)
    found: list[Found] = [[] for _ in sources]
    numbers = list(range(len(sources)))  # of the sentences, by their seats
    for step in range(1, max(limits) + 1):
        machine.step(room)
        left = machine.left(room)
        if not left:
            break
        if room.size.rows > machine.smallest and rounded(left) <= room.size.sentences // 2:
            done = room.done[: len(numbers)].tolist()
            busy = [assign for assign, over in enumerate(done) if not over]
            seats = [assign for assign, over in enumerate(done) if over]
            for assign, own in zip(seats, _collect(machine, room, seats, step), strict=True):
                found[numbers[assign]] = own
            if not busy:
                return found
            other, numbers = machine.room(len(busy), rules.beams, room.size.longest, 1), [numbers[i] for i in busy]
            other.follow(rules)
            other.take(room, busy, step)
            room = other
    for number, own in zip(numbers, _collect(machine, room, range(len(numbers)), step), strict=True):
        found[number] = own
    return found


def rounded(number: int) -> int:
    """Up to three binary digits and zeros: few sizes, none much too large."""
    unit = 1 << max(0, number.bit_length() - 3)
    return -(-number // unit) * unit


def _collect(machine: Machine, room: SearchBuffers, seats: Sequence[int], steps: int) -> list[Found]:
    """What was found in these seats, after so many steps."""
    ended = room.found[:, : LENGTH + 1, : room.rules.nbest]
    traced = machine.ops(room.size.rows).trace(room, steps)
    scores, lengths, tokens, costs = _fetched(ended, traced)
    results = []
    for assign in seats:
        own = range(assign * room.rules.nbest, (assign + 1) * room.rules.nbest)
        rows = [(row, int(lengths[row])) for row in own if scores[row] > -np.inf]
        results.append([Hypothesis(tokens[row][:size], scores[row], costs[row][:size]) for row, size in rows])
    return results


def _fetched(ended: torch.Tensor, traced: torch.Tensor) -> tuple[list, ...]:
    """Scores, lengths, tokens and costs of hypotheses as lists."""
    scores, lengths = ended.transpose(0, 1).flatten(1).tolist()
    said, costs = traced.cpu().numpy()
    return scores, lengths, said.astype(np.int64).tolist(), costs.tolist()
