"""Text generation on a CPU with instructions for 8-bit integers: searches run on a copy with quantized linear layers.
What measures the model, such as scores of texts, uses the model itself.
"""

from functools import cached_property

from torch import nn

from heed.kernels.int8_text import Int8Text
from heed.products.int8_copy import Int8Copy, unsupported

ENGINES = ("auto", "torch", "int8", "ctranslate2")
WORTHWHILE = 20_000_000  # weights: smaller ones stay in the caches, and gain too little to be quantized first


class Int8TextModel(Int8Copy):
    """An int8 copy of a language model; unless it is `required`, of a large one only."""

    def supported(self) -> bool:
        return (self.required or self.weights >= WORTHWHILE) and super().supported()

    def make(self) -> nn.Module:
        return Int8Text(self.model)

    @cached_property
    def weights(self) -> int:
        return sum(weight.numel() for weight in self.model.parameters())

    def for_search(self) -> nn.Module:
        """The copy if it can be used, otherwise the model."""
        return self.copy if self.takes() else self.model


def int8_engine(model: nn.Module, engine: str) -> Int8TextModel | None:
    """The copy for searches with the engine of this name; None without one. Raises an error if int8 is requested but
    unavailable.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; it must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    if engine == "int8" and (reason := unsupported(model)):
        raise ValueError(f"engine is 'int8', but {reason}: use torch")
    return Int8TextModel(model, required=engine == "int8") if engine in ("auto", "int8") else None
