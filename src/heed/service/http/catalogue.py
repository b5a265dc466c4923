"""The routes between languages through the served models."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from heed.products.translator.directions import Direction
from heed.service.http.limits import Refusal
from heed.service.http.models import ServedModel
from heed.text.language_codes import name as language_name
from heed.text.language_codes import near

NO_TRANSLATOR = "no translation model is served here; see /v1/models"
MOST = 20  # directions or languages that a sentence lists


class Catalogue:
    """All models, and the route between each two languages: one model, or two through a pivot language. A model with
    one direction takes precedence over one with several.
    """

    def __init__(self, models: Sequence[ServedModel]):
        self.models = list(models)
        self.pairs: dict[Direction, list[ServedModel]] = {}
        self.through: dict[Direction, str] = {}  # the language in the middle, where there is one
        plain = [model for model in models if not model.directions]
        for model in plain:
            self._add(model, set())
        for model in models:
            if model.directions:
                self._add(model, {model.pairs[0] for model in plain})
        self._targets: dict[str, dict[str, None]] = {}  # of each source, in their order
        self._sources: dict[str, dict[str, None]] = {}  # of each target
        for pair in self.pairs:
            self._list(*pair)
        self._join()

    def prepare(self) -> None:
        """Build the lists that requests use: for two hundred languages this takes a while."""
        _ = self.languages_json, self.groups, [model.languages for model in self.models]

    def _add(self, model: ServedModel, better: set[tuple[str, str]]) -> None:
        for pair in model.pairs:
            if pair in better:
                continue
            other = self.pairs.setdefault(pair, [model])[0]
            if other is not model:
                raise ValueError(
                    f"{other.name} and {model.name} both translate {pair[0]} to {pair[1]}: serve one of them, or both "
                    "as an ensemble, separated by a comma"
                )

    def _list(self, source: str, target: str) -> None:
        self._targets.setdefault(source, {})[target] = None
        self._sources.setdefault(target, {})[source] = None

    def _join(self) -> None:
        """Routes of two models, or of one model twice."""
        every, direct = len(self._sources), list(self.pairs)
        for source, middle in direct:
            if len(self._targets[source]) >= every - (source in self._sources):
                continue  # there is nothing left to reach
            for target in self._targets.get(middle, {}):
                if target != source and (source, target) not in self.pairs:
                    self.pairs[source, target] = [*self.pairs[source, middle], *self.pairs[middle, target]]
                    self.through[source, target] = middle
        for pair in self.through:
            self._list(*pair)

    @cached_property
    def languages(self) -> list[dict[str, Any]]:
        codes = list(dict.fromkeys(code for pair in self.pairs for code in pair))
        return [
            {"code": code, "name": language_name(code), "targets": list(self._targets.get(code, []))} for code in codes
        ]

    @cached_property
    def languages_json(self) -> bytes:
        """`languages` as in /languages: for two hundred languages a third of a megabyte, built once."""
        return json.dumps(self.languages, ensure_ascii=False, separators=(",", ":")).encode()

    def sources(self, target: str | None = None) -> list[str]:
        """The languages that can be translated, into `target` if given."""
        sources = list(self._targets) if target is None else list(self._sources.get(target, []))
        if not self.pairs and target is not None:
            raise Refusal(404, NO_TRANSLATOR)
        if not sources and target is not None:
            raise Refusal(
                400, f"target is {target[:40]!r}, which is not available as a target here; {_one_of(self.targets)}"
            )
        return sources

    def only_target(self, source: str) -> str:
        """The target language if a source has only one."""
        if not self.pairs:
            raise Refusal(404, NO_TRANSLATOR)
        targets = self.targets if source == "auto" else list(self._targets.get(source, []))
        if len(targets) != 1:
            raise Refusal(400, f"target is missing; {_one_of(targets or self.targets)}")
        return targets[0]

    @property
    def targets(self) -> list[str]:
        return list(self._sources)

    @property
    def language_codes(self) -> tuple[list[str], list[str]]:
        """The codes of all sources, and of all targets."""
        return self.sources(), self.targets

    def route(self, source: str, target: str) -> list[ServedModel]:
        """The models from one language to another; none from a language to itself."""
        if not self.pairs:
            raise Refusal(404, NO_TRANSLATOR)
        for name, code, known in (("source", source, self.sources()), ("target", target, self.targets)):
            if code not in self._targets and code not in self._sources:
                meant = near(code[:40], known)
                hint = f"it may mean {' or '.join(meant)}" if meant and len(known) > MOST else _one_of(known)
                raise Refusal(400, f"{name} is {code[:40]!r}, which is not served; {hint}")
        if source == target:
            return []
        if (source, target) not in self.pairs:
            raise Refusal(400, f"{source} to {target} is not served; there is {self.listing}")
        models, middle = self.pairs[source, target], self.through.get((source, target))
        steps = [(source, target)] if middle is None else [(source, middle), (middle, target)]
        return [model.toward(*step) for model, step in zip(models, steps, strict=True)]

    @cached_property
    def listing(self) -> str:
        """The directions; if there are many, how many."""
        if len(self.pairs) > MOST:
            return f"{len(self.pairs):,} directions between {len(self.languages)} languages"
        return ", ".join(f"{source} to {target}" for source, target in self.pairs)

    @cached_property
    def groups(self) -> list[dict[str, Any]]:
        """All directions, with one entry per distinct set of targets: from each source to each other target."""
        sets: dict[tuple, tuple[list[str], dict[str, None]]] = {}
        by_source: dict[tuple[str, str | None], list[str]] = {}
        for source, target in self.pairs:
            by_source.setdefault((source, self.through.get((source, target))), []).append(target)
        for (source, middle), targets in by_source.items():
            key = middle, frozenset({*targets, source})
            sources, merged = sets.setdefault(key, ([], {}))
            sources.append(source)
            merged.update(dict.fromkeys(targets))
        return [
            {"sources": sources, "targets": list(targets), "through": key[0]}
            for key, (sources, targets) in sets.items()
        ]


def _one_of(codes: Sequence[str]) -> str:
    """The end of an error about a missing or unknown language."""
    return (
        f"it must be one of {', '.join(codes)}" if len(codes) <= MOST else f"see /languages; choose one of {len(codes)}"
    )
