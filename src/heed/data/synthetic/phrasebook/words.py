"""The kinds of words that the phrasebook knows, each with its Korean and its English."""

from dataclasses import dataclass

from heed.data.synthetic.phrasebook.hangul import Stem


@dataclass(frozen=True, eq=False)
class Person:
    """Someone who acts or is acted upon; `polite` is what 해요체 and 합니다체 call them."""

    plain: tuple[str, ...]
    polite: tuple[str, ...]
    english: tuple[str, ...]
    object: tuple[str, ...]
    agreement: str = "he"
    name: str = ""


@dataclass(frozen=True, eq=False)
class Noun:
    """A thing: 'count' nouns take a or an, 'mass' nouns nothing, 'the' nouns the."""

    korean: str
    number: str
    english: str
    counter: str
    unit: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Verb:
    """An action: what it acts on, where and how it is done, and what else is special about it."""

    stem: Stem
    english: str
    past: str
    tail: tuple[str, ...]
    objects: tuple[str, ...]
    where: tuple[str, ...]
    manners: tuple[str, ...]
    traits: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Adjective:
    """A quality and the kinds of things that have it."""

    stem: Stem
    english: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Adverb:
    """A time, place, means or manner; words pair one to one where both sides have as many."""

    korean: tuple[str, ...]
    english: tuple[str, ...]
    before_verb: bool = False


@dataclass(frozen=True, eq=False)
class Place:
    """A place, as one is in it, goes to it and speaks of it."""

    korean: str
    at: tuple[str, ...]
    to: tuple[str, ...]
    english: tuple[str, ...]
    kinds: tuple[str, ...]
