"""Abstract sentences, independent of the language, and the roles of their words."""

from functools import cache
from typing import NamedTuple

from heed.data.synthetic.phrasebook.korean_inflection import Stem
from heed.data.synthetic.phrasebook.parts_of_speech import Adjective, Adverb, Noun, Person, Place, Verb

Words = tuple[tuple[str, int], ...]

# A role is a bit. A slot of a clause has six of them; those of a second clause are shifted by SECOND.
HEAD, DETERMINER, QUALITY, COUNT, UNIT, CASE = 1, 2, 4, 8, 16, 32
ACTION, TENSE, NOT, MOOD, LINK = 1, 2, 4, 8, 16
SUBJECT, PREDICATE, OBJECT, PLACE, TIME, MANNER, COMPANION, RECEIVER, MEANS, REASON, VOCATIVE, SECOND = range(0, 72, 6)

BE = Verb(Stem("이"), "be", "was", (), (), (), (), ())
THERE = Verb(Stem("있"), "be", "was", (), (), (), (), ())
SUBJECTLESS = ("order", "lets", "request", "shall", "promise")  # forms whose subject is never said in Korean
WHO = Person(("누구",), ("누구",), ("who",), ("who",))
WHAT = Person(("뭐",), ("무엇",), ("what",), ("what",))
WHERE = Place("어디", ("where",), ("where",), (), ())
WHEN = Adverb(("언제",), ("when",))
WHY = Adverb(("왜",), ("why",))
SO_MUCH = Adverb(("많이",), ("so", "much"))


class Phrase(NamedTuple):
    """A noun with its owner or determiner, adjective and count."""

    noun: Noun
    owner: Person | None = None
    quality: Adjective | None = None
    count: int = 0


class Clause(NamedTuple):
    """An abstract clause; `asks` is the slot that a question asks for."""

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
    """One clause or two, with speech level, form (statement, question, or of SUBJECTLESS), vocative and conjunction.

    The level is plain, polite or formal; 'honorific' (polite, of the listener) in questions, 'written' in statements.
    `omitted` leaves out 'I' or 'you', `casual` some particles, `bare` the final punctuation.
    """

    first: Clause
    level: str = "plain"
    form: str = "statement"
    vocative: Person | None = None
    link: str = ""
    second: Clause | None = None
    omitted: bool = False
    casual: bool = False
    bare: bool = False


@cache
def with_roles(texts: tuple[str, ...], others: tuple[str, ...], slot: int) -> Words:
    """Words with their roles: one role each if the other language has as many words, else one role for all."""
    one_to_one = len(texts) == len(others)
    return tuple((text, (1 << i if one_to_one else HEAD) << slot) for i, text in enumerate(texts))


def moves(clause: Clause) -> bool:
    """Whether the place of a clause is a destination."""
    return isinstance(clause.verb, Verb) and "moves" in clause.verb.traits
