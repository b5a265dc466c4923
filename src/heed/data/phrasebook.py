"""The phrasebook: a small grammar of everyday talk that gives Korean-English pairs with their word alignments.

A sentence is drawn as an abstract clause and said twice, by a Korean and an English realiser. Every word carries the
role that produced it, and words that share a role are linked. The same Korean always has the same English.

The split: a sentence belongs to train, valid or test by a hash of the words of its English, whatever their order and
without the person addressed. So speech levels, ways to negate, word order and vocatives never cross splits, and neither
the Korean nor the English of a test sentence is ever seen in training.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from heed.data import words as lexicon
from heed.data.words import (
    HE,
    ME,
    SHE,
    THEY,
    WE,
    YOU,
    Adjective,
    Adverb,
    Noun,
    Person,
    Place,
    Stem,
    Verb,
    attach,
    final,
)

Words = tuple[tuple[str, int], ...]

# A role is a bit. A slot of a clause has six of them; a second clause has its own, further up.
HEAD, DETERMINER, QUALITY, COUNT, UNIT, CASE = 1, 2, 4, 8, 16, 32
ACTION, TENSE, NOT, MOOD, LINK = 1, 2, 4, 8, 16
SUBJECT, PREDICATE, OBJECT, PLACE, TIME, MANNER, COMPANION, RECEIVER, MEANS, REASON, VOCATIVE, SECOND = range(0, 72, 6)

SPLITS = ("train", "valid", "test")
SALT = "heed 4 "  # chosen so that the lecture's sentence falls into test
HONORIFIC = {"먹": Stem("드"), "마시": Stem("드"), "자": Stem("주무")}
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


@dataclass(frozen=True)
class Clause:
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


@dataclass(frozen=True)
class Sentence:
    """One clause or two, and how they are said: to whom, at which speech level, stated, asked or ordered."""

    first: Clause
    level: str = "plain"
    form: str = "statement"
    vocative: Person | None = None
    link: str = ""
    second: Clause | None = None


@dataclass(frozen=True)
class Pair:
    """A Korean sentence, its English, and the sorted links (source word, target word)."""

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...]


@cache
def paired(texts: tuple[str, ...], others: tuple[str, ...], slot: int) -> Words:
    """Words with their roles: one each where the other language has as many words, else one for all."""
    each = len(texts) == len(others)
    return tuple((text, (1 << at if each else HEAD) << slot) for at, text in enumerate(texts))


def marked(said: Words, particle: str, slot: int) -> Words:
    """The words with a particle on the last of them."""
    text, role = said[-1]
    return (*said[:-1], (attach(text, particle), role | CASE << slot))


# ---- Korean -------------------------------------------------------------------------------------------------------


def korean_phrase(phrase: Phrase, level: str) -> Words:
    """A thing in Korean: 민수의 큰 사과, 책 두 권."""
    noun, owner, quality, count = phrase
    said: list[tuple[str, int]] = []
    if owner:
        said += [(text, DETERMINER) for text in (owner.plain if level == "plain" else owner.polite)]
    if quality:
        text = quality.stem.text
        said.append((text + "는" if text[-1] == "있" else lexicon.open_ending(quality.stem, "ㄴ"), QUALITY))
    said.append((noun.korean, HEAD))
    if count:
        said += [(lexicon.COUNTS[count - 1][0], COUNT), (noun.counter, UNIT if noun.unit else HEAD)]
    return tuple(said)


@cache
def korean_noun(thing: Person | Phrase | Place, particle: str, level: str, slot: int) -> Words:
    """Someone, something or some place in Korean, with a particle."""
    if isinstance(thing, Phrase):
        said = tuple((text, role << slot) for text, role in korean_phrase(thing, level))
    elif isinstance(thing, Place):
        said = tuple((text, HEAD << slot) for text in thing.korean.split())
        said = (*said[:-1], (said[-1][0], 0 if len(said) > 1 else HEAD << slot))
    else:
        said = paired(thing.plain if level == "plain" else thing.polite, thing.english, slot)
    return marked(said, particle, slot) if particle else said


def conclude(stem: Stem, level: str, ending: str) -> str:
    """The last verb of a clause: a stem with the ending that its level, form or conjunction asks for."""
    if ending in ("but", "and", "because"):
        return stem.text + {"but": "지만", "and": "고", "because": "기"}[ending]
    if ending in ("so", "if"):
        return lexicon.infinitive(stem) + "서" if ending == "so" else lexicon.open_ending(stem, "면")
    if ending == "lets":
        return stem.text + "자" if level == "plain" else lexicon.open_ending(stem, "ㅂ시다")
    if ending == "order" and level != "plain":
        return lexicon.open_ending(HONORIFIC.get(stem.text, stem), "세요" if level == "polite" else "십시오")
    if level == "formal":
        return lexicon.formal(stem, "까" if ending == "question" else "다")
    return (lexicon.infinitive(stem) if stem.text != "말" else "마") + ("요" if level == "polite" else "")


def copula(text: str, tense: str, level: str, ending: str) -> str:
    """A noun, or 아니, made a predicate: 학생이야, 의사예요, 학생이었습니다."""
    denied = text == "아니"
    if tense == "past":
        return conclude(Stem(text + ("이었" if final(text) else "었" if denied else "였")), level, ending)
    if level != "formal" and ending in ("statement", "question"):
        short = {"plain": "야", "polite": "에요" if final(text) or denied else "예요"}[level]
        return text + ("이" if final(text) else "") + short
    return conclude(Stem(text if denied else text + "이"), level, ending)


def concluded(stem: Stem, role: int, tense: str, level: str, ending: str) -> Words:
    """The last words of a clause: one verb, or two where future or 때문에 ask for it."""
    if tense == "future":
        tail = {"plain": "거야", "polite": "거예요"}.get(level, "것입니까" if ending == "question" else "것입니다")
        return ((lexicon.open_ending(stem, "ㄹ"), role), (tail, TENSE))
    text = conclude(lexicon.past(stem) if tense == "past" and ending != "so" else stem, level, ending)
    return ((text, role | TENSE), ("때문에", LINK)) if ending == "because" else ((text, role | TENSE | LINK),)


@cache
def korean_verb(verb: Verb | Adjective, how: tuple[str, str, str], third: bool, level: str, ending: str) -> Words:
    """The verb's words: 안 갔어, 가고 싶어 해요, 갈 수 없습니다, 가지 않을 거야."""
    tense, mood, negation = how
    said: list[tuple[str, int]] = []
    stem, role = verb.stem, ACTION
    if mood == "want":
        said, stem, role = [(stem.text + "고", ACTION)], Stem("싶"), MOOD
        if third:
            said, stem = [*said, ("싶어", MOOD)], Stem("하")
    elif mood == "doing":
        said, stem, role = [(stem.text + "고", ACTION)], Stem("있"), MOOD
    elif mood == "can":
        said = [(lexicon.open_ending(stem, "ㄹ"), ACTION), ("수", MOOD)]
        stem, role = (Stem("없"), MOOD | NOT) if negation else (Stem("있"), MOOD)
    unable = mood == "unable"
    if negation == "short":
        said = [("못", NOT | MOOD) if unable else ("안", NOT)]
    elif negation == "long":
        said = [*said, (stem.text + "지", role)]
        stem = Stem("못하" if unable else "말" if ending in ("order", "lets") else "않")
        role = NOT | MOOD if unable else NOT
    last = concluded(stem, role, tense, level, ending)
    return tuple((text, role << PREDICATE) for text, role in (*said, *last))


