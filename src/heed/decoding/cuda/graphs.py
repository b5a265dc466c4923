"""Steps of a search as CUDA graphs: captured once for each size, then started with one call each."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch

from heed.decoding.cuda.buffers import SearchBuffers, Size
from heed.decoding.cuda.kernels import FEW, SOME, Few, Many, Some
from heed.decoding.cuda.plain import Plain
from heed.decoding.cuda.search import Machine, rounded
from heed.decoding.cuda.step import remember, say
from heed.decoding.cuda.weights import Weights

SMALL = 4096  # tokens of sources up to which reading them is captured too: more keep the card busy without


class Graphs(Machine):
    """A machine on an NVIDIA card. All graphs have their passing results in one pool: only one runs at a time."""

    smallest = 256
    least = (8192, 4096)

    def __init__(self, weights: Weights):
        super().__init__(weights)
        self.device = weights.output.device
        self.aside = torch.cuda.Stream(self.device)
        self.counts = torch.zeros(2, dtype=torch.int32).pin_memory()
        self.events, self.asked = [torch.cuda.Event() for _ in range(2)], 0
        self.many, self.some, self.few = Many(), Some(), Few()
        self.few.ahead = self.some.ahead = torch.cuda.get_device_capability(self.device) >= (9, 0)

    def ops(self, rows: int) -> Plain:
        if rows <= FEW:
            return self.few
        return self.some if rows <= SOME else self.many

    def build(self, size: Size) -> SearchBuffers:
        if not self.rooms:  # a pool ends with the last graph that has it
            self.pool = torch.cuda.graph_pool_handle()
        room = super().build(size)
        room.graph = self._captured(lambda: say(self.weights, self.ops(size.rows), room))
        room.readers = {}
        return room

    def _captured(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """What `work` does, to be done again. It is done once before, so that all is compiled: a new room is empty."""
        graph = torch.cuda.CUDAGraph()
        self.aside.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.aside):
            work()
            graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
            try:
                work()
            except BaseException:
                with suppress(RuntimeError):
                    graph.capture_end()
                raise
            graph.capture_end()
        torch.cuda.current_stream(self.device).wait_stream(self.aside)
        return graph

    def remember(self, tokens: np.ndarray, places: np.ndarray, longest: int, room: SearchBuffers) -> None:
        self.asked = 0
        slots = max(32, rounded(len(tokens)))
        longest = max(16, 1 << (longest - 1).bit_length())
        both = np.zeros((2, slots if slots <= SMALL else len(tokens)), dtype=np.int32)
        both[:, : len(tokens)] = tokens, places
        given = torch.from_numpy(both).pin_memory()
        if slots > SMALL:
            return remember(self.weights, self.many, *given.to(self.device, non_blocking=True), longest, room)
        if (slots, longest) not in room.readers:
            stays = torch.zeros(2, slots, dtype=torch.int32, device=self.device)
            graph = self._captured(lambda: remember(self.weights, self.ops(slots), *stays, longest, room))
            room.readers[slots, longest] = stays, graph
        stays, graph = room.readers[slots, longest]
        stays.copy_(given, non_blocking=True)
        graph.replay()
        return None

    def step(self, room: SearchBuffers) -> None:
        room.graph.replay()
        now = self.asked % 2
        self.counts[now : now + 1].copy_(room.remaining, non_blocking=True)
        self.events[now].record()
        self.asked += 1

    def left(self, room: SearchBuffers) -> int:
        """As it was a step ago: the card is at work on the next one while the host waits for this answer."""
        if self.asked < 2:
            return room.size.sentences
        before = self.asked % 2
        self.events[before].synchronize()
        return int(self.counts[before])
