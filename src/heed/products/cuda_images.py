"""Image models on an NVIDIA GPU, in bfloat16: a copy with fused layers."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from heed.kernels import fused_model
from heed.kernels.cuda_graph import capture
from heed.products.translator.engines.cuda import WeightSnapshot, supports_device


class FusedImageModel:
    """Runs images through a fused copy of a model, rebuilt after its weights have changed, or through the model
    itself.
    """

    def __init__(self, model: nn.Module):
        self.model = model
        self.copy: Any = None
        self.snapshot: WeightSnapshot | None = None
        self.captured: dict[tuple[int, ...], CapturedBatch] = {}

    def run(self, pixels: Tensor, work: Callable[[Any, Tensor], Tensor], full: bool) -> Tensor:
        """`work` of the current model and a batch of images as bytes. With the fused copy, `full` batches, which have
        all one size, are captured as a CUDA graph: launching its kernels one by one takes the CPU longer than the GPU
        computes.
        """
        model = self.current()
        if model is self.model or not full or not on_gpu(pixels):
            return work(model, pixels)
        if pixels.shape not in self.captured:
            self.captured[pixels.shape] = CapturedBatch(lambda own: work(model, own), pixels)
        return self.captured[pixels.shape](pixels)

    def current(self) -> Any:
        if not can_fuse(self.model):
            return self.model
        if self.snapshot is None or not self.snapshot.matches(self.model):
            self.snapshot, self.copy, self.captured = WeightSnapshot(self.model), self._fused(), {}
        return self.model if self.copy is None else self.copy

    def _fused(self) -> Any:
        """None if its kernels fail, for instance without a compiler: then torch's are used."""
        try:
            c = self.model.config
            with torch.inference_mode(False), torch.no_grad():  # its weights are ordinary tensors
                made: Any = fused_model.half_precision_copy(self.model, torch.bfloat16)
                made.image_vectors(next(self.model.parameters()).new_zeros(1, c.channels, c.size, c.size))
            return made
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            warnings.warn(f"fused kernels are unavailable, using torch's, which are slower: {reason}", stacklevel=3)
            return None


class CapturedBatch:
    """A function of a batch as a CUDA graph. If capturing fails, the function itself is called."""

    def __init__(self, work: Callable[[Tensor], Tensor], example: Tensor):
        self.work, self.input = work, example.clone()
        self.output: Any = None
        self.graph: Any = None
        try:
            self.graph = record(self._compute, example.device)
        except RuntimeError as error:
            reason = str(error).strip().split("\n")[0]
            warnings.warn(f"images are classified without a CUDA graph, which is slower: {reason}", stacklevel=4)

    def _compute(self) -> None:
        self.output = self.work(self.input)

    def __call__(self, batch: Tensor) -> Tensor:
        if self.graph is None:
            return self.work(batch)
        self.input.copy_(batch)
        self.graph.replay()
        return self.output.clone()  # the next batch overwrites it


def record(work: Callable[[], None], device: torch.device) -> torch.cuda.CUDAGraph:
    return capture(work, torch.cuda.Stream(device), torch.cuda.graph_pool_handle())


def on_gpu(pixels: Tensor) -> bool:
    return pixels.is_cuda


def can_fuse(model: nn.Module) -> bool:
    """Whether a model is in bfloat16 on a GPU with kernels for it."""
    weight = next(model.parameters())
    if weight.dtype != torch.bfloat16 or not supports_device(weight.device) or find_spec("triton") is None:
        return False
    return fused_model.supports(model)