def korean_complement(clause: Clause, level: str, ending: str) -> Words:
    """What someone is, in Korean: 학생이야, 학생이 아니에요."""
    tail = (("때문에", LINK << PREDICATE),) if ending == "because" else ()
    linked = (TENSE if tail else TENSE | LINK) << PREDICATE
    if clause.negation:
        said = korean_noun(clause.object, "이", level, OBJECT)
        return (*said, (copula("아니", clause.tense, level, ending), linked | NOT << PREDICATE), *tail)
    *said, (text, role) = korean_noun(clause.object, "", level, OBJECT)
    return (*said, (copula(text, clause.tense, level, ending), role | linked | ACTION << PREDICATE), *tail)


def korean_predicate(clause: Clause, level: str, ending: str) -> Words:
    """The predicate of a clause in Korean, its complement included."""
    if clause.verb is BE:
        return korean_complement(clause, level, ending)
    if clause.verb is THERE:
        stem = Stem("없") if clause.negation else clause.verb.stem
        text = conclude(lexicon.past(stem) if clause.tense == "past" else stem, level, ending)
        role = ACTION | TENSE | (NOT if clause.negation else 0)
        return (*korean_noun(clause.object, "이", level, OBJECT), (text, role << PREDICATE))
    third = clause.mood == "want" and clause.subject.agreement in ("he", "they")
    return korean_verb(clause.verb, (clause.tense, clause.mood, clause.negation), third, level, ending)


def moves(clause: Clause) -> bool:
    """Whether the clause's place is where someone goes."""
    return isinstance(clause.verb, Verb) and "moves" in clause.verb.traits


def korean_setting(clause: Clause, level: str) -> list[tuple[str, int]]:
    """Where, with whom, to whom and by what, in Korean."""
    said: list[tuple[str, int]] = []
    goes = moves(clause)
    if clause.place and not goes:
        said += korean_noun(clause.place, "에" if clause.verb is THERE else "에서", level, PLACE)
    if clause.companion:
        said += (*korean_noun(clause.companion, "과", level, COMPANION), ("함께", UNIT << COMPANION))
    if clause.receiver:
        said += korean_noun(clause.receiver, "에게", level, RECEIVER)
    if clause.means:
        said += korean_noun(clause.means, "으로", level, MEANS)
    if clause.place and goes:
        said += korean_noun(clause.place, "에", level, PLACE)
    return said


