"""The directions of a translator: one for a plain model, every two languages for a multilingual one."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import permutations
from typing import Any

from heed.text.language_codes import near, public_codes, resolve
from heed.vocabularies.multilingual import in_languages, languages_of
from heed.vocabularies.vocabulary import Pair

NAMES = {"source": "--from (in Python: source)", "target": "--to (in Python: target)"}
MANY = 12  # languages: more are not listed in an error

Direction = tuple[str, str]


class Directions:
    """The languages that a pair of vocabularies knows; `default` are those of the model folder, either of which may be missing.

    `names` are what a user calls the two sides: settings or options.
    """

    def __init__(self, vocabularies: Pair, default: Mapping[str, Any] | None, names: Mapping[str, str] = NAMES):
        self.vocabularies, self.own, self.names = vocabularies, languages_of(vocabularies[1]), names
        known = default or {}
        self.default: tuple[str | None, str | None] = known.get("source"), known.get("target")

    @cached_property
    def codes(self) -> dict[str, str]:
        """The model's own codes by those that people write."""
        return public_codes(self.own)

    def all(self) -> list[Direction]:
        """From each language to each other; of a plain model, the one that its folder names."""
        if self.own:
            return list(permutations(self.codes, 2))
        source, target = self.default
        return [(source, target)] if source and target else []

    def pair(self, source: str | None, target: str | None) -> tuple[Pair, Direction] | None:
        """The vocabularies for a direction, and its codes; None if they are those that there are."""
        if not self.own:
            self._check_plain(source, target)
            return None
        given = {"source": source or self.default[0], "target": target or self.default[1]}
        chosen = [self._own(side, code) for side, code in given.items()]
        plain = {own: code for code, own in self.codes.items()}
        return in_languages(self.vocabularies, *chosen), (plain[chosen[0]], plain[chosen[1]])

    def _own(self, side: str, code: str | None) -> str:
        """The model's own code for a language, given as a user writes it."""
        if code is None:
            raise ValueError(
                f"the {side} language is missing: this model has {len(self.own)}; choose one with {self.names[side]}: "
                f"{_some(self.codes)}"
            )
        found = resolve(code, self.own)
        if found is None:
            meant = near(code, self.codes) or (list(self.codes) if len(self.own) <= MANY else [])
            hint = f"did you mean {' or '.join(meant)}?" if meant else f"it has {_some(self.codes)}"
            raise ValueError(f"the {side} language is {code!r}, which is none of this model's {len(self.own)}: {hint}")
        return found

    def _check_plain(self, source: str | None, target: str | None) -> None:
        """A model that does not say its languages is taken at the user's word."""
        for side, code, known in zip(("source", "target"), (source, target), self.default, strict=True):
            if code and known and resolve(code, [known]) is None:
                raise ValueError(
                    f"the {side} language is {code!r}, but this model translates from {self.default[0]} to {self.default[1]}"
                )


def _some(codes: Sequence[str] | Mapping[str, str]) -> str:
    every = list(codes)
    return ", ".join(every[:MANY]) + (f" and {len(every) - MANY} more" if len(every) > MANY else "")


def direction_of(vocabularies: Sequence[Any]) -> dict[str, str] | None:
    """The languages that multilingual vocabularies were chosen for, as people write them; None for others."""
    chosen = [getattr(side, "language", None) for side in vocabularies]
    if len(chosen) != 2 or None in chosen:
        return None
    plain = {own: code for code, own in public_codes(languages_of(vocabularies[1])).items()}
    return {"source": plain[chosen[0]], "target": plain[chosen[1]]}
