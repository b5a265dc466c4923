"""A single-text model in CTranslate2 on the CPU: converted on first use, and again after its weights have changed."""

from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar

import torch
from torch import nn

from heed.convert import ctranslate2_import
from heed.convert.ctranslate2 import able
from heed.convert.ctranslate2_names import names
from heed.models.package import Package
from heed.products.translator.engines import cache
from heed.products.translator.engines.ctranslate2 import Pools
from heed.products.translator.engines.ctranslate2_search import workers_and_threads
from heed.vocabularies.vocabulary import Vocabulary

KIND = "float32"  # so that results are those of torch; with 8 bits some are others


def unsupported(model: nn.Module) -> str | None:
    """Why CTranslate2 cannot run a model, or None if it can."""
    if find_spec("ctranslate2") is None:
        return "its package is not installed; pip install ctranslate2"
    return None if able(model) else f"it does not support this {type(model).__name__}; use torch"


class CTranslate2Model:
    """`kind` is the number format of the weights; `opens` is the CTranslate2 class for such models."""

    opens: ClassVar[str]

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, kind: str | None = None):
        if reason := unsupported(model):
            raise ValueError(f"engine is 'ctranslate2', but {reason}")
        self.model, self.vocabulary, self.kind, self.shared = model, vocabulary, kind or KIND, Pools()

    @property
    def name(self) -> str:
        return f"ctranslate2-{self.kind}"

    @cached_property
    def names(self) -> list[str]:
        return names(self.vocabulary, self.model.config.vocab_size)

    def ready(self) -> bool:
        """Whether the model is in the state CTranslate2 needs: in evaluation mode, float32, on the CPU."""
        weights = self.model.parameters()
        return not self.model.training and all(
            own.dtype == torch.float32 and own.device.type == "cpu" for own in weights
        )

    def pool(self, texts: int) -> tuple[Any, int]:
        """The CTranslate2 object for this many texts, and how many batches it runs at once."""
        size = workers_and_threads(texts, torch.get_num_threads())
        with self.shared.lock:
            weights = self.model.parameters()
            snapshot = tuple((own.data_ptr(), 0 if own.is_inference() else own._version) for own in weights)
            if snapshot != self.shared.snapshot:
                self.shared.pools, self.shared.snapshot = {}, snapshot
            if size not in self.shared.pools:
                self.shared.pools[size] = self.open(*size)
            return self.shared.pools[size], size[0]

    def open(self, workers: int, threads: int) -> Any:
        """The model in CTranslate2, with the current weights."""
        opener = getattr(ctranslate2_import.ctranslate2(), self.opens)
        package = Package(self.model, "any", {"text": self.vocabulary}, {})
        options = {"device": "cpu", "compute_type": self.kind, "inter_threads": workers, "intra_threads": threads}
        return cache.with_folder(package, self.kind, lambda folder: opener(str(folder), **options))[1]