def korean(clause: Clause, level: str, ending: str, topic: str) -> list[tuple[str, int]]:
    """A clause in Korean; `topic` is the particle of its subject, or '' where the subject goes without saying."""
    said: list[tuple[str, int]] = []
    if clause.subject and topic:
        said += korean_noun(clause.subject, topic, level, SUBJECT)
    if clause.time:
        time = paired(clause.time.korean, clause.time.english, TIME)
        said = [*time, *said] if clause.time_first else [*said, *time]
    if clause.reason:
        said += paired(clause.reason.korean, (), REASON)
    said += korean_setting(clause, level)
    if clause.object and clause.verb is not BE and clause.verb is not THERE:
        said += korean_noun(clause.object, "을", level, OBJECT)
    if clause.manner:
        said += paired(clause.manner.korean, (), MANNER)
    return [*said, *korean_predicate(clause, level, ending)]


# ---- English ------------------------------------------------------------------------------------------------------


@cache
def english_noun(thing: Person | Phrase | Place, acted_on: bool, many: bool, slot: int) -> Words:
    """Someone, something or some place in English; `many` speaks of a thing in general: apples, not an apple."""
    if isinstance(thing, Person):
        return paired(thing.object if acted_on else thing.english, thing.plain, slot)
    if isinstance(thing, Place):
        return tuple((text, HEAD << slot) for text in thing.english)
    noun, owner, quality, count = thing
    name = (
        lexicon.plural(noun.english) if noun.number == "count" and ((many and not owner) or count > 1) else noun.english
    )
    said = [(quality.english, QUALITY), (name, HEAD)] if quality else [(name, HEAD)]
    if count:
        unit = lexicon.plural(noun.unit) if noun.unit and count > 1 else noun.unit
        said = [(lexicon.COUNTS[count - 1][1], COUNT)] + [(unit, UNIT), ("of", UNIT)] * bool(unit) + said
    elif owner:
        said = [(text, DETERMINER) for text in owner.english] + said
    elif noun.number == "the":
        said = [("the", HEAD), *said]
    elif noun.number == "count" and not many:
        said = [(lexicon.article(said[0][0]), HEAD), *said]
    return tuple((text, role << slot) for text, role in said)


@cache
def english_place(place: Place, goes: bool, slot: int) -> Words:
    """Where, or by what, in English; the preposition belongs to the Korean particle."""
    said = place.to if goes else place.at
    if len(said) == 1:
        return ((said[0], (HEAD | CASE) << slot),)
    return ((said[0], CASE << slot), *((text, HEAD << slot) for text in said[1:]))


def be(agreement: str, tense: str) -> str:
    """The form of to be."""
    singular = agreement in ("I", "he")
    if tense == "past":
        return "was" if singular else "were"
    return {"I": "am", "he": "is"}.get(agreement, "are")


def auxiliary(how: tuple[str, str, str], agreement: str, is_state: bool, bare: bool) -> list[tuple[str, int]]:
    """The words before the main verb: did not, will, cannot, is; none where a plain verb stands alone (`bare`)."""
    tense, mood, negation = how
    no = [("not", NOT)] * bool(negation)
    if mood in ("can", "unable"):
        if tense == "present" and no:
            return [("cannot", MOOD | NOT)]
        return [("can" if tense == "present" else "could", MOOD), *no]
    if tense == "future":
        return [("will", TENSE), *no]
    if mood == "doing":
        return [(be(agreement, tense), MOOD | TENSE), *no]
    if is_state:
        return [(be(agreement, tense), TENSE), *no]
    if bare and not no:
        return []
    return [("did" if tense == "past" else "does" if agreement == "he" else "do", TENSE), *no]


@cache
def english_verb(verb: Verb | Adjective, how: tuple[str, str, str], agreement: str, bare: bool) -> tuple[Words, Words]:
    """The verb's words in English: what a question puts first, and the rest."""
    tense, mood, _ = how
    is_state = isinstance(verb, Adjective) or verb is BE
    helpers = auxiliary(how, agreement, is_state, bare)
    main, role = ("want", MOOD) if mood == "want" else (verb.english, ACTION)
    if is_state:
        rest = [("be", ACTION)] * (tense == "future") + [(main, ACTION)] * (verb is not BE)
    elif mood == "doing":
        rest = [(lexicon.lengthened(main, "ing"), ACTION)]
    elif helpers:
        rest = [(main, role)]
    elif tense == "past":
        rest = [("wanted" if mood == "want" else verb.past, role)]
    else:
        rest = [(lexicon.third(main) if agreement == "he" else main, role)]
    if mood == "want":
        rest += [("to", ACTION), (verb.english, ACTION)]
    if isinstance(verb, Verb):
        rest += [(text, ACTION) for text in verb.tail]
    first, *others = [(text, role << PREDICATE) for text, role in (*helpers, *rest)]
    return ((first,), tuple(others)) if helpers else ((), (first, *others))


def english_there(clause: Clause, asked: bool) -> list[tuple[str, int]]:
    """That something is somewhere, in English: there are two books on the desk."""
    noun, _, _, count = clause.object
    many = bool(clause.negation) and noun.number == "count"
    verb = (be("they" if many or count > 1 else "he", clause.tense), TENSE << PREDICATE)
    said = [verb, ("there", ACTION << PREDICATE)] if asked else [("there", ACTION << PREDICATE), verb]
    said += [("no", NOT << PREDICATE)] * bool(clause.negation)
    return [*said, *english_noun(clause.object, True, many, OBJECT), *english_place(clause.place, False, PLACE)]


