"""The directions of a translator: one for a plain model, several with tags, all pairs for a multilingual model."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import permutations
from typing import Any, NamedTuple

from heed.text.language_codes import near, public_codes, resolve
from heed.vocabularies.multilingual import in_languages, languages_of
from heed.vocabularies.tags import language_tag
from heed.vocabularies.vocabulary import Pair

MOST = 12  # directions or languages that an error lists

Direction = tuple[str, str]  # the languages of the source and of the target


class Options(NamedTuple):
    """What a user calls the two languages, and how they are given in Python."""

    source: str = "--from"
    target: str = "--to"
    python: bool = True


OPTIONS = Options()


class Directions:
    """The directions of a pair of vocabularies and the metadata of a model folder, which states them. A multilingual
    vocabulary has a token for each language and supports every direction between two of them; `default` are the
    languages stated by the folder, either of which may be missing.
    """

    def __init__(self, vocabularies: Pair, facts: Mapping[str, Any], options: Options = OPTIONS):
        self.vocabularies, self.facts, self.options = vocabularies, facts, options
        # A multilingual model's own, by those that people write.
        self.codes = public_codes(languages_of(vocabularies[1]))
        self._plain = {own: code for code, own in self.codes.items()}
        languages = facts.get("languages") or {}
        self.default: tuple[str | None, str | None] = languages.get("source"), languages.get("target")

    @cached_property
    def pairs(self) -> dict[Direction, None]:
        """All directions in order; none if the folder does not say."""
        if stated := self.facts.get("directions"):
            return dict.fromkeys((source, target) for source, target in stated)
        if self.codes:
            return dict.fromkeys(permutations(self.codes, 2))
        source, target = self.default
        return {(source, target): None} if source and target else {}

    @property
    def languages(self) -> list[str]:
        """The languages of all directions."""
        return list(self.codes) or list(dict.fromkeys(code for pair in self.pairs for code in pair))

    def choose(self, source: str | None = None, target: str | None = None) -> Direction | None:
        """The direction between these languages, which may be omitted if they are unambiguous; None if nothing is
        stated.
        """
        if not self.pairs and not (source or target):
            return None
        asked = self._listed(source, target)
        found = self._between(*asked)
        if len(found) > 1:
            default = self._listed(*self.default)
            found = self._between(asked[0] or default[0], asked[1] or default[1]) or found
        if len(found) == 1:
            return found[0]
        raise ValueError(self._unclear(asked, found) if found else self._unknown(asked))

    def pair(self, direction: Direction) -> Pair:
        """The vocabularies for the languages of a direction."""
        source, target = self.vocabularies
        if self.codes:
            return in_languages(self.vocabularies, *(self.codes[code] for code in direction))
        return (source.with_tag(language_tag(direction[1])), target) if len(self.pairs) > 1 else self.vocabularies

    def initial(self) -> Pair | None:
        """The vocabularies of the default direction; None if one of several has to be chosen first."""
        if all(getattr(side, "language", None) for side in self.vocabularies) or len(self.pairs) < 2:
            return self.vocabularies
        default = self._listed(*self.default)
        return self.pair(default) if self._has(default) else None

    def only(self, direction: Direction) -> dict[str, Any]:
        """The metadata of the model, as if it had only this direction."""
        languages = dict(zip(("source", "target"), direction, strict=True))
        return {**self.facts, "directions": [list(direction)], "languages": languages}

    def language(self, code: str | None) -> str:
        """The listed code of a source language; a missing or unknown one is refused."""
        found = self._find(code) if code else None
        if found is None:
            raise ValueError(self._unknown((code, None)) if code else self._unclear((None, "any"), self.pairs))
        return found

    def _listed(self, *codes: str | None) -> tuple[str | None, ...]:
        """Languages by their listed codes; an unknown one unchanged."""
        return tuple(code and (self._find(code) or code) for code in codes)

    def _find(self, code: str) -> str | None:
        """The listed code of a language, given as a user or the model writes it."""
        if not self.codes:
            return resolve(code, self.languages)
        own = code if code in self.codes else resolve(code, self._plain)
        return self._plain.get(own, own)

    def _has(self, direction: tuple[str | None, ...]) -> bool:
        """Whether it is one of the directions; a multilingual model may also keep the language, as for summaries."""
        stays = direction[0] == direction[1] and direction[0] in self.codes and not self.facts.get("directions")
        return stays or direction in self.pairs

    def _between(self, source: str | None, target: str | None) -> list[Direction]:
        if source and target:
            return [(source, target)] if self._has((source, target)) else []
        return [pair for pair in self.pairs if source in (None, pair[0]) and target in (None, pair[1])]

    def _unclear(self, asked: Sequence[str | None], found: Collection[Direction]) -> str:
        """The error for languages that have to be given."""
        missing = [side for side, code in zip(("source", "target"), asked, strict=True) if code is None]
        few = len(found) <= MOST
        sides = missing[::-1] if few else missing  # a few directions often differ in their targets alone
        names = (" or " if few else " and ").join(getattr(self.options, side) for side in sides)
        python = f" (in Python: {', '.join(sides)})" if self.options.python else ""
        what = _listing(found) if few else self._among
        return f"the model translates {what}: choose one with {names}{python}"

    def _unknown(self, asked: Sequence[str | None]) -> str:
        """The error for an unsupported direction, with the supported ones or similar languages."""
        source, target = asked
        wanted = " ".join([*([f"from {source}"] if source else []), *([f"to {target}"] if target else [])])
        if not self.pairs:
            return f"the model folder does not specify its languages, so it cannot be asked to translate {wanted}"
        if len(self.pairs) <= MOST:
            return f"the model does not translate {wanted}; it translates {_listing(self.pairs)}"
        hints = [(code, near(code, self.languages)) for code in asked if code and code not in self.languages]
        meant = [f"{code} may mean {' or '.join(codes)}" for code, codes in hints if codes]
        return f"the model does not translate {wanted}; {' and '.join(meant) or f'it translates {self._among}'}"

    @property
    def _among(self) -> str:
        codes = self.languages
        return f"between {len(codes)} languages, " + (
            ", ".join(codes) if len(codes) <= MOST else "which heed info lists"
        )


def _listing(pairs: Iterable[Direction]) -> str:
    return ", ".join(f"{source} to {target}" for source, target in pairs)


def direction_of(vocabularies: Sequence[Any]) -> dict[str, str] | None:
    """The languages that multilingual vocabularies were set to, as people write them; None for others."""
    chosen = [getattr(side, "language", None) for side in vocabularies]
    if len(chosen) != 2 or None in chosen:
        return None
    plain = {own: code for code, own in public_codes(languages_of(vocabularies[1])).items()}
    return {"source": plain[chosen[0]], "target": plain[chosen[1]]}
