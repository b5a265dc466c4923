"""Translation: text in, text out; models with their vocabularies and a search."""

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from heed import config as settings
from heed.decoding.config import DecodingConfig, changed
from heed.lab.attention import Look
from heed.models.package import Package
from heed.products.product import Product, as_texts, in_batches
from heed.products.translator import attention_trace, forward_trace, passages, stages
from heed.products.translator.alignment import Links, join_links
from heed.products.translator.directions import Direction, Directions
from heed.products.translator.engines import ctranslate2
from heed.products.translator.engines.cuda import CudaEngine
from heed.products.translator.engines.engine import ENGINES, Engine, TorchEngine
from heed.products.translator.forward_trace import Choice, Query, Token
from heed.products.translator.guards import Guards
from heed.products.translator.model_bundle import Hypotheses, IdPair, ModelBundle, Sentences, check_ensemble
from heed.products.translator.passages import TranslatorModel, can_require
from heed.products.translator.pipeline import Job, SearchPipeline
from heed.products.translator.results import Score, Translation
from heed.products.translator.term_tokens import RequiredTerms, TermEncoder
from heed.text.glossary import Glossary, as_glossary
from heed.vocabularies.vocabulary import Pair


class Translator(Product):
    """Translates text with one model, or with several as an ensemble."""

    noun, verbs, reads = "a translator", ("translate", "evaluate", "score", "look"), ("source", "target")

    def __init__(
        self,
        models: Sequence[nn.Module],
        vocabularies: Pair,
        *,
        decoding: DecodingConfig | None = None,
        max_source: int | None = None,
        facts: dict[str, Any] | None = None,
        shortlist: str | None = None,
    ):
        self.decoding, self.facts = decoding or DecodingConfig(), facts or {}
        self._directions = Directions(vocabularies, self.facts)
        initial = self._directions.initial()
        self._set_bundle(ModelBundle(list(models), initial or vocabularies, shortlist))
        self.bundle.undirected = None if initial else self.toward
        self.models, self.model, self.shortlist = self.bundle.models, self.bundle.model, shortlist
        self.max_source = min(max_source or self.bundle.max_length, self.bundle.max_length)
        self.term_encoder = TermEncoder(self.bundle.vocabularies, self.model.config.vocab_size, self.bundle.max_target)
        last = attention_trace.AlignmentRows(self.model.config.decoder_layers - 1, after=False)
        self.alignment_rows = attention_trace.AlignmentRows(**self.facts.get("alignment", last._asdict()))
        self.engines: list[Engine] = [TorchEngine(self.bundle)]  # asked in this order; the last takes every search

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], *, engine: str = "auto") -> Any:
        first = packages[0]
        check_ensemble(packages, names)
        models, facts = [package.model for package in packages], first.facts
        decoding = settings.read(DecodingConfig, facts.get("decoding", {}), f"{names[0]}/config.json: decoding.")
        options = {"max_source": facts.get("max_source"), "facts": facts, "shortlist": first.shortlist}
        translator = cls(models, first.vocabularies, decoding=decoding, **options)
        translator.use(engine)
        return translator

    @property
    def device(self) -> torch.device:
        return self.bundle.device

    @property
    def guards(self) -> Guards:
        """What prevents loops, overlong translations and copies."""
        languages = self.facts.get("languages") or {}
        return Guards(self.bundle, (languages.get("source"), languages.get("target")))

    @property
    def directions(self) -> list[Direction]:
        """The supported directions, as (source, target); none if the folder does not say."""
        return list(self._directions.pairs)

    def toward(self, source: str | None = None, target: str | None = None) -> "Translator":
        """The translator of one direction, with the same weights and engines; this one if there is only one."""
        chosen = self._directions.choose(source, target)
        if len(self._directions.pairs) < 2:
            return self
        own, pair = copy.copy(self), self._directions.pair(chosen)
        own.facts = self._directions.only(chosen)
        own._directions = Directions(pair, own.facts)
        own._set_bundle(ModelBundle(self.models, pair, self.shortlist))
        own.term_encoder = self.term_encoder.for_pair(pair)
        own.engines = [engine.for_bundle(own.bundle) for engine in self.engines]
        return own

    def twin(self) -> "Translator":
        """The same weights and engines with separate modules: two threads may use the two at once, also for
        inspection.
        """
        own, weights = (
            copy.copy(self),
            {id(own): own for model in self.models for own in model.state_dict(keep_vars=True).values()},
        )
        own.models = [copy.deepcopy(model, weights) for model in self.models]
        own.model = own.models[0]
        own._set_bundle(ModelBundle(own.models, self.bundle.vocabularies, self.shortlist))
        own.bundle.undirected = own.toward if self.bundle.undirected else None
        own.engines = [engine.for_bundle(own.bundle) for engine in self.engines]
        return own

    def _set_bundle(self, bundle: ModelBundle) -> None:
        self.bundle, self.special = bundle, bundle.special
        self.source, self.target = bundle.vocabularies

    def use(self, engine: str, kind: str | None = None) -> None:
        """Choose the search engine: "torch" is the reference; "ctranslate2", for one model on the CPU, is faster and
        quantizes weights. "auto" is CTranslate2 if possible. Unsupported searches run on torch. `kind` is
        CTranslate2's number format: "int8" (default, if the CPU supports it) or "float32".
        """
        if engine not in ENGINES:
            raise ValueError(f"engine is {engine!r}; it must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
        reference = TorchEngine(self.bundle)
        self.engines = [reference] if engine == "torch" else [CudaEngine(self.bundle), reference]
        reason = ctranslate2.unsupported(self.bundle)
        if engine == "ctranslate2" and reason:
            raise ValueError(f"engine is 'ctranslate2', but {reason}; use auto or torch")
        if engine != "torch" and not reason:
            self.engines.insert(0, ctranslate2.CTranslate2(self.bundle, kind, required=engine == "ctranslate2"))

    def engine(self, **decoding: Any) -> str:
        """The name of the engine that runs a search with these settings."""
        return next(engine for engine in self.engines if engine.takes(self.search_config(decoding), [])).name

    def translate(  # noqa: PLR0913 (each is an option of its own, by its name)
        self,
        texts: str | Iterable[str],
        *,
        prefix: str | Sequence[str] | None = None,
        too_long: str = "split",
        batch_tokens: int = 4096,
        glossary: Glossary | Mapping[str, str] | None = None,
        keep: Sequence[str] = (),
        source: str | None = None,
        target: str | None = None,
        sentences: bool = False,
        **decoding: Any,
    ) -> Any:
        """Translate texts, in order; a single text gives one translation. `source` and `target` are languages,
        required for a model with several directions.

        A text is one unit; with `sentences`, its layout is kept, each sentence is translated separately, and URLs,
        template variables and long numbers are kept, as in the service. `parts` of a translation are then its
        sentences.

        `decoding` are settings of DecodingConfig (beam, nbest, length_penalty, sample, ...). `prefix` is a forced
        beginning. A text with more subwords than the model allows is translated in parts, truncated with
        too_long="cut" (`source` is what was read), or refused with too_long="refuse". Terms in `glossary` are
        translated as specified, and those in `keep` are left untranslated (docs/guides/glossary.md); `terms` of a
        translation lists them.
        """
        options = {"prefix": prefix, "too_long": too_long, "batch_tokens": batch_tokens}
        options |= {"glossary": glossary, "keep": keep}
        if source or target or self.bundle.undirected:
            return self.toward(source, target).translate(texts, sentences=sentences, **options, **decoding)
        if isinstance(texts, str):
            return self.translate([texts], sentences=sentences, **options, **decoding)[0]
        texts, config, terms = as_texts(texts), self.search_config(decoding), as_glossary(glossary, keep)
        if sentences:
            given = {"too_long": too_long, "batch_tokens": batch_tokens, **decoding}
            model = TranslatorModel(self, terms, given, can_require(config))
            return passages.translate(model, texts, config, (self.facts.get("languages") or {}).get("source"), prefix)
        given = {"prefix": prefix, "too_long": too_long, "batch_tokens": batch_tokens}
        return stages.translate(self, texts, config, terms, **given)

    def score(self, sources: Iterable[str], targets: Iterable[str], batch_tokens: int = 4096) -> list[Score]:
        """How likely each target is, given its source."""
        sources, targets = list(sources), list(targets)
        ids = stages.prepare_pairs(self, sources, targets)
        return stages.finish_scores(self, sources, targets, ids, stages.score(self, ids, batch_tokens))

    def align(self, translations: Sequence[Translation], batch_tokens: int = 4096) -> list[Links]:
        """Word alignments of translations, as (source word, target word)."""
        whole = [t.parts or [t] for t in translations]
        flat = [part for parts in whole for part in parts]
        found = iter(self.align_pairs([p.source for p in flat], [p.text for p in flat], batch_tokens))
        tags = [self.source.language_tag(translation.source) for translation in translations]
        both = zip(translations, whole, tags, strict=True)
        return [join_links(own, parts, [next(found) for _ in parts], tag) for own, parts, tag in both]

    def align_pairs(self, sources: Iterable[str], targets: Iterable[str], batch_tokens: int = 4096) -> list[Links]:
        """Word alignments of texts with given translations."""
        ids = self.encode_pairs(list(sources), list(targets))
        pairs = [(source, target) for source, target in ids if source and target]
        align = partial(
            attention_trace.align_batch, self.model, vocabularies=self.bundle.vocabularies, rows=self.alignment_rows
        )
        found = iter(in_batches(align, pairs, [len(s) + len(t) for s, t in pairs], batch_tokens))
        return [next(found) if source and target else [] for source, target in ids]

    def attentions(self, source: str, target: str) -> dict[str, np.ndarray]:
        """All attention weights of the (first) model for a source and a given target."""
        return attention_trace.trace_pair(self.model, self.encode_pairs([source], [target])[0], self.special).maps

    def attentions_of(self, translation: Translation) -> dict[str, np.ndarray]:
        """All attention weights of the (first) model for a translation: one row per token."""
        if count := len(translation.parts):
            raise ValueError(f"the text was translated in {count} parts: get the attentions from each part")
        rows, (ids, special) = len(translation.ids), self.bundle.strip(translation.ids)
        maps = attention_trace.trace_pair(self.model, (self.source.encode([translation.source])[0], ids), special).maps
        return maps | {"decoder": maps["decoder"][:, :, :rows, :rows], "cross": maps["cross"][:, :, :rows]}

    def look(self, text: str, target: str | None = None, name: str = "", **decoding: Any) -> Look:
        """Everything about one translation: attentions, likely tokens, the search, the alignment."""
        return attention_trace.look(self.guards, self.alignment_rows, text, target, self.search_config(decoding), name)

    def trace(
        self,
        text: str,
        translation: str | None = None,
        *,
        beam: int | None = None,
        query: Query | None = None,
        choice: Choice | None = None,
        token: Token | None = None,
    ) -> dict[str, Any]:
        """The (first) model's forward pass over a text and its translation, its own or a given one, as numbers."""
        config = dataclasses.replace(self.decoding, beam=beam or self.decoding.beam)
        return forward_trace.trace(self.guards, text, translation, config, query, choice, token)

    def encode_pairs(self, sources: Sequence[str], targets: Sequence[str]) -> list[IdPair]:
        """Texts with given translations as ids; those too long for the model are refused."""
        return self.bundle.encode_pairs(sources, targets)

    def search_ids(
        self,
        ids: Sentences,
        config: DecodingConfig,
        prefixes: Sentences,
        batch_tokens: int = 4096,
        required: Sequence[RequiredTerms] = (),
    ) -> Hypotheses:
        """The best hypotheses for each source, with their prefixes and required terms."""
        return self.pipeline.search(Job(ids, prefixes, required, batch_tokens, range(len(ids))), config)

    @property
    def pipeline(self) -> SearchPipeline:
        """The complete search."""
        return SearchPipeline(self.engines, self.guards, self.term_encoder, self.alignment_rows)

    def parts(self, text: str) -> list[str]:
        """A text split into parts that the model allows."""
        return stages.split_long(self, [text], "split").texts

    def search_config(self, changes: Mapping[str, Any]) -> DecodingConfig:
        """Its search settings with some changes."""
        if not self.bundle.undirected:
            self.guards.faults.check(changes)
        return changed(self.decoding, changes)