def english_start(clause: Clause, form: str) -> list[tuple[str, int]]:
    """Subject, verb and the adverb between them, in the order that a statement, question or order asks for."""
    how = (clause.tense, clause.mood, clause.negation)
    middle = [clause.time] * bool(clause.time and clause.time.before_verb)
    between = [word for time in middle for word in paired(time.english, time.korean, TIME)]
    if clause.manner and clause.manner.before_verb:
        between += paired(clause.manner.english, (), MANNER)
    if not clause.subject:
        first, rest = english_verb(clause.verb, how, "you", True)
        return [*first, *rest] if form == "order" else [("let's", TENSE << PREDICATE), *rest]
    asked = form == "question" and clause.asks != "subject"
    agreement = clause.subject.agreement if isinstance(clause.subject, Person) else "he"
    first, rest = english_verb(clause.verb, how, agreement, not asked)
    subject = english_noun(clause.subject, False, False, SUBJECT)
    return [*first, *subject, *between, *rest] if asked else [*subject, *first, *between, *rest]


def in_general(clause: Clause, form: str) -> bool:
    """Whether a clause speaks of things in general: I read books, we like apples, they are students."""
    if clause.verb is BE:
        return clause.subject.agreement in ("we", "they")
    usual = clause.tense == "present" and clause.mood == "plain" and form not in ("order", "lets")
    return usual or (isinstance(clause.verb, Verb) and "feels" in clause.verb.traits)


def english_slots(clause: Clause, form: str) -> dict[str, Words]:
    """What follows the verb in English, in order."""
    goes = moves(clause)
    slots: dict[str, Words] = {}
    if clause.object:
        slots["object"] = english_noun(clause.object, True, in_general(clause, form), OBJECT)
    if clause.receiver:
        slots["receiver"] = (("to", CASE << RECEIVER), *english_noun(clause.receiver, True, False, RECEIVER))
    if clause.place and goes:
        slots["place"] = english_place(clause.place, True, PLACE)
    if clause.manner and not clause.manner.before_verb:
        slots["manner"] = paired(clause.manner.english, (), MANNER)
    if clause.companion:
        company = ("with", (CASE | UNIT) << COMPANION)
        slots["companion"] = (company, *english_noun(clause.companion, True, False, COMPANION))
    if clause.means:
        slots["means"] = english_place(clause.means, False, MEANS)
    if clause.place and not goes:
        slots["place"] = english_place(clause.place, False, PLACE)
    return slots | english_times(clause)


def english_times(clause: Clause) -> dict[str, Words]:
    """When and why, in English, where they do not stand before the verb."""
    slots: dict[str, Words] = {}
    if clause.time and not clause.time.before_verb:
        slots["time"] = paired(clause.time.english, clause.time.korean, TIME)
    if clause.reason:
        slots["reason"] = paired(clause.reason.english, (), REASON)
    return slots


def english(clause: Clause, form: str) -> list[tuple[str, int]]:
    """A clause in English."""
    if clause.verb is THERE:
        return english_there(clause, form == "question")
    slots = english_slots(clause, form)
    front = slots.pop("time" if clause.time_first else clause.asks, ())
    said = [*front, *english_start(clause, form)]
    for words in slots.values():
        said += words
    return said


# ---- Sentences ----------------------------------------------------------------------------------------------------


def korean_words(sentence: Sentence) -> list[tuple[str, int]]:
    """A sentence in Korean, word by word."""
    first, second, level = sentence.first, sentence.second, sentence.level
    said: list[tuple[str, int]] = []
    if sentence.vocative:
        name = sentence.vocative.name
        called = (attach(name, "아") + ",",) if level == "plain" else (name, "씨,")
        said += [(text, HEAD << VOCATIVE) for text in called]
    if second is None:
        said += korean(first, level, sentence.form, "이" if first.subject is WHO else "은")
    else:
        shared = second.subject is first.subject
        said += korean(first, level, sentence.link, "은" if shared or sentence.link in ("but", "and") else "이")
        rest = korean(second, level, "statement", "" if shared else "은")
        said += [(text, role << SECOND) for text, role in rest]
    text, role = said[-1]
    said[-1] = (text + ("?" if sentence.form == "question" else "."), role)
    return said


def english_words(sentence: Sentence) -> list[tuple[str, int]]:
    """A sentence in English, word by word, without the person addressed and the end mark."""
    said = english(sentence.first, sentence.form)
    if sentence.second is None:
        return said
    shared = sentence.second.subject is sentence.first.subject  # said once in Korean, so both link to one word
    rest = english(sentence.second, "statement")
    rest = [(text, role if shared and role < 1 << PREDICATE else role << SECOND) for text, role in rest]
    link = LINK << PREDICATE
    if sentence.link in ("because", "so"):
        return [*rest, ("because", link), *said]
    said[-1] = (said[-1][0] + ",", said[-1][1])
    return [("if", link), *said, *rest] if sentence.link == "if" else [*said, (sentence.link, link), *rest]


def split_of(said: list[tuple[str, int]]) -> str:
    """The split of a sentence, by its English words in whatever order."""
    bag = " ".join(sorted([text for text, _ in said])).replace(",", "")
    bucket = crc32((SALT + bag).encode()) % 100
    return "train" if bucket < 90 else "valid" if bucket < 95 else "test"


