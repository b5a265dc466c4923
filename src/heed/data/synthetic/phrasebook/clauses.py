"""What a sentence is before any word of either language, and the roles that its words will carry."""

from functools import cache
from typing import NamedTuple

from heed.data.synthetic.phrasebook.hangul import Stem
from heed.data.synthetic.phrasebook.words import Adjective, Adverb, Noun, Person, Place, Verb

Words = tuple[tuple[str, int], ...]

# A role is a bit. A slot of a clause has six of them; a second clause has its own, further up.
HEAD, DETERMINER, QUALITY, COUNT, UNIT, CASE = 1, 2, 4, 8, 16, 32
ACTION, TENSE, NOT, MOOD, LINK = 1, 2, 4, 8, 16
SUBJECT, PREDICATE, OBJECT, PLACE, TIME, MANNER, COMPANION, RECEIVER, MEANS, REASON, VOCATIVE, SECOND = range(0, 72, 6)

BE = Verb(Stem("이"), "be", "was", (), (), (), (), ())
THERE = Verb(Stem("있"), "be", "was", (), (), (), (), ())
WHO = Person(("누구",), ("누구",), ("who",), ("who",))
WHAT = Person(("뭐",), ("무엇",), ("what",), ("what",))
WHERE = Place("어디", ("where",), ("where",), (), ())
WHEN = Adverb(("언제",), ("when",))
WHY = Adverb(("왜",), ("why",))
SO_MUCH = Adverb(("많이",), ("so", "much"))


class Phrase(NamedTuple):
    """A thing spoken of: whose or which, of what quality, how many."""

    noun: Noun
    owner: Person | None = None
    quality: Adjective | None = None
    count: int = 0


class Clause(NamedTuple):
    """What is said of whom, before any word of either language; `asks` is the slot a question asks for."""

    subject: Person | Phrase | Place | None
    verb: Verb | Adjective
    object: Person | Phrase | None = None
    tense: str = "present"
    mood: str = "plain"
    negation: str = ""
    receiver: Person | None = None
    companion: Person | None = None
    place: Place | None = None
    means: Place | None = None
    time: Adverb | None = None
    manner: Adverb | None = None
    reason: Adverb | None = None
    asks: str = ""
    time_first: bool = False


class Sentence(NamedTuple):
    """One clause or two, and how they are said: to whom, at which speech level, stated, asked or ordered."""

    first: Clause
    level: str = "plain"
    form: str = "statement"
    vocative: Person | None = None
    link: str = ""
    second: Clause | None = None


@cache
def paired(texts: tuple[str, ...], others: tuple[str, ...], slot: int) -> Words:
    """Words with their roles: one each where the other language has as many words, else one for all."""
    each = len(texts) == len(others)
    return tuple((text, (1 << at if each else HEAD) << slot) for at, text in enumerate(texts))


def moves(clause: Clause) -> bool:
    """Whether the clause's place is where someone goes."""
    return isinstance(clause.verb, Verb) and "moves" in clause.verb.traits
