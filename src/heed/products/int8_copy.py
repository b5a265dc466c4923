"""A copy of a model with linear layers in 8-bit integers, on a CPU with instructions for them."""

import threading
import warnings
from typing import Any

import torch
from torch import nn

from heed.kernels import int8
from heed.products.translator.engines.cuda import WeightSnapshot


class Int8Copy:
    """An int8 copy of a model, rebuilt after its weights have changed. If it is not `required`, a model that cannot be
    copied runs as it is.
    """

    name = "int8"  # of the engine
    done, instead = "quantized", "float32"  # for messages

    @property
    def described(self) -> str:
        """The name, and more where results depend on it."""
        return self.name

    def __init__(self, model: nn.Module, required: bool = False):
        self.model, self.required, self.lock = model, required, threading.Lock()
        self.copy: Any = None
        self.snapshot: WeightSnapshot | None = None

    def takes(self) -> bool:
        """Whether to use it for the model as it is now."""
        if not self.supported():
            return False
        with self.lock:
            if self.snapshot is None or not self.snapshot.matches(self.model):
                self.snapshot, self.copy = WeightSnapshot(self.model), self._copied()
            return self.copy is not None

    def supported(self) -> bool:
        self.check()
        return not self.model.training and self.lacking() is None

    def check(self) -> None:
        """Refuse a model that cannot be copied if the copy is required."""
        if self.required and (reason := self.lacking()):
            raise ValueError(f"engine is {self.name!r}, but {reason}: use torch")

    def lacking(self) -> str | None:
        """Why the model does not run on this copy, or None if it does."""
        return unsupported(self.model)

    def make(self) -> nn.Module:
        return int8.int8_copy(self.model)

    def _copied(self) -> Any:
        try:
            with torch.inference_mode(False), torch.no_grad():  # its weights are ordinary tensors
                return self.make()
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            if self.required:
                raise ValueError(f"the model cannot be {self.done}: {reason}; use engine torch") from error
            warnings.warn(
                f"the model cannot be {self.done}, using {self.instead}, which is slower: {reason}", stacklevel=4
            )
            return None


def unsupported(model: nn.Module) -> str | None:
    """Why a model does not run in int8 here, or None if it does."""
    if reason := not_in_float32(model) or int8.unavailable():
        return reason
    return None if int8.supports(model) else f"it does not support this {type(model).__name__}"


def not_in_float32(model: nn.Module) -> str | None:
    """Why a model is not one in float32 on a CPU, or None if it is."""
    for weight in model.parameters():
        if weight.device.type != "cpu":
            return f"it only runs on the CPU, and the model is on {weight.device}"
        if weight.dtype != torch.float32:
            return f"it needs a model in float32, and this one is in {str(weight.dtype).removeprefix('torch.')}"
    return None