def pair(sentence: Sentence, said: list[tuple[str, int]]) -> Pair:
    """A sentence as a pair, given its English words."""
    source, target = korean_words(sentence), said
    if sentence.vocative:
        target = [(sentence.vocative.english[0] + ",", HEAD << VOCATIVE), *said]
    roles = [role for _, role in target]
    links = tuple([(i, j) for i, (_, mine) in enumerate(source) for j, yours in enumerate(roles) if mine & yours])
    text = " ".join([text for text, _ in target]) + ("?" if sentence.form == "question" else ".")
    return Pair(" ".join([text for text, _ in source]), text[0].upper() + text[1:], links)


# ---- Drawing ------------------------------------------------------------------------------------------------------

NAMED, OTHERS = lexicon.FRIENDS, lexicon.PEOPLE
SPEAKERS = [*[ME] * 6, YOU, *[WE] * 3, *[HE, SHE, THEY] * 2, *NAMED, *OTHERS]
ASKED = [*[YOU] * 12, HE, SHE, THEY, *NAMED, *OTHERS]
PARTNERS = [*[ME, YOU] * 6, WE, HE, SHE, THEY, *NAMED, *OTHERS]
THIS, THAT = Person(("이",), ("이",), ("this",), ()), Person(("그",), ("그",), ("that",), ())
OWNERS = [
    *[THIS, THAT] * 4,
    *[Person(("내",), ("제",), ("my",), ()), Person(("네",), ("당신의",), ("your",), ())] * 3,
    *[Person(("그의",), ("그의",), ("his",), ()), Person(("그녀의",), ("그녀의",), ("her",), ())] * 2,
    *[Person((one.plain[0] + "의",), (one.name, "씨의"), (one.english[0] + "'s",), (), name=one.name) for one in NAMED],
]
JOBS = [Noun(korean, "count", english, "", "", ("job",)) for korean, english in lexicon.WORK]
FITTING = {noun: [q for q in lexicon.QUALITIES if {*q.kinds} & {*noun.kinds}] for noun in lexicon.THINGS}
FITTING |= {job: [q for q in lexicon.QUALITIES if q.english in ("kind", "famous", "smart")] for job in JOBS}
OBJECTS = {verb: [noun for noun in lexicon.THINGS if {*verb.objects} & {*noun.kinds}] for verb in lexicon.ACTIONS}
PLACES = {verb: [site for site in lexicon.SITES if {*site.kinds} & {*verb.where}] for verb in lexicon.ACTIONS}
PLACES |= {verb: [site for site in lexicon.SITES if site.to] for verb in lexicon.ACTIONS if "moves" in verb.traits}
TOOLS = {verb: [tool for tool in lexicon.TOOLS if {*tool.kinds} & {*verb.traits}] for verb in lexicon.ACTIONS}
SLOTS = {
    verb: [
        *["place"] * bool(PLACES[verb] and "moves" not in verb.traits),
        *["means"] * bool(TOOLS[verb]),
        *["manner"] * bool(verb.manners),
        *["companion"] * (not {"feels", "receiver", "solo"} & {*verb.traits}),
    ]
    for verb in lexicon.ACTIONS
}
LAID = {spot: [noun for noun in lexicon.THINGS if {*spot.kinds} & {*noun.kinds}] for spot in lexicon.CORNERS}
TIMES = {
    fit: [time for time, fits in lexicon.SEASONS if fit in fits] for fit in ("usual", "now", "soon", "future", "past")
}
TIMES["future"] += TIMES["soon"]
ALWAYS = next(time for time in TIMES["usual"] if time.english == ("always",))
DEEDS = [verb for verb in lexicon.ACTIONS if "action" in verb.traits]
FEELS = [verb for verb in lexicon.ACTIONS if "feels" in verb.traits]
VERBS = {"statement": DEEDS + FEELS * 3, "question": DEEDS + FEELS * 2, "order": DEEDS, "lets": DEEDS}
PASSING = [q for q in lexicon.QUALITIES if q.english in ("busy", "happy", "tired", "sick", "hungry", "lonely", "sad")]
TRAITS = [q for q in lexicon.QUALITIES if "person" in q.kinds]
DEGREES = [lexicon.WAYS[korean] for korean in ("아주", "정말", "너무")]
DESCRIBED = [noun for noun in lexicon.THINGS if FITTING[noun]]
SIGHTS = {site: [q for q in lexicon.QUALITIES if {*q.kinds} & {*site.kinds}] for site in lexicon.SITES if site.english}

