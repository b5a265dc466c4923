"""Image models on a CPU with instructions for 8-bit integers: a copy with quantized linear layers."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from heed.kernels import int8
from heed.products.translator.engines.cuda import WeightSnapshot

ENGINES = ("auto", "torch", "int8")
PATCHES = 600  # run at once, for each thread: their states fit into the caches


class Int8ImageModel:
    """Runs images through an int8 copy of a model, rebuilt after its weights have changed. If it is not `required`, a
    model that cannot be copied runs as it is.
    """

    def __init__(self, model: nn.Module, required: bool = False):
        self.model, self.required = model, required
        self.copy: Any = None
        self.snapshot: WeightSnapshot | None = None

    def takes(self) -> bool:
        """Whether to use it for the model as it is now."""
        if reason := unsupported(self.model):
            if self.required:
                raise ValueError(f"engine is 'int8', but {reason}: use torch")
            return False
        if self.snapshot is None or not self.snapshot.matches(self.model):
            self.snapshot, self.copy = WeightSnapshot(self.model), self._copied()
        return self.copy is not None

    def _copied(self) -> Any:
        try:
            with torch.inference_mode(False), torch.no_grad():  # its weights are ordinary tensors
                return int8.int8_copy(self.model)
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            if self.required:
                raise ValueError(f"the model cannot be quantized: {reason}; use engine torch") from error
            warnings.warn(f"the model cannot be quantized, using float32, which is slower: {reason}", stacklevel=4)
            return None

    def run(self, pixels: Tensor, work: Callable[[Any, Tensor], Tensor]) -> Tensor:
        """`work` of the copy and a batch of images as bytes, in parts."""
        parts = math.ceil(len(pixels) * self.model.config.max_length / (PATCHES * torch.get_num_threads()))
        return torch.cat([work(self.copy, part) for part in pixels.tensor_split(max(1, min(parts, len(pixels))))])


def unsupported(model: nn.Module) -> str | None:
    """Why a model does not run in int8 here, or None if it does."""
    weight = next(model.parameters())
    if weight.device.type != "cpu":
        return f"it only runs on the CPU, and the model is on {weight.device}"
    if weight.dtype != torch.float32:
        return f"it quantizes float32, and the model is in {str(weight.dtype).removeprefix('torch.')}"
    return int8.unavailable() or (None if int8.supports(model) else f"it does not support this {type(model).__name__}")


def int8_engine(model: nn.Module, engine: str) -> Int8ImageModel | None:
    """The engine of this name for a model; None is torch. Raises an error if int8 is requested but unavailable."""
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; for images it must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    if engine == "torch":
        return None
    found = Int8ImageModel(model, required=engine == "int8")
    if found.required and (reason := unsupported(model)):
        raise ValueError(f"engine is 'int8', but {reason}: use torch")
    return found
