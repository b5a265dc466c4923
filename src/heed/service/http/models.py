"""The models that are served, and the ways from language to language through them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heed.loading import find_model, load
from heed.products.translator.translator import Translator
from heed.service.http.limits import Refusal
from heed.service.http.queue import Worker
from heed.text import languages

MOST_SHOWN = 2_000_000  # attentions of a sentence that is looked into
PLAIN_FACTS = ("encoder_layers", "decoder_layers", "heads", "dim")


class Said(NamedTuple):
    """What a model made of a sentence."""

    text: str
    score: float
    tokens: list[tuple[str, float]]
    nbest: list[tuple[str, float]]


class Wish(NamedTuple):
    """How sentences are to be translated: settings of the search, a glossary, and whether each token's score is wanted."""

    options: tuple[tuple[str, Any], ...] = ()
    tokens: bool = False
    glossary: Any = None

    def key(self, forced: bool) -> tuple:
        """What may share a batch with what; `forced`: beginnings are given."""
        terms = (tuple(self.glossary.terms.items()), self.glossary.keep) if self.glossary else None
        return ("translate", self.options, self.tokens, forced, terms)


@dataclass(eq=False)
class Served:
    """One model with its languages and the worker that runs it."""

    name: str
    source: str
    target: str
    translator: Translator
    worker: Worker | None = None

    def start(self, *, wait: int | float, budget: int, rows: int, watch: Callable | None) -> None:
        self.worker = Worker(self.name, self.run, wait=wait, budget=budget, rows=rows, watch=watch)

    def run(self, key: tuple, items: list[Any]) -> Sequence[Any]:
        """A batch, in the worker's thread."""
        return {"translate": self._translate, "align": self._align, "call": self._call}[key[0]](items)

    def _translate(self, items: list[tuple[str, str, Wish]]) -> list[Said]:
        wish = items[0][2]
        glossary = {"glossary": wish.glossary} if wish.glossary else {}
        prefix = [prefix for _, prefix, _ in items] if any(prefix for _, prefix, _ in items) else None
        found = self.translator.translate(
            [text for text, _, _ in items], prefix=prefix, **glossary, **dict(wish.options)
        )
        return [
            Said(
                one.text,
                float(one.score),
                list(zip(one.tokens, map(float, one.token_scores), strict=True)) if wish.tokens else [],
                [(other.text, float(other.score)) for other in one.nbest],
            )
            for one in found
        ]

    def _align(self, items: list[tuple[str, str]]) -> list[list[tuple[int, int]]]:
        return self.translator.align_pairs([source for source, _ in items], [target for _, target in items])

    def _call(self, items: list[Callable[[], Any]]) -> list[Any]:
        return [item() for item in items]

    def check_look(self, text: str, translation: str | None) -> None:
        """Refuse what has too many attentions to be shown: they grow with the square of a sentence."""
        config = self.translator.model.config
        encoder, decoder, heads, _ = (getattr(config, name, None) or 1 for name in PLAIN_FACTS)
        most = min(4 * self.translator.max_source, math.isqrt(MOST_SHOWN // (heads * (encoder + 2 * decoder))))
        sides = ("text", self.translator.source, text), ("translation", self.translator.target, translation or "")
        for name, vocabulary, own in sides:
            size = len(vocabulary.encode([own])[0])
            if size > most or (name == "text" and not size):
                raise ValueError(f"the {name} has {size} subwords; one sentence is looked into, of at most {most}")

    def facts(self) -> dict[str, Any]:
        """What there is to know of it."""
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
            **{name: getattr(config, name, None) for name in PLAIN_FACTS},
            "longest": translator.max_source,
            "engine": translator.engine(),
            "attention": getattr(config, "attention", None) != "off",
            "trained": trained,
        }

    def line(self) -> str:
        """It in a line, as pictures are signed."""
        facts = self.facts()
        heads = f" · {facts['heads']} heads" if facts["heads"] else ""
        layers = f"{facts['encoder_layers']}+{facts['decoder_layers']} layers"
        return f"{self.name} · {layers}{heads} · {facts['weights'] / 1e6:.1f}M weights"


class Catalogue:
    """All models, and which way leads from a language to another: one model, or two."""

    def __init__(self, models: Sequence[Served]):
        self.models = list(models)
        self.pairs: dict[tuple[str, str], list[Served]] = {}
        for model in models:
            other = self.pairs.setdefault((model.source, model.target), [model])[0]
            if other is not model:
                raise ValueError(
                    f"{other.name} and {model.name} both translate {model.source} to {model.target}: serve one of them, or both as "
                    "one with a comma between them"
                )
        for one in models:
            for two in models:
                if one.target == two.source and one.source != two.target:
                    self.pairs.setdefault((one.source, two.target), [one, two])

    @property
    def languages(self) -> list[dict[str, Any]]:
        codes = list(dict.fromkeys(code for pair in self.pairs for code in pair))
        found = [(code, [target for source, target in self.pairs if source == code]) for code in codes]
        return [{"code": code, "name": languages.name(code), "targets": targets} for code, targets in found]

    def sources(self, target: str | None = None) -> list[str]:
        """The languages that can be translated, into `target` if there is one."""
        found = list(dict.fromkeys(source for source, own in self.pairs if target in (None, own)))
        if not found:
            known = ", ".join(self.targets)
            raise Refusal(
                400, f"target is {target[:40]!r}, into which nothing is translated here; it is one of {known}"
            )
        return found

    def target(self, source: str) -> str:
        """The one language that a source can become."""
        own = [target for start, target in self.pairs if source in ("auto", start)]
        own = list(dict.fromkeys(own))
        if len(own) != 1:
            raise Refusal(400, f"target is missing; it is one of {', '.join(own) or ', '.join(self.targets)}")
        return own[0]

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(target for _, target in self.pairs))

    @property
    def codes(self) -> tuple[list[str], list[str]]:
        """Of the languages that can be translated, and of those that they can become."""
        return self.sources(), self.targets

    def route(self, source: str, target: str) -> list[Served]:
        """The models from a language to another; of a language to itself none."""
        for name, code, known in (("source", source, self.sources()), ("target", target, self.targets)):
            if code not in {*self.sources(), *self.targets}:
                raise Refusal(400, f"{name} is {code[:40]!r}, which is not served; it is one of {', '.join(known)}")
        if source == target:
            return []
        if (source, target) not in self.pairs:
            ways = ", ".join(f"{one} to {two}" for one, two in self.pairs)
            raise Refusal(400, f"{source} to {target} is not served; there is {ways}")
        return self.pairs[source, target]


def open_models(folders: Sequence[str], device: str, engine: str) -> list[Served]:
    """Models of folders; `ko-en=FOLDER` tells the languages of one that does not know them, commas make an ensemble."""
    found = []
    for given in folders:
        pair, mark, rest = given.partition("=")
        folder = rest if mark and not Path(given).is_dir() else given
        names = folder.split(",")
        translator = load(names, device, engine)
        source, target = _languages(pair if folder is rest else None, folder, translator)
        name = _name(names[0])
        name = name if name not in [one.name for one in found] else f"{name}-{len(found) + 1}"
        found.append(Served(name, source, target, translator))
    return found


def _name(folder: str) -> str:
    path = Path(folder)
    if not path.is_dir():
        return folder.split("/")[-1]
    path = path.resolve()
    return path.parent.name if find_model(path) == path and (path.parent / "recipe.toml").is_file() else path.name


def _languages(pair: str | None, folder: str, translator: Translator) -> tuple[str, str]:
    told = translator.facts.get("languages") or {}
    source, target = pair.split("-", 1) if pair and "-" in pair else (told.get("source"), told.get("target"))
    if not source or not target:
        raise ValueError(f"{folder} does not say which languages it is for: write them before it, as in ko-en={folder}")
    return source, target