# tense, mood, denied
FACTS = [*[("past", "plain", False)] * 4, *[("future", "plain", False)] * 3, ("past", "plain", True)]
FACTS += [("future", "plain", True), ("present", "can", False), ("past", "can", False), ("present", "can", True)]
EVENTS = [*FACTS, *[("present", "plain", False)] * 3, *[("present", "plain", True)] * 2, ("past", "unable", True)]
EVENTS += [
    ("present", "unable", True),
    ("past", "can", True),
    *[("present", "doing", False)] * 2,
    ("past", "doing", False),
]
EVENTS += [
    ("present", "doing", True),
    *[("present", "want", False)] * 2,
    ("past", "want", False),
    ("present", "want", True),
]
QUERIES = [*[("past", "plain", False)] * 3, *[("future", "plain", False)] * 2, *[("present", "plain", False)] * 2]
QUERIES += [("present", "doing", False), ("present", "want", False), ("present", "can", False)]
FEELINGS = [*[("present", "plain", False)] * 4, ("present", "plain", True), ("past", "plain", True)]
FEELINGS += [("past", "plain", False), ("future", "plain", False)]
ORDERS = [*[("present", "plain", False)] * 3, ("present", "plain", True)]
# what may come before 'and' is not denied: 가지 않고 would mean 'instead of going'
BEFORE = {
    (link, tense): [how for how in EVENTS if how[0] == tense and not (how[2] and link == "and")]
    for link in ("but", "and", "because")
    for tense in ("present", "past")
}


def pick(rng: Random, options: Sequence) -> Any:
    """One of the options."""
    return options[int(rng.random() * len(options))]


def someone(rng: Random, pool: list[Person], taken: list[Person]) -> Person:
    """Someone not yet in the sentence; 'I' and 'we' do not meet."""
    while True:
        one = pick(rng, pool)
        if one not in taken and not (one in (ME, WE) and (ME in taken or WE in taken)):
            return one


def something(rng: Random, noun: Noun, taken: list[Person], countable: bool) -> Phrase:
    """A thing, plain or with an owner, a quality, a number."""
    chance = rng.random()
    if chance < 0.35 or noun.kinds == ("subject",):
        return Phrase(noun)
    if chance < 0.6:
        owner = pick(rng, OWNERS)
        return Phrase(noun, None if any(owner.name and owner.name == one.name for one in taken) else owner)
    quality = pick(rng, FITTING[noun]) if chance < 0.85 and FITTING[noun] else None
    return Phrase(noun, None, quality, number(rng) if countable and noun.counter and chance > 0.75 else 0)


def number(rng: Random) -> int:
    """A number from one to ten, more often a small one."""
    return int(rng.random() ** 2 * 10) + 1


def acted_on(rng: Random, verb: Verb, taken: list[Person], denied: bool) -> Person | Phrase | None:
    """What a verb acts on."""
    if "person" in verb.objects and (not OBJECTS[verb] or rng.random() < 0.4):
        return someone(rng, PARTNERS, taken)
    if not OBJECTS[verb]:
        return None
    countable = not denied and "feels" not in verb.traits and "single" not in verb.traits
    return something(rng, pick(rng, OBJECTS[verb]), taken, countable)


def season(form: str, tense: str, mood: str, denied: bool) -> str:
    """Which times fit a verb."""
    if tense == "past" or (tense == "future" and mood == "plain"):
        return tense
    if mood in ("want", "can", "unable") or form in ("order", "lets"):
        return "soon"
    return "now" if mood == "doing" else "" if denied else "usual"


def denial(rng: Random, verb: Verb | Adjective, mood: str, form: str) -> str:
    """How a verb is denied: 안 and 못 before it, or -지 않다 and -지 못하다 after it, or by 없다 itself."""
    if mood == "can":
        return "own"
    whole = "noun" in verb.traits if isinstance(verb, Verb) else verb.stem.text[-1] in "하있답"
    return "long" if whole or mood in ("want", "doing") or form in ("order", "lets") or rng.random() < 0.5 else "short"


def extras(rng: Random, verb: Verb, denied: bool, taken: list[Person], room: int) -> dict[str, object]:
    """Where, how, with whom and by what something is done: at most `room` of them."""
    found: dict[str, object] = {}
    for slot in SLOTS[verb]:
        if len(found) < room and rng.random() < 0.35 and not (denied and slot == "manner"):
            if slot == "companion":
                if found.get("manner") is not lexicon.WAYS["혼자"]:
                    found[slot] = someone(rng, PARTNERS, taken)
            elif slot == "manner":
                way = pick(rng, verb.manners)
                found[slot] = SO_MUCH if way == "많이" and "feels" in verb.traits else lexicon.WAYS[way]
            else:
                found[slot] = pick(rng, (PLACES if slot == "place" else TOOLS)[verb])
    return found


def aspect(rng: Random, verb: Verb, subject: Person | None, form: str) -> tuple[str, str, bool]:
    """Tense, mood and denial that suit a verb, its subject and the form."""
    if form in ("order", "lets"):
        return pick(rng, ORDERS)
    if "feels" in verb.traits:
        return pick(rng, FEELINGS if form == "statement" else FEELINGS[:4] + FEELINGS[-2:])
    return pick(rng, QUERIES if form == "question" else FACTS if subject is YOU else EVENTS)


