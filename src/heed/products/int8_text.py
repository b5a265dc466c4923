"""Text generation on a CPU: searches run on a copy of the model for them. Its steps are C code where there is a compiler,
and its weights are in 8-bit integers where the CPU has instructions for them. What measures the model, such as scores of
texts, uses the model itself.
"""

from torch import nn

from heed.kernels import int8, native_text
from heed.kernels.int8_text import Int8Weights
from heed.kernels.native_text import NativeInt8Weights, NativeTextModel
from heed.kernels.text_model import TextModel
from heed.products.int8_copy import Int8Copy, not_in_float32

ENGINES = ("auto", "torch", "native", "int8", "ctranslate2")
LARGE = 10_000_000  # weights from which on reading them takes most of a step: "auto" leaves smaller models as they are


class SearchCopy(Int8Copy):
    """A copy of a language model for searches, with the same weights and results."""

    name = "torch"
    done, instead = "copied for a search", "the model itself"

    def make(self) -> nn.Module:
        return TextModel(self.model)

    def supported(self) -> bool:
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        return on_cpu and not self.model.training and int8.supports(self.model)


class NativeCopy(Int8Copy):
    """A copy whose steps are C code, with the same weights, and results that differ by rounding."""

    name = "native"
    done, instead = "copied for a search", "torch"

    def make(self) -> nn.Module:
        return NativeTextModel(self.model)

    def lacking(self) -> str | None:
        return not_in_float32(self.model) or native_text.unsupported(self.model)


class Int8TextModel(Int8Copy):
    """An int8 copy of a language model."""

    @property
    def described(self) -> str:
        return "int8 in torch" if native_text.unsupported(self.model) else "int8"

    def make(self) -> nn.Module:
        if native_text.unsupported(self.model):
            return TextModel(self.model, Int8Weights)
        return NativeTextModel(self.model, NativeInt8Weights)

    def supported(self) -> bool:
        if not self.required and sum(weight.numel() for weight in self.model.parameters()) < LARGE:
            return False
        return super().supported()


def search_copies(model: nn.Module, engine: str) -> list[Int8Copy]:
    """The copies that the engine of this name may use for searches, the best first; or an error if it is requested but
    unavailable.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; it must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    kinds = [own for own in (Int8TextModel, NativeCopy) if engine in ("auto", own.name)]
    copies = [own(model, required=engine != "auto") for own in kinds]
    for own in copies:
        own.check()
    return [*copies, SearchCopy(model)]
