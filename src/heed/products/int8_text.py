"""Text generation on a CPU with instructions for 8-bit integers: searches run on a copy with quantized weights.
What measures the model, such as scores of texts, uses the model itself.
"""

from torch import nn

from heed.kernels.int8_text import Int8Text
from heed.products.int8_copy import Int8Copy, unsupported

ENGINES = ("auto", "torch", "int8", "ctranslate2")
LARGE = 10_000_000  # weights from which on reading them takes most of a step: "auto" leaves smaller models as they are


class Int8TextModel(Int8Copy):
    """An int8 copy of a language model."""

    def make(self) -> nn.Module:
        return Int8Text(self.model)

    def supported(self) -> bool:
        if not self.required and sum(weight.numel() for weight in self.model.parameters()) < LARGE:
            return False
        return super().supported()

    def for_search(self) -> nn.Module:
        """The copy if it can be used, otherwise the model."""
        return self.copy if self.takes() else self.model


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