def action(rng: Random, form: str, room: int, subject: Person | None, how: tuple | None = None) -> Clause:
    """A clause in which someone does or feels something."""
    verb = pick(rng, VERBS[form] if how is None else DEEDS)
    taken = [subject or (YOU if form == "order" else WE)]
    tense, mood, denied = how or aspect(rng, verb, subject, form)
    slots: dict[str, object] = {"object": acted_on(rng, verb, taken, denied)}
    if isinstance(slots["object"], Person):
        taken.append(slots["object"])
    if "receiver" in verb.traits:
        slots["receiver"] = someone(rng, PARTNERS, taken)
        taken.append(slots["receiver"])
    slots |= extras(rng, verb, denied, taken, room)
    if "moves" in verb.traits:
        slots["place"] = pick(rng, PLACES[verb])
    fits = season(form, tense, mood, denied)
    if fits and len(slots) <= room + 2 and rng.random() < 0.45:
        time = pick(rng, TIMES[fits])
        if "feels" in verb.traits:
            time = ALWAYS if fits == "usual" else None
        if time and not (time.before_verb and "manner" in slots):
            slots["time"] = time
            slots["time_first"] = form == "statement" and room > 1 and not time.before_verb and rng.random() < 0.25
    return Clause(
        subject, verb, tense=tense, mood=mood, negation=denial(rng, verb, mood, form) if denied else "", **slots
    )


def question(rng: Random) -> Clause:
    """A question about an action: whether, or who, what, where, when, why."""
    clause = action(rng, "question", 1, pick(rng, ASKED))
    asks = pick(rng, ["", "", "", "", "subject", "object", "place", "time", "reason"])
    if asks and clause.tense == "present" and clause.mood == "plain":
        clause = replace(clause, time=None)
    if asks == "subject":
        return replace(clause, subject=WHO, asks=asks)
    if asks == "object" and clause.object:
        return replace(clause, object=WHO if isinstance(clause.object, Person) else WHAT, asks=asks)
    if asks == "place" and PLACES[clause.verb]:
        return replace(clause, place=WHERE, asks=asks)
    if asks == "time" and clause.tense != "present" and "feels" not in clause.verb.traits:
        return replace(clause, time=WHEN, asks=asks)
    if asks == "reason":
        denied = (clause.tense, clause.mood, clause.manner) == ("past", "plain", None) and rng.random() < 0.5
        negation = denial(rng, clause.verb, "plain", "question") if denied else ""
        return replace(clause, reason=WHY, negation=negation, asks=asks)
    return clause


def described(rng: Random, form: str) -> Clause:
    """A clause that says how a thing or a place is."""
    tense, denied = pick(rng, ["present", "present", "past"]), form == "statement" and rng.random() < 0.3
    if rng.random() < 0.15:
        site = pick(rng, list(SIGHTS))
        subject, quality = site, pick(rng, SIGHTS[site])
    else:
        noun = pick(rng, DESCRIBED)
        subject, quality = Phrase(noun, pick(rng, OWNERS)), pick(rng, FITTING[noun])
        if noun.kinds == ("subject",):
            subject = Phrase(noun)
    manner = pick(rng, DEGREES) if not denied and rng.random() < 0.4 else None
    negation = denial(rng, quality, "plain", form) if denied else ""
    return Clause(subject, quality, tense=tense, negation=negation, manner=manner)


def state(rng: Random, form: str, subject: Person, tense: str = "", timed: bool = True) -> Clause:
    """A clause that says how someone is."""
    quality = pick(rng, TRAITS if rng.random() < 0.5 and timed else PASSING)
    passing = quality in PASSING
    tense = tense or pick(rng, ["present", "present", "past", "future"] if passing else ["present", "present", "past"])
    denied = form == "statement" and rng.random() < 0.3
    slots: dict[str, object] = {}
    if timed and passing and rng.random() < 0.5:
        fits = {"past": "past", "future": "future", "present": "usual" if not denied else ""}[tense]
        slots["time"] = pick(rng, TIMES[fits]) if fits else None
    if not denied and tense != "future" and not slots and rng.random() < 0.4:
        slots["manner"] = pick(rng, DEGREES)
    negation = denial(rng, quality, "plain", form) if denied else ""
    return Clause(subject, quality, tense=tense, negation=negation, **slots)


def identity(rng: Random, form: str, subject: Person) -> Clause:
    """A clause that says what someone is."""
    job = pick(rng, JOBS)
    quality = pick(rng, FITTING[job]) if rng.random() < 0.5 else None
    tense = pick(rng, ["present", "present", "past"])
    denied = form == "statement" and rng.random() < 0.3
    return Clause(subject, BE, Phrase(job, None, quality), tense, negation="own" if denied else "")


def there(rng: Random, form: str) -> Clause:
    """A clause that says that something is somewhere."""
    spot = pick(rng, lexicon.CORNERS)
    noun = pick(rng, LAID[spot])
    denied = form == "statement" and rng.random() < 0.25
    quality = pick(rng, FITTING[noun]) if rng.random() < 0.4 and FITTING[noun] else None
    counted = form == "statement" and not denied and noun.counter and rng.random() < 0.7
    thing = Phrase(noun, None, quality, number(rng) if counted else 0)
    tense = pick(rng, ["present", "present", "past"])
    return Clause(None, THERE, thing, tense, negation="own" if denied else "", place=spot)


