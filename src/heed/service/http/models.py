"""The served translation models, each with the thread that runs it."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch

from heed.products.translator.directions import Direction
from heed.products.translator.engines.ctranslate2_search import workers_and_threads
from heed.products.translator.passages import MAX_TERMS_AT_ONCE, can_require, lacks, rate, with_required
from heed.products.translator.term_search import MIN_BEAMS
from heed.products.translator.translator import Translator
from heed.service.http.queue import BatchWorker, OnBatch, Ticket
from heed.text.glossary import Glossary
from heed.text.language_codes import name as language_name

MAX_ATTENTION_WEIGHTS = 2_000_000  # of a sentence that is inspected
# Costs in plain searches of the same engine, measured by `python -m bench.serving_costs`: of a search for terms, and of each of them.
TERMS_COST, TERMS_COST_TORCH = (2.0, 8.0), (2.0, 0.9)  # it runs in torch: beside a fast engine it costs more
MBR_COST = 4.8  # of reranking, at the default number of candidates
SLOW = (
    "terms",
    "call",
    "score",
)  # jobs of a thread of their own: one of them can take as long as hundreds of plain ones
SIZE_FIELDS = ("encoder_layers", "decoder_layers", "heads", "dim")


class TranslatedSentence(NamedTuple):
    """A model's translation of a sentence; tokens and nbest with their scores. `lacks_terms` of the glossary."""

    text: str
    score: float
    tokens: list[tuple[str, float]]
    nbest: list[tuple[str, float]]
    lacks_terms: bool = False


class TranslationOptions(NamedTuple):
    """Decoding settings, whether token scores are requested, and a glossary."""

    decoding: tuple[tuple[str, Any], ...] = ()
    tokens: bool = False
    glossary: Any = None

    def batch_key(self, has_prefix: bool) -> tuple:
        """Sentences with equal keys may share a batch."""
        terms = (tuple(self.glossary.terms.items()), self.glossary.keep) if self.glossary else None
        return ("terms" if terms else "translate", self.decoding, self.tokens, has_prefix, terms)


class Toward(NamedTuple):
    """The last part of a batch's key, for a model with several directions: only sentences of one direction share a
    batch.
    """

    source: str
    target: str


class DirectionWorker(NamedTuple):
    """The worker of a model with several directions, for one of them."""

    worker: BatchWorker
    direction: Toward

    def submit(self, ticket: Ticket, key: tuple, items: Sequence[Any], *sizes: Sequence[int | float]) -> list[Future]:
        return self.worker.submit(ticket, (*key, self.direction), items, *sizes)


