"""Image models on an NVIDIA GPU, in bfloat16: a copy with fused layers."""

import warnings
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from heed.kernels import fused_model
from heed.products.translator.engines.cuda import WeightSnapshot, supports_device


class FusedImageModel:
    """Runs images through a fused copy of a model, rebuilt after its weights have changed, or through the model
    itself.
    """

    def __init__(self, model: nn.Module):
        self.model = model
        self.copy: Any = None
        self.snapshot: WeightSnapshot | None = None

    def current(self) -> Any:
        if not can_fuse(self.model):
            return self.model
        if self.snapshot is None or not self.snapshot.matches(self.model):
            self.snapshot, self.copy = WeightSnapshot(self.model), self._fused()
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


def can_fuse(model: nn.Module) -> bool:
    """Whether a model is in bfloat16 on a GPU with kernels for it."""
    weight = next(model.parameters())
    if weight.dtype != torch.bfloat16 or not supports_device(weight.device) or find_spec("triton") is None:
        return False
    return fused_model.supports(model)
