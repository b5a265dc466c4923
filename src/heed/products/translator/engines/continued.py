"""A search that ran before the model was opened (`heed.products.translator.quick`) and found faults: its results are
used, so that only faulty translations are searched again.
"""

from heed.decoding.config import DecodingConfig
from heed.products.translator.engines.engine import Engine
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences
from heed.products.translator.quick import Searched


class Continued:
    """The engine that ran the search, or runs it if anything differs."""

    def __init__(self, engine: Engine, searched: Searched):
        self.engine, self.searched, self.name = engine, searched, engine.name

    def takes(self, config: DecodingConfig, prefixes: Sentences) -> bool:
        return self.engine.takes(config, prefixes)

    def for_bundle(self, bundle: ModelBundle) -> Engine:
        return self.engine.for_bundle(bundle)

    def search(self, sources: Sentences, config: DecodingConfig, prefixes: Sentences, batch_tokens: int) -> Hypotheses:
        if (sources, config) == (self.searched.parts.ids, self.searched.config):
            return [list(nbest) for nbest in self.searched.found]
        return self.engine.search(sources, config, prefixes, batch_tokens)
