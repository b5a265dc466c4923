"""Search engines: a translator asks them in order, and the first that supports a search runs it."""

from typing import Protocol, runtime_checkable

from heed.decoding.config import DecodingConfig
from heed.products.product import in_batches
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences

ENGINES = "auto", "torch", "ctranslate2"


@runtime_checkable
class Engine(Protocol):
    """A search engine. The translation of `sources[i]` must begin with `prefixes[i]`."""

    name: str

    def takes(self, config: DecodingConfig, prefixes: Sentences) -> bool:
        """Whether it supports all settings of this search."""

    def search(self, sources: Sentences, config: DecodingConfig, prefixes: Sentences, batch_tokens: int) -> Hypotheses:
        """The best hypotheses for each source, best first."""

    def for_bundle(self, bundle: ModelBundle) -> "Engine":
        """The same models with other vocabularies, those of another direction; weights are shared."""


class TorchEngine:
    """The reference search in PyTorch, on any device and with any settings."""

    name = "torch"

    def __init__(self, bundle: ModelBundle):
        self.bundle = bundle

    def takes(self, config: DecodingConfig, prefixes: Sentences) -> bool:
        return True

    def for_bundle(self, bundle: ModelBundle) -> "TorchEngine":
        return TorchEngine(bundle)

    def search(self, sources: Sentences, config: DecodingConfig, prefixes: Sentences, batch_tokens: int) -> Hypotheses:
        def search(rows: list[int]) -> Hypotheses:
            batch = [sources[row] for row in rows]
            keys = [(row, sources[row]) for row in rows]  # a sample depends on these, not on its batch
            return self.bundle.search(batch, config, prefixes=[prefixes[row] for row in rows], keys=keys)

        return in_batches(search, range(len(sources)), [len(source) + 1 for source in sources], batch_tokens)
