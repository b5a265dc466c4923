"""Image models on an NVIDIA GPU, in bfloat16: a copy with fused layers, whose products may be of 8-bit floats."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from heed.kernels import fp8, fused_model
from heed.kernels.cuda_graph import capture
from heed.products.translator.engines.cuda import WeightSnapshot, supports_device


class FusedImageModel:
    """Runs images through a fused copy of a model, rebuilt after its weights have changed, or through the model
    itself. The products of the copy are of 8-bit floats with engine "fp8" and, where that is supported, with "auto".
    """

    def __init__(self, model: nn.Module, engine: str = "torch"):
        self.model, self.engine = model, engine
        self.copy: Any = None
        self.snapshot: WeightSnapshot | None = None
        self.captured: dict[tuple[int, ...], CapturedBatch] = {}
        if engine == "fp8":
            refuse(without_fp8(model))

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
        if self.engine == "fp8":
            refuse(without_fp8(self.model) or other_format(self.model))
        if not can_fuse(self.model):
            return self.model
        if self.snapshot is None or not self.snapshot.matches(self.model):
            self.snapshot, self.copy, self.captured = WeightSnapshot(self.model), self._copied(), {}
        return self.model if self.copy is None else self.copy

    def _copied(self) -> Any:
        """None if its kernels fail, for instance without a compiler: then torch's are used. If those of 8-bit floats
        alone fail, the copy is in bfloat16.
        """
        with torch.inference_mode(False), torch.no_grad():  # its weights are ordinary tensors
            try:
                made: Any = fused_model.half_precision_copy(self.model, torch.bfloat16)
                self._try(made)
            except Exception as error:
                self._failed("fused kernels are unavailable, using torch's, which are slower", error)
                return None
            if self.engine not in ("auto", "fp8") or without_fp8(self.model):
                return made
            plain = made.stack
            try:
                made.stack = fp8.Fp8Stack(plain)
                self._try(made)
            except Exception as error:
                made.stack = plain
                self._failed("8-bit floats are unavailable, using bfloat16, which is slower", error)
        return made

    def _try(self, made: Any) -> None:
        c = self.model.config
        made.image_vectors(next(self.model.parameters()).new_zeros(1, c.channels, c.size, c.size))

    def _failed(self, said: str, error: Exception) -> None:
        reason = str(error).strip().split("\n")[0]
        if self.engine == "fp8":
            raise ValueError(f"the model cannot be quantized: {reason}; use engine torch") from error
        warnings.warn(f"{said}: {reason}", stacklevel=4)


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


def without_fp8(model: nn.Module) -> str | None:
    """Why the products of a model are not of 8-bit floats here, or None if they can be."""
    reason = fp8.unavailable(next(model.parameters()).device)
    return reason or (None if fp8.supports(model) else f"it does not support this {type(model).__name__}")


def other_format(model: nn.Module) -> str | None:
    """The same for the format of its weights, which may change after the engine was chosen."""
    dtype = next(model.parameters()).dtype
    name = str(dtype).removeprefix("torch.")
    return None if dtype == torch.bfloat16 else f"it quantizes bfloat16, and the model is in {name}"


def refuse(reason: str | None) -> None:
    if reason:
        raise ValueError(f"engine is 'fp8', but {reason}: use torch")
