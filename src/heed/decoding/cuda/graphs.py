"""Search steps as CUDA graphs: captured once for each size, then launched by one call each."""

from collections.abc import Callable

import numpy as np
import torch

from heed.decoding.cuda.buffers import SearchBuffers, Size
from heed.decoding.cuda.kernels import MEDIUM_ROWS, SMALL_ROWS, LargeBatchOps, MediumBatchOps, SmallBatchOps
from heed.decoding.cuda.plain import TorchOps
from heed.decoding.cuda.search import SearchRunner, rounded
from heed.decoding.cuda.step import decode_step, encode_sources
from heed.decoding.cuda.text import Sampling, TextBuffers, TextRunner, text_step
from heed.decoding.cuda.weights import DecoderWeights, Weights
from heed.kernels.cuda_graph import capture

CAPTURED_TOKENS = 4096  # of sources, up to which encoding is captured too: more keep the GPU busy without a graph


def _make_ops(device: torch.device) -> tuple[LargeBatchOps, MediumBatchOps, SmallBatchOps]:
    large, medium, small = LargeBatchOps(), MediumBatchOps(), SmallBatchOps()
    small.pdl = medium.pdl = torch.cuda.get_device_capability(device) >= (9, 0)
    return large, medium, small


def _choose_ops(rows: int, large: TorchOps, medium: TorchOps, small: TorchOps) -> TorchOps:
    if rows <= SMALL_ROWS:
        return small
    return medium if rows <= MEDIUM_ROWS else large


class GraphRunner(SearchRunner):
    """Runs the search on an NVIDIA GPU. All graphs share one memory pool, since only one runs at a time."""

    shrink_above = 256
    initial_pool = (8192, 4096)

    def __init__(self, weights: Weights):
        super().__init__(weights)
        self.device = weights.output.device
        self.capture_stream = torch.cuda.Stream(self.device)
        self.counts = torch.zeros(2, dtype=torch.int32).pin_memory()
        self.events, self.steps = [torch.cuda.Event() for _ in range(2)], 0
        self.large, self.medium, self.small = _make_ops(self.device)

    def ops(self, rows: int) -> TorchOps:
        return _choose_ops(rows, self.large, self.medium, self.small)

    def make_buffers(self, size: Size) -> SearchBuffers:
        if not self.buffers:  # a graph pool is freed with its last graph
            self.graph_pool = torch.cuda.graph_pool_handle()
        buffers = super().make_buffers(size)
        buffers.graph = self._capture(lambda: decode_step(self.weights, self.ops(size.rows), buffers))
        buffers.encode_graphs = {}
        return buffers

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        return capture(work, self.capture_stream, self.graph_pool)

    def encode(self, tokens: np.ndarray, positions: np.ndarray, longest: int, buffers: SearchBuffers) -> None:
        self.steps = 0
        slots = max(32, rounded(len(tokens)))
        longest = max(16, 1 << (longest - 1).bit_length())
        padded = np.zeros((2, slots if slots <= CAPTURED_TOKENS else len(tokens)), dtype=np.int32)
        padded[:, : len(tokens)] = tokens, positions
        given = torch.from_numpy(padded).pin_memory()
        if slots > CAPTURED_TOKENS:
            return encode_sources(self.weights, self.large, *given.to(self.device, non_blocking=True), longest, buffers)
        if (slots, longest) not in buffers.encode_graphs:
            inputs = torch.zeros(2, slots, dtype=torch.int32, device=self.device)
            graph = self._capture(lambda: encode_sources(self.weights, self.ops(slots), *inputs, longest, buffers))
            buffers.encode_graphs[slots, longest] = inputs, graph
        inputs, graph = buffers.encode_graphs[slots, longest]
        inputs.copy_(given, non_blocking=True)
        graph.replay()
        return None

    def step(self, buffers: SearchBuffers) -> None:
        buffers.graph.replay()
        now = self.steps % 2
        self.counts[now : now + 1].copy_(buffers.unfinished, non_blocking=True)
        self.events[now].record()
        self.steps += 1

    def unfinished(self, buffers: SearchBuffers) -> int:
        """The count after the previous step: the GPU already runs the next one while the host waits."""
        if self.steps < 2:
            return buffers.size.sentences
        before = self.steps % 2
        self.events[before].synchronize()
        return int(self.counts[before])

    def fetch(self, *arrays: torch.Tensor) -> Callable[[], list[np.ndarray]]:
        copies = [torch.empty(own.shape, dtype=own.dtype, pin_memory=True) for own in arrays]
        for copy, own in zip(copies, arrays, strict=True):
            copy.copy_(own.contiguous(), non_blocking=True)
        event = torch.cuda.Event()
        event.record()

        def wait() -> list[np.ndarray]:
            event.synchronize()
            return [copy.numpy() for copy in copies]

        return wait


class GraphTextRunner(TextRunner):
    """Runs the steps of a language model on an NVIDIA GPU; prompts are read without a graph."""

    self_block = (64, 4)  # keys at once and warps of self-attention: texts are longer than translations

    def __init__(self, weights: DecoderWeights):
        super().__init__(weights)
        self.device = weights.output.device
        self.stream = torch.cuda.Stream(self.device)
        self.made = _make_ops(self.device)
        for ops in self.made:
            ops.self_block = self.self_block
        self.reading = self.made[0]

    def make_buffers(self, size: Size, sampling: Sampling | None) -> TextBuffers:
        if not self.buffers:  # a graph pool is freed with its last graph
            self.graph_pool = torch.cuda.graph_pool_handle()
        buffers, ops = super().make_buffers(size, sampling), _choose_ops(size.rows, *self.made)
        buffers.graph = capture(lambda: text_step(self.weights, ops, buffers, sampling), self.stream, self.graph_pool)
        return buffers

    def step(self, buffers: TextBuffers, sampling: Sampling | None) -> None:
        buffers.graph.replay()
