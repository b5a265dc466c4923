"""Sentences said in English, word by word, each word with its roles."""

from functools import cache

from heed.data.synthetic.phrasebook.clauses import (
    ACTION,
    BE,
    CASE,
    COMPANION,
    COUNT,
    DETERMINER,
    HEAD,
    LINK,
    MANNER,
    MEANS,
    MOOD,
    NOT,
    OBJECT,
    PLACE,
    PREDICATE,
    QUALITY,
    REASON,
    RECEIVER,
    SECOND,
    SUBJECT,
    TENSE,
    THERE,
    TIME,
    UNIT,
    Clause,
    Phrase,
    Sentence,
    Words,
    moves,
    paired,
)
from heed.data.synthetic.phrasebook.inflect import article, lengthened, plural, third
from heed.data.synthetic.phrasebook.lexicon import COUNTS
from heed.data.synthetic.phrasebook.words import Adjective, Adverb, Person, Place, Verb


@cache
def say_noun(thing: Person | Phrase | Place, acted_on: bool, many: bool, slot: int) -> Words:
    """Someone, something or some place in English; `many` speaks of a thing in general: apples, not an apple."""
    if isinstance(thing, Person):
        return paired(thing.object if acted_on else thing.english, thing.plain, slot)
    if isinstance(thing, Place):
        return tuple((text, HEAD << slot) for text in thing.english)
    noun, owner, quality, count = thing
    name = plural(noun.english) if noun.number == "count" and ((many and not owner) or count > 1) else noun.english
    said = [(quality.english, QUALITY), (name, HEAD)] if quality else [(name, HEAD)]
    if count:
        unit = plural(noun.unit) if noun.unit and count > 1 else noun.unit
        said = [(COUNTS[count - 1][1], COUNT)] + [(unit, UNIT), ("of", UNIT)] * bool(unit) + said
    elif owner:
        said = [(text, DETERMINER) for text in owner.english] + said
    elif noun.number == "the":
        said = [("the", HEAD), *said]
    elif noun.number == "count" and not many:
        said = [(article(said[0][0]), HEAD), *said]
    return tuple((text, role << slot) for text, role in said)


@cache
def say_place(place: Place, goes: bool, slot: int) -> Words:
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
def say_verb(verb: Verb | Adjective, how: tuple[str, str, str], agreement: str, bare: bool) -> tuple[Words, Words]:
    """The verb's words in English: what a question puts first, and the rest."""
    tense, mood, _ = how
    is_state = isinstance(verb, Adjective) or verb is BE
    helpers = auxiliary(how, agreement, is_state, bare)
    main, role = ("want", MOOD) if mood == "want" else (verb.english, ACTION)
    if is_state:
        rest = [("be", ACTION)] * (tense == "future") + [(main, ACTION)] * (verb is not BE)
    elif mood == "doing":
        rest = [(lengthened(main, "ing"), ACTION)]
    elif helpers:
        rest = [(main, role)]
    elif tense == "past":
        rest = [("wanted" if mood == "want" else verb.past, role)]
    else:
        rest = [(third(main) if agreement == "he" else main, role)]
    if mood == "want":
        rest += [("to", ACTION), (verb.english, ACTION)]
    if isinstance(verb, Verb):
        rest += [(text, ACTION) for text in verb.tail]
    first, *others = [(text, role << PREDICATE) for text, role in (*helpers, *rest)]
    return ((first,), tuple(others)) if helpers else ((), (first, *others))


def say_there(clause: Clause, asked: bool) -> list[tuple[str, int]]:
    """That something is somewhere, in English: there are two books on the desk."""
    noun, _, _, count = clause.object
    many = bool(clause.negation) and noun.number == "count"
    verb = (be("they" if many or count > 1 else "he", clause.tense), TENSE << PREDICATE)
    said = [verb, ("there", ACTION << PREDICATE)] if asked else [("there", ACTION << PREDICATE), verb]
    said += [("no", NOT << PREDICATE)] * bool(clause.negation)
    return [*said, *say_noun(clause.object, True, many, OBJECT), *say_place(clause.place, False, PLACE)]