def simple(rng: Random, form: str) -> Clause:
    """A sentence's only clause, stated or asked."""
    chance = rng.random()
    subject = pick(rng, SPEAKERS if form == "statement" else ASKED)
    if chance < 0.7:
        return action(rng, form, 2, subject) if form == "statement" else question(rng)
    if chance < 0.78:
        return described(rng, form)
    if chance < 0.88:
        return state(rng, form, subject)
    if chance < 0.94:
        return identity(rng, form, subject if subject not in OTHERS[3:] else THEY)
    return there(rng, form)


def joined(rng: Random) -> tuple[Clause, str, Clause]:
    """Two clauses and the conjunction between them."""
    subject = pick(rng, SPEAKERS)
    link = pick(rng, ["but", "and", "because", "so", "so", "if"])
    same = not subject.name and len(subject.plain) == 1 and link != "and" and rng.random() < 0.7
    other = subject if same else someone(rng, SPEAKERS, [subject])
    if link == "if":
        first = action(rng, "statement", 0, subject, ("present", "plain", False))
        second = action(rng, "statement", 1, other, ("future", "plain", rng.random() < 0.2))
        return replace(first, time=None, time_first=False), link, second
    how = pick(rng, EVENTS)
    second = action(rng, "statement", 1, other, how)
    tense = "past" if how[0] == "past" else "present"
    if link == "so" or rng.random() < 0.3:
        return state(rng, "statement", subject, tense, timed=False), link, second
    return action(rng, "statement", 0, subject, pick(rng, BEFORE[link, tense])), link, second


def draw(rng: Random) -> Sentence:
    """Any sentence of the phrasebook."""
    level = pick(rng, ["plain", "polite", "formal"])
    vocative = pick(rng, NAMED) if rng.random() < 0.2 else None
    chance = rng.random()
    link, second, form = "", None, "statement"
    if chance < 0.15:
        first, link, second = joined(rng)
    elif chance < 0.22:
        form = pick(rng, ["order", "order", "lets"])
        first = action(rng, form, 1, None)
    else:
        form = "question" if chance < 0.42 else "statement"
        first = simple(rng, form)
    if vocative and vocative in mentioned(first) + mentioned(second):
        vocative = None
    return Sentence(first, level, form, vocative, link, second)


def mentioned(clause: Clause | None) -> list:
    """Those whom a clause speaks of."""
    if clause is None:
        return []
    owners = [thing.owner for thing in (clause.subject, clause.object) if isinstance(thing, Phrase) and thing.owner]
    named = [one for one in NAMED if any(one.name == owner.name for owner in owners)]
    return [clause.subject, clause.object, clause.receiver, clause.companion, *named]


# ---- The corpus ---------------------------------------------------------------------------------------------------

LOVE = next(verb for verb in lexicon.ACTIONS if verb.english == "love")
LECTURE_SENTENCE = Sentence(Clause(ME, LOVE, YOU, manner=SO_MUCH), vocative=NAMED[0])
LECTURE = pair(LECTURE_SENTENCE, english_words(LECTURE_SENTENCE))
LONGEST = 18  # English words
PATIENCE = 100_000  # draws in a row without a new sentence, after which a split counts as spent


def pairs(split: str, count: int, seed: int = 0) -> Iterator[Pair]:
    """`count` different pairs of a split ('train', 'valid', 'test'), drawn by `seed`; the lecture's comes first in test."""
    if split not in SPLITS:
        raise ValueError(f"The phrasebook has no split {split!r}; it has train, valid and test.")
    return stream(split, count, seed)


def stream(split: str, count: int, seed: int) -> Iterator[Pair]:
    """The pairs that `pairs` promises."""
    rng, seen, misses = Random(seed), set(), 0
    if split == "test" and count > 0:
        seen.add(fingerprint(LECTURE.source))
        yield LECTURE
    while len(seen) < count:
        sentence = draw(rng)
        said = english_words(sentence)
        misses += 1
        if len(said) <= LONGEST and split_of(said) == split:
            made = pair(sentence, said)
            mark = fingerprint(made.source)
            if mark not in seen:
                seen.add(mark)
                misses = 0
                yield made
        if misses > PATIENCE:
            raise ValueError(f"The phrasebook ran out of {split} sentences after {len(seen):,}; ask for fewer.")


def fingerprint(text: str) -> int:
    """Eight bytes that stand for a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


def write(folder: Path, *, train: int, valid: int = 500, test: int = 500, seed: int = 0) -> dict[str, Path]:
    """Write train.ko, train.en, valid.ko, ..., test.align into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    for split, count in (("train", train), ("valid", valid), ("test", test)):
        endings = ("ko", "en") if split == "train" else ("ko", "en", "align")
        here = {f"{split}.{ending}": folder / f"{split}.{ending}" for ending in endings}
        with ExitStack() as stack:
            files = [stack.enter_context(partial(path).open("w", encoding="utf-8")) for path in here.values()]
            for made in pairs(split, count, seed):
                links = " ".join(f"{i}-{j}" for i, j in made.alignment)
                for file, line in zip(files, (made.source, made.target, links), strict=False):
                    file.write(line + "\n")
        for path in here.values():
            os.replace(partial(path), path)
        paths |= here
    return paths


def partial(path: Path) -> Path:
    """The name a file has until it is complete."""
    return path.with_name(path.name + ".partial")
