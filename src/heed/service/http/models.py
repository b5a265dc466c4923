"""The models that are served, and the routes from language to language through them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heed.loading import find_model, load
from heed.products.translator.translator import Translator
from heed.service.http.limits import Refusal
from heed.service.http.queue import BatchWorker, OnBatch
from heed.text import languages

MAX_ATTENTION_WEIGHTS = 2_000_000  # of a sentence that is inspected
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
        return ("translate", self.decoding, self.tokens, has_prefix, terms)


@dataclass(eq=False)
class ServedModel:
    """One model with its languages and the worker that runs it."""

    name: str
    source: str
    target: str
    translator: Translator
    worker: BatchWorker | None = None

    def start(self, on_batch: OnBatch, **sizes: int | float) -> None:
        self.worker = BatchWorker(self.name, self.run, on_batch=on_batch, **sizes)

    def run(self, key: tuple, items: list[Any]) -> Sequence[Any]:
        """A batch, in the worker's thread."""
        return {"translate": self._translate, "align": self._align, "call": self._call}[key[0]](items)

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
            "source": self.source,
            "target": self.target,
            "source_name": languages.name(self.source),
            "target_name": languages.name(self.target),
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


class Catalogue:
    """All models, and the route from each language to each other: one model, or two through a third language."""

    def __init__(self, models: Sequence[ServedModel]):
        self.models = list(models)
        self.pairs: dict[tuple[str, str], list[ServedModel]] = {}
        for model in models:
            other = self.pairs.setdefault((model.source, model.target), [model])[0]
            if other is not model:
                raise ValueError(
                    f"{other.name} and {model.name} both translate {model.source} to {model.target}: serve one of them, or both as "
                    "one with a comma between them"
                )
        for first in models:
            for second in models:
                if first.target == second.source and first.source != second.target:
                    self.pairs.setdefault((first.source, second.target), [first, second])

    @property
    def languages(self) -> list[dict[str, Any]]:
        codes = list(dict.fromkeys(code for pair in self.pairs for code in pair))
        targets = {code: [target for source, target in self.pairs if source == code] for code in codes}
        return [{"code": code, "name": languages.name(code), "targets": targets[code]} for code in codes]

    def sources(self, target: str | None = None) -> list[str]:
        """The languages that can be translated, into `target` if given."""
        sources = list(dict.fromkeys(source for source, own in self.pairs if target in (None, own)))
        if not sources:
            known = ", ".join(self.targets)
            raise Refusal(
                400, f"target is {target[:40]!r}, into which nothing is translated here; it is one of {known}"
            )
        return sources

    def only_target(self, source: str) -> str:
        """The target language where a source has only one."""
        targets = list(dict.fromkeys(target for own, target in self.pairs if source in ("auto", own)))
        if len(targets) != 1:
            raise Refusal(400, f"target is missing; it is one of {', '.join(targets) or ', '.join(self.targets)}")
        return targets[0]

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(target for _, target in self.pairs))

    @property
    def language_codes(self) -> tuple[list[str], list[str]]:
        """Of all sources, and of all targets."""
        return self.sources(), self.targets

    def route(self, source: str, target: str) -> list[ServedModel]:
        """The models from one language to another; none from a language to itself."""
        for name, code, known in (("source", source, self.sources()), ("target", target, self.targets)):
            if code not in {*self.sources(), *self.targets}:
                raise Refusal(400, f"{name} is {code[:40]!r}, which is not served; it is one of {', '.join(known)}")
        if source == target:
            return []
        if (source, target) not in self.pairs:
            pairs = ", ".join(f"{one} to {two}" for one, two in self.pairs)
            raise Refusal(400, f"{source} to {target} is not served; there is {pairs}")
        return self.pairs[source, target]


def open_models(folders: Sequence[str], device: str, engine: str) -> list[ServedModel]:
    """Models of folders; `ko-en=FOLDER` gives the languages of one that does not know them, commas make an ensemble."""
    models = []
    for given in folders:
        pair, equals, rest = given.partition("=")
        folder = rest if equals and not Path(given).is_dir() else given
        names = folder.split(",")
        translator = load(names, device, engine, "translate")
        name = _name(names[0])
        name = name if name not in [one.name for one in models] else f"{name}-{len(models) + 1}"
        if len(translator.directions) > 1:
            models += _served_directions(name, translator, pair.split("-", 1) if folder is rest else ())
            continue
        source, target = _languages(pair if folder is rest else None, folder, translator)
        models.append(ServedModel(name, source, target, translator))
    return models


def _served_directions(name: str, translator: Translator, asked: Sequence[str]) -> list[ServedModel]:
    """A model of several directions as one for each, or for the one that is asked for; they share weights and engines."""
    chosen = [translator.toward(*asked)] if asked else [translator.toward(*pair) for pair in translator.directions]
    pairs = [own.directions[0] for own in chosen]
    return [
        ServedModel(f"{name}:{source}-{target}", source, target, own)
        for own, (source, target) in zip(chosen, pairs, strict=True)
    ]


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