@dataclass(eq=False)
class ServedModel:
    """One model with its languages and its worker. For a model with several `directions`, `source` and `target` are
    the languages of the default one.
    """

    name: str
    source: str
    target: str
    translator: Translator
    worker: BatchWorker | DirectionWorker | None = None
    slow_worker: BatchWorker | DirectionWorker | None = (
        None  # where a search for terms does not hold up plain sentences
    )
    directions: Sequence[Direction] = ()

    @property
    def pairs(self) -> Sequence[Direction]:
        """The languages that it translates between."""
        return self.directions or [(self.source, self.target)]

    @cached_property
    def languages(self) -> list[str]:
        return list(dict.fromkeys(code for pair in self.pairs for code in pair))

    def toward(self, source: str, target: str) -> "ServedModel":
        """The model in one direction; all directions share the worker."""
        if not self.directions:
            return self
        workers = [DirectionWorker(own, Toward(source, target)) for own in (self.worker, self.slow_worker)]
        return ServedModel(self.name, source, target, self.translator.toward(source, target), *workers)

    def warm_up(self, sentences: int = 1) -> None:
        """Build now what the first batches of up to this many sentences would build: on a CPU an engine may have
        workers for each size, on a GPU kernels for few, some and many rows.
        """
        translator = self.translator.toward(*self.pairs[0]) if self.directions else self.translator
        if translator.device.type == "cpu":
            sizes = {workers_and_threads(size, torch.get_num_threads()): size for size in range(sentences, 0, -1)}
        else:
            sizes = {power: 1 << power for power in range(sentences.bit_length())}
        for count in sizes.values():
            translator.translate(["."] * count)

    def start(self, on_batch: OnBatch, **sizes: int | float) -> None:
        self.worker = self.slow_worker = BatchWorker(self.name, self.run, on_batch=on_batch, **sizes)
        if self.translator.device.type == "cpu":  # a GPU does one thing at a time
            twin = ServedModel(self.name, self.source, self.target, self.translator.twin(), directions=self.directions)
            self.slow_worker = BatchWorker(f"{self.name}-slow", twin.run, on_batch=on_batch, yielding=True, **sizes)

    @property
    def workers(self) -> list[BatchWorker]:
        return list(dict.fromkeys([self.worker, self.slow_worker]))

    def submit(self, ticket: Ticket, key: tuple, items: Sequence[Any], *sizes: Sequence[int | float]) -> list[Future]:
        """Add jobs to the queue of their kind."""
        worker = self.slow_worker if key[0] in SLOW else self.worker
        return worker.submit(ticket, key, items, *sizes)

    def run(self, key: tuple, items: list[Any]) -> Sequence[Any]:
        """A batch, in the worker's thread."""
        if isinstance(key[-1], Toward):
            return self.toward(*key[-1]).run(key[:-1], items)
        translate = self._translate
        kinds = {
            "translate": translate,
            "terms": translate,
            "align": self._align,
            "score": self._score,
            "call": self._call,
        }
        return kinds[key[0]](items)

    def _translate(self, items: list[tuple[str, str, TranslationOptions]]) -> list[TranslatedSentence]:
        options = items[0][2]  # the same for all, since they have the same key
        glossary = {"glossary": options.glossary} if options.glossary else {}
        texts, prefixes, _ = map(list, zip(*items, strict=True))
        prefix, translated = prefixes if any(prefixes) else None, []
        for one in self.translator.translate(texts, prefix=prefix, **glossary, **dict(options.decoding)):
            tokens = list(zip(one.tokens, map(float, one.token_scores), strict=True)) if options.tokens else []
            nbest = [(other.text, float(other.score)) for other in one.nbest]
            lacking = lacks(one, options.glossary)
            translated.append(TranslatedSentence(one.text, float(one.score), tokens, nbest, lacking))
        return translated

    def _score(self, items: list[tuple[str, str, TranslationOptions]]) -> list[TranslatedSentence | None]:
        """Given translations; None for one that is too long for the model."""
        scored = []
        for source, target, options in items:
            config = self.translator.search_config(dict(options.decoding))
            one = rate(self.translator.bundle, source, target, config)
            tokens = list(zip(one.tokens, one.token_scores, strict=True)) if one and options.tokens else []
            scored.append(one and TranslatedSentence(target, one.score, tokens, [(target, one.score)]))
        return scored

    def glossary(self, options: TranslationOptions, required: Sequence[str]) -> Glossary | None:
        """The terms of a request and what a sentence must keep, as far as the model can spell it and its search
        supports it.
        """
        if not required or not can_require(self.translator.search_config(dict(options.decoding))):
            return options.glossary
        return with_required(options.glossary or Glossary(), required, self.translator.term_encoder) or None

    def _align(self, items: list[tuple[str, str]]) -> list[list[tuple[int, int]]]:
        return self.translator.align_pairs([source for source, _ in items], [target for _, target in items])

    def _call(self, items: list[Callable[["ServedModel"], Any]]) -> list[Any]:
        return [item(self) for item in items]

    def cost(self, size: int, options: TranslationOptions, terms: int = 0) -> float:
        """The cost of a sentence of `size` subwords with this many terms, in subwords of plain searches."""
        config = self.translator.search_config(dict(options.decoding))
        plain, beam = max(1.0, config.beam / self.translator.decoding.beam), config.beam
        if config.rerank == "mbr":
            plain, beam = MBR_COST * config.candidates / 16, max(beam, config.candidates)
        return size * (plain + self.terms_cost(terms) * max(1.0, beam / MIN_BEAMS))

    def terms_cost(self, terms: int) -> float:
        """The relative cost of a search with this many terms."""
        first, each = TERMS_COST_TORCH if self.translator.engine() == "torch" else TERMS_COST
        return first + each * terms if terms else 0.0

    def check_inspectable(self, text: str, translation: str | None) -> None:
        """Refuse a sentence with too many attention weights to show: they grow with the square of its length."""
        config = self.translator.model.config
        encoder, decoder, heads, _ = (getattr(config, name, None) or 1 for name in SIZE_FIELDS)
        longest = math.isqrt(MAX_ATTENTION_WEIGHTS // (heads * (encoder + 2 * decoder)))
        most = min(4 * self.translator.max_source, longest)
        sides = ("text", self.translator.source, text), ("translation", self.translator.target, translation or "")
        for name, vocabulary, sentence in sides:
            size = len(vocabulary.encode([sentence])[0])
            if size > most or (name == "text" and not size):
                raise ValueError(f"the {name} has {size} subwords; the limit for inspection is {most}")

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        translator, config = self.translator, self.translator.model.config
        trained = {k: v for k, v in translator.facts.get("trained", {}).items() if isinstance(v, int | float | str)}
        return {
            "name": self.name,
            "languages": self.languages,
            "directions": len(self.pairs),
            "source": self.source,
            "target": self.target,
            "source_name": language_name(self.source),
            "target_name": language_name(self.target),
            "kind": type(translator.model).__name__.lower(),
            "weights": sum(weight.numel() for weight in translator.model.parameters()),
            **{name: getattr(config, name, None) for name in SIZE_FIELDS},
            "longest": translator.max_source,
            "engine": translator.engine(),
            "attention": getattr(config, "attention", None) != "off",
            "trained": trained,
            "examples": [
                text for text in translator.facts.get("trained", {}).get("examples", []) if isinstance(text, str)
            ],
        }

    def caption(self) -> str:
        """A one-line description, for images."""
        facts = self.facts()
        heads = f" · {facts['heads']} heads" if facts["heads"] else ""
        layers = f"{facts['encoder_layers']}+{facts['decoder_layers']} layers"
        return f"{self.name} · {layers}{heads} · {facts['weights'] / 1e6:.1f}M weights"


def count_terms(glossary: Glossary | None, text: str) -> int:
    """The glossary terms in a sentence; more than can be searched for at once are refused."""
    number = len(glossary.matches(text)) if glossary else 0
    if number > MAX_TERMS_AT_ONCE:
        raise ValueError(
            f"a sentence has {number} glossary terms, and the limit is {MAX_TERMS_AT_ONCE}: split it, or remove terms"
        )
    return number
