"""The parts of speech of the phrasebook, each word with its Korean and its English."""

from dataclasses import dataclass

from heed.data.synthetic.phrasebook.korean_inflection import Stem


@dataclass(frozen=True, eq=False)
class Person:
    """A person; `polite` is the Korean of 해요체 and 합니다체, `object` the English object form."""

    plain: tuple[str, ...]
    polite: tuple[str, ...]
    english: tuple[str, ...]
    object: tuple[str, ...]
    agreement: str = "he"
    name: str = ""


@dataclass(frozen=True, eq=False)
class Noun:
    """A noun; its `number` decides the article: 'count' takes a or an, 'mass' none, 'the' the."""

    korean: str
    number: str
    english: str
    counter: str
    unit: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb, with the kinds of objects, places and manners that fit it, and its other traits."""

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
    """An adjective and the kinds of nouns that it fits."""

    stem: Stem
    english: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Adverb:
    """An adverb of time or manner; its words are aligned one to one if both languages have as many."""

    korean: tuple[str, ...]
    english: tuple[str, ...]
    before_verb: bool = False


@dataclass(frozen=True, eq=False)
class Place:
    """A place: at it, to it, and as a subject."""

    korean: str
    at: tuple[str, ...]
    to: tuple[str, ...]
    english: tuple[str, ...]
    kinds: tuple[str, ...]
