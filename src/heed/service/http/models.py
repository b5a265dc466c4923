"""The models that are served, each with the thread that runs it."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from heed.loading import find_model, load
from heed.products.generator import Generator
from heed.products.image_classifier import ImageClassifier
from heed.products.image_generator import ImageGenerator
from heed.products.product import Product
from heed.products.translator.directions import Direction
from heed.products.translator.term_search import MIN_BEAMS
from heed.products.translator.translator import Translator
from heed.service.http.asked_model import AskedModel
from heed.service.http.encoders import VERBS, ServedEncoder
from heed.service.http.image_models import ServedImageModel
from heed.service.http.language_models import ServedLanguageModel
from heed.service.http.queue import BatchWorker, OnBatch, Ticket
from heed.text.language_codes import name as language_name

MAX_ATTENTION_WEIGHTS = 2_000_000  # of a sentence that is inspected
MAX_TERMS_AT_ONCE = 32  # of a glossary in one sentence, or in one part of a long one
TERMS_COST = (
    8  # times that of the same search without terms: measured with a small model, 3.5 by torch and more by CTranslate2
)
SIZE_FIELDS = ("encoder_layers", "decoder_layers", "heads", "dim")


class TranslatedSentence(NamedTuple):
    """A model's translation of a sentence; tokens and nbest with their scores."""

    text: str
    score: float
    tokens: list[tuple[str, float]]
    nbest: list[tuple[str, float]]


class TranslationOptions(NamedTuple):
    """Decoding settings, whether token scores are wanted, and a glossary."""

    decoding: tuple[tuple[str, Any], ...] = ()
    tokens: bool = False
    glossary: Any = None

    def batch_key(self, has_prefix: bool) -> tuple:
        """Sentences with equal keys may share a batch."""
        terms = (tuple(self.glossary.terms.items()), self.glossary.keep) if self.glossary else None
        return ("terms" if terms else "translate", self.decoding, self.tokens, has_prefix, terms)


class Toward(NamedTuple):
    """The last part of a batch's key, for a model of several directions: only sentences of one direction share a batch."""

    source: str
    target: str


class DirectionWorker(NamedTuple):
    """The worker of a model of several directions, for one of them."""

    worker: BatchWorker
    direction: Toward

    def submit(self, ticket: Ticket, key: tuple, items: Sequence[Any], *sizes: Sequence[int | float]) -> list[Future]:
        return self.worker.submit(ticket, (*key, self.direction), items, *sizes)


@dataclass(eq=False)
class ServedModel:
    """One model with its languages and the worker that runs it.

    A model of several `directions` is asked for one of them; `source` and `target` are then the languages of its default one.
    """

    name: str
    source: str
    target: str
    translator: Translator
    worker: BatchWorker | DirectionWorker | None = None
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
        worker = DirectionWorker(self.worker, Toward(source, target))
        return ServedModel(self.name, source, target, self.translator.toward(source, target), worker)

    def warm_up(self) -> None:
        """Build now what is built at the first call."""
        self.translator.translate(".")

    def start(self, on_batch: OnBatch, **sizes: int | float) -> None:
        self.worker = BatchWorker(self.name, self.run, on_batch=on_batch, **sizes)

    def run(self, key: tuple, items: list[Any]) -> Sequence[Any]:
        """A batch, in the worker's thread."""
        if isinstance(key[-1], Toward):
            return self.toward(*key[-1]).run(key[:-1], items)
        translate = self._translate
        kinds = {"translate": translate, "terms": translate, "align": self._align, "call": self._call}
        return kinds[key[0]](items)

    def _translate(self, items: list[tuple[str, str, TranslationOptions]]) -> list[TranslatedSentence]:
        options = items[0][2]  # the same for all, since they have the same key
        glossary = {"glossary": options.glossary} if options.glossary else {}
        texts, prefixes, _ = map(list, zip(*items, strict=True))
        prefix, translated = prefixes if any(prefixes) else None, []
        for one in self.translator.translate(texts, prefix=prefix, **glossary, **dict(options.decoding)):
            tokens = list(zip(one.tokens, map(float, one.token_scores), strict=True)) if options.tokens else []
            nbest = [(other.text, float(other.score)) for other in one.nbest]
            translated.append(TranslatedSentence(one.text, float(one.score), tokens, nbest))
        return translated

    def _align(self, items: list[tuple[str, str]]) -> list[list[tuple[int, int]]]:
        return self.translator.align_pairs([source for source, _ in items], [target for _, target in items])

    def _call(self, items: list[Callable[[], Any]]) -> list[Any]:
        return [item() for item in items]

    def cost(self, size: int, options: TranslationOptions) -> float:
        """What a sentence of `size` subwords is charged: twice for twice the beams, and the search for terms of a glossary."""
        usual = self.translator.decoding.beam
        beam = dict(options.decoding).get("beam", usual)
        return size * (max(1.0, beam / usual) + (TERMS_COST * max(1.0, beam / MIN_BEAMS) if options.glossary else 0))

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
                raise ValueError(f"the {name} has {size} subwords; a sentence that is inspected has at most {most}")

    def facts(self) -> dict[str, Any]:
        """What /v1/models says of it."""
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
        }

    def caption(self) -> str:
        """One line that describes it, for pictures."""
        facts = self.facts()
        heads = f" · {facts['heads']} heads" if facts["heads"] else ""
        layers = f"{facts['encoder_layers']}+{facts['decoder_layers']} layers"
        return f"{self.name} · {layers}{heads} · {facts['weights'] / 1e6:.1f}M weights"


