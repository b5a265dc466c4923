"""Text generation on a CPU: searches run on a copy for them, where the CPU has instructions for 8-bit integers on one
with quantized weights. What measures the model, such as scores of texts, uses the model itself.
"""

from torch import nn

from heed.kernels import int8
from heed.kernels.int8_text import Int8Weights
from heed.kernels.text_model import TextModel
from heed.products.int8_copy import Int8Copy, unsupported

ENGINES = ("auto", "torch", "int8", "ctranslate2")
LARGE = 10_000_000  # weights from which on reading them takes most of a step: "auto" leaves smaller models as they are


class SearchCopy(Int8Copy):
    """A copy of a language model for searches, with the same weights and results."""

    def make(self) -> nn.Module:
        return TextModel(self.model)

    def supported(self) -> bool:
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        return on_cpu and not self.model.training and int8.supports(self.model)


class Int8TextModel(Int8Copy):
    """An int8 copy of a language model."""

    def make(self) -> nn.Module:
        return TextModel(self.model, Int8Weights)

    def supported(self) -> bool:
        if not self.required and sum(weight.numel() for weight in self.model.parameters()) < LARGE:
            return False
        return super().supported()


def int8_engine(model: nn.Module, engine: str) -> Int8TextModel | None:
    """The copy for searches if the engine of this name may use one, or an error if int8 is requested but unavailable."""
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; it must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    if engine not in ("auto", "int8"):
        return None
    found = Int8TextModel(model, required=engine == "int8")
    if found.required and (reason := unsupported(model)):
        raise ValueError(f"engine is 'int8', but {reason}: use torch")
    return found
