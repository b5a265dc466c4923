"""Search engines: a translator asks them in order, and the first that supports a search runs it."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

from heed.decoding.config import DecodingConfig
from heed.decoding.refill import RefilledBatch
from heed.models.encoder_decoder import EncoderDecoder
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
        sizes = [len(source) + 1 for source in sources]
        find = partial(self._call, sources, config, prefixes)
        if self._refills(config):
            return RefilledBatch(self.bundle.search_model, partial(find, self.bundle.begin), sizes, batch_tokens).run()
        return in_batches(partial(find, self.bundle.search), range(len(sources)), sizes, batch_tokens)

    def _call(
        self,
        sources: Sentences,
        config: DecodingConfig,
        prefixes: Sentences,
        search: Callable[..., Any],
        rows: list[int],
    ) -> Any:
        """The result of `search` for these rows."""
        keys = [(row, sources[row]) for row in rows]  # a sample depends on these, not on its batch
        return search([sources[row] for row in rows], config, prefixes=[prefixes[row] for row in rows], keys=keys)

    def _refills(self, config: DecodingConfig) -> bool:
        """Whether waiting sentences may join a running batch."""
        if config.repetition_penalty != 1 or (config.sample and config.nbest > 1):
            return False
        return all(isinstance(model, EncoderDecoder) for model in self.bundle.models)