def count_terms(glossary: Any, text: str) -> int:
    """The terms of a glossary in a sentence; more than can be searched for at once are refused."""
    number = len(glossary.matches(text)) if glossary else 0
    if number > MAX_TERMS_AT_ONCE:
        raise ValueError(
            f"a sentence has {number} terms of the glossary, and {MAX_TERMS_AT_ONCE} are allowed: divide it, or leave terms out"
        )
    return number


def open_models(folders: Sequence[str], device: str, engine: str) -> list[ServedModel | AskedModel]:
    """Models of folders, of every kind that is served; commas make an ensemble of translators.

    `ko-en=FOLDER` gives the languages of a translator that does not know them, or chooses one of several directions; `embed=FOLDER`
    says what a model is asked that can do several things.
    """
    models: list[ServedModel | AskedModel] = []
    for given in folders:
        before, equals, rest = given.partition("=")
        folder = rest if equals and not Path(given).is_dir() else given
        names, said = folder.split(","), before if folder is rest else None
        name = _name(names[0])
        name = name if name not in [one.name for one in models] else f"{name}-{len(models) + 1}"
        verb = said if said in VERBS else None
        product = load(names, device, engine, verb or ("translate", "generate", *VERBS))
        if not isinstance(product, Translator):
            models.append(_asked_model(name, product, verb or next(iter(product.verbs)), said, folder))
        else:
            models.append(_translator(name, product, said, folder))
    return models


def _asked_model(name: str, product: Product, verb: str, said: str | None, folder: str) -> AskedModel:
    if isinstance(product, ImageClassifier):
        return ServedImageModel(name, product)
    if isinstance(product, ImageGenerator):
        raise ValueError(f"{folder} is {product.noun}, which is not served: use heed generate")
    if said is not None and said != verb:
        raise ValueError(f"{said}={folder}: {folder} is {product.noun}, which has no languages: write its name alone")
    return ServedLanguageModel(name, product) if isinstance(product, Generator) else ServedEncoder(name, product, verb)


def _translator(name: str, translator: Translator, pair: str | None, folder: str) -> ServedModel:
    if pair and len(translator.directions) > 1:
        translator = translator.toward(*pair.split("-", 1))
        [(source, target)], several = translator.directions, []
    elif len(translator.directions) > 1:
        several = translator.directions
        source, target = _default(translator)
    else:
        (source, target), several = _languages(pair, folder, translator), []
    return ServedModel(name, source, target, translator, directions=several)


def _default(translator: Translator) -> Direction:
    """The direction that the folder of a model of several names, or one with English, which most people can read."""
    languages, pairs = translator.facts.get("languages") or {}, translator.directions
    source, target = languages.get("source"), languages.get("target")
    named = [pair for pair in pairs if source in (None, pair[0]) and target in (None, pair[1])] or pairs
    return next((pair for pair in named if "en" in pair), named[0])


def _name(folder: str) -> str:
    path = Path(folder)
    if not path.is_dir():
        return folder.split("/")[-1]
    path = path.resolve()
    return path.parent.name if find_model(path) == path and (path.parent / "recipe.toml").is_file() else path.name


def _languages(pair: str | None, folder: str, translator: Translator) -> tuple[str, str]:
    known = translator.facts.get("languages") or {}
    source, target = pair.split("-", 1) if pair and "-" in pair else (known.get("source"), known.get("target"))
    if not source or not target:
        raise ValueError(f"{folder} does not say which languages it is for: write them before it, as in ko-en={folder}")
    return source, target
