"""Image models on a CPU with instructions for 8-bit integers: a copy with quantized linear layers."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from heed.products.int8_copy import Int8Copy, unsupported

PATCHES = 600  # run at once, for each thread: their states fit into the caches


class Int8ImageModel(Int8Copy):
    """Runs images through an int8 copy of a model."""

    def run(self, pixels: Tensor, work: Callable[[Any, Tensor], Tensor]) -> Tensor:
        """`work` of the copy and a batch of images as bytes, in parts."""
        parts = math.ceil(len(pixels) * self.model.config.max_length / (PATCHES * torch.get_num_threads()))
        return torch.cat([work(self.copy, part) for part in pixels.tensor_split(max(1, min(parts, len(pixels))))])


def int8_engine(model: nn.Module, engine: str) -> Int8ImageModel | None:
    """The engine of this name for a model; None is another one. Raises an error if int8 is requested but unavailable."""
    if engine not in ("auto", "int8"):
        return None
    found = Int8ImageModel(model, required=engine == "int8")
    if found.required and (reason := unsupported(model)):
        raise ValueError(f"engine is 'int8', but {reason}: use torch")
    return found