def say_start(clause: Clause, form: str) -> list[tuple[str, int]]:
    """Subject, verb and the adverb between them, in the order that a statement, question or order asks for."""
    how = (clause.tense, clause.mood, clause.negation)
    subject = clause.subject
    if subject is None:
        first, rest = say_verb(clause.verb, how, "you", True)
        return [*first, *rest] if form == "order" else [("let's", TENSE << PREDICATE), *rest]
    asked = form == "question" and clause.asks != "subject"
    first, rest = say_verb(clause.verb, how, subject.agreement if isinstance(subject, Person) else "he", not asked)
    who = say_noun(subject, False, False, SUBJECT)
    between = say_between(clause.time, clause.manner)
    return [*first, *who, *between, *rest] if asked else [*who, *first, *between, *rest]


@cache
def say_between(time: Adverb | None, manner: Adverb | None) -> Words:
    """The adverbs that stand before the verb in English: often, really."""
    often = paired(time.english, time.korean, TIME) if time and time.before_verb else ()
    return often + paired(manner.english, (), MANNER) if manner and manner.before_verb else often


def in_general(clause: Clause, form: str) -> bool:
    """Whether a clause speaks of things in general: I read books, we like apples, they are students."""
    if clause.verb is BE:
        return clause.subject.agreement in ("we", "they")
    usual = clause.tense == "present" and clause.mood == "plain" and form not in ("order", "lets")
    return usual or (isinstance(clause.verb, Verb) and "feels" in clause.verb.traits)


def say_slots(clause: Clause, form: str) -> dict[str, Words]:
    """What follows the verb in English, in order."""
    slots: dict[str, Words] = {}
    place, time, manner = clause.place, clause.time, clause.manner
    goes = place and moves(clause)
    if clause.object:
        slots["object"] = say_noun(clause.object, True, in_general(clause, form), OBJECT)
    if clause.receiver:
        slots["receiver"] = (("to", CASE << RECEIVER), *say_noun(clause.receiver, True, False, RECEIVER))
    if goes:
        slots["place"] = say_place(place, True, PLACE)
    if manner and not manner.before_verb:
        slots["manner"] = paired(manner.english, (), MANNER)
    if clause.companion:
        company = ("with", (CASE | UNIT) << COMPANION)
        slots["companion"] = (company, *say_noun(clause.companion, True, False, COMPANION))
    if clause.means:
        slots["means"] = say_place(clause.means, False, MEANS)
    if place and not goes:
        slots["place"] = say_place(place, False, PLACE)
    if time and not time.before_verb:
        slots["time"] = paired(time.english, time.korean, TIME)
    if clause.reason:
        slots["reason"] = paired(clause.reason.english, (), REASON)
    return slots


def say_clause(clause: Clause, form: str) -> list[tuple[str, int]]:
    """A clause in English."""
    if clause.verb is THERE:
        return say_there(clause, form == "question")
    slots = say_slots(clause, form)
    front = slots.pop("time" if clause.time_first else clause.asks, ())
    said = [*front, *say_start(clause, form)]
    for words in slots.values():
        said += words
    return said


def say(sentence: Sentence) -> list[tuple[str, int]]:
    """A sentence in English, word by word, without the person addressed and the end mark."""
    said = say_clause(sentence.first, sentence.form)
    if sentence.second is None:
        return said
    shared = sentence.second.subject is sentence.first.subject  # said once in Korean, so both link to one word
    rest = say_clause(sentence.second, "statement")
    rest = [(text, role if shared and role < 1 << PREDICATE else role << SECOND) for text, role in rest]
    link = LINK << PREDICATE
    if sentence.link in ("because", "so"):
        return [*rest, ("because", link), *said]
    said[-1] = (said[-1][0] + ",", said[-1][1])
    return [("if", link), *said, *rest] if sentence.link == "if" else [*said, (sentence.link, link), *rest]
