"""Phrasebook sentences in which one person feels something about another, so that the roles decide the meaning.

Each has a twin with the two people exchanged. Both are of one split, since the phrasebook splits by the bag of words.
"""

from itertools import permutations
from typing import NamedTuple

from heed.data.synthetic.phrasebook import choices, corpus, english
from heed.data.synthetic.phrasebook.clauses import Clause, Sentence
from heed.data.synthetic.phrasebook.parts_of_speech import Person, Verb

LEVELS = ("plain", "polite")  # 준호는 민수를 믿어; 준호 씨는 민수 씨를 믿어요


class RolePair(NamedTuple):
    """A sentence in both languages, and in both with the two people exchanged."""

    korean: str
    english: str
    twin_korean: str
    twin_english: str


def role_pairs(level: str) -> dict[str, list[RolePair]]:
    """All of them in one speech level, by split."""
    found: dict[str, list[RolePair]] = {"train": [], "valid": [], "test": []}
    for verb in (verb for verb in choices.FEELING_VERBS if "person" in verb.objects):
        for tense, _, negated in dict.fromkeys(choices.FEELING_ASPECTS):
            for one, other in permutations(choices.NAMED, 2):
                sides = [_sentence(*people, verb, tense, negated, level) for people in ((one, other), (other, one))]
                words = [english.realize(side) for side in sides]
                (own, twin) = (corpus.pair(side, said) for side, said in zip(sides, words, strict=True))
                pair = RolePair(own.source, own.target, twin.source, twin.target)
                found[corpus.split_of(words[0])].append(pair)
    return found


def _sentence(one: Person, other: Person, verb: Verb, tense: str, negated: bool, level: str) -> Sentence:
    # always the long negation, so that one English sentence has one Korean one
    return Sentence(Clause(one, verb, other, tense=tense, negation="long" if negated else ""), level)
