"""Text generation on a CPU with instructions for 8-bit integers: searches run on a copy with quantized linear layers.
What measures the model, such as scores of texts, uses the model itself.
"""

from torch import nn

from heed.kernels.int8_text import Int8Text
from heed.products.int8_copy import Int8Copy, unsupported

ENGINES = ("auto", "torch", "int8", "ctranslate2")


class Int8TextModel(Int8Copy):
    """An int8 copy of a language model."""

    def make(self) -> nn.Module:
        return Int8Text(self.model)

    def for_search(self) -> nn.Module:
        """The copy if it can be used, otherwise the model."""
        return self.copy if self.takes() else self.model


def int8_engine(model: nn.Module, engine: str) -> Int8TextModel | None:
    """The copy for searches if the engine of this name is int8, or an error if that is unavailable. "auto" has none: what
    it costs large models trained elsewhere has not been measured.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; it must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    if engine != "int8":
        return None
    if reason := unsupported(model):
        raise ValueError(f"engine is 'int8', but {reason}: use torch")
    return Int8TextModel(model, required=True)
