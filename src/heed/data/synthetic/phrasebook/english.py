"""English realization: the words of a sentence, each with its roles."""

from functools import cache

from heed.data.synthetic.phrasebook.clauses import (  # isort: skip
    ACTION, BE, CASE, COMPANION, COUNT, DETERMINER, HEAD, LINK, MANNER, MEANS, MOOD, NOT, OBJECT, PLACE, PREDICATE,
    QUALITY, REASON, RECEIVER, SECOND, SUBJECT, SUBJECTLESS, TENSE, THERE, TIME, UNIT, Clause, Phrase, Sentence, Words, moves,
    with_roles,
)  # fmt: skip
from heed.data.synthetic.phrasebook.english_inflection import article, plural, third_person, with_suffix
from heed.data.synthetic.phrasebook.lexicon import NUMERALS
from heed.data.synthetic.phrasebook.parts_of_speech import Adjective, Adverb, Person, Place, Verb


@cache
def realize_noun(thing: Person | Phrase | Place, is_object: bool, general: bool, slot: int) -> Words:
    """A person, thing or place in English; `general` gives the plural of a thing in general: apples, not an apple."""
    if isinstance(thing, Person):
        return with_roles(thing.object if is_object else thing.english, thing.plain, slot)
    if isinstance(thing, Place):
        return tuple((text, HEAD << slot) for text in thing.english)
    noun, owner, quality, count = thing
    name = plural(noun.english) if noun.number == "count" and ((general and not owner) or count > 1) else noun.english
    words = [(quality.english, QUALITY), (name, HEAD)] if quality else [(name, HEAD)]
    if count:
        unit = plural(noun.unit) if noun.unit and count > 1 else noun.unit
        words = [(NUMERALS[count - 1][1], COUNT)] + [(unit, UNIT), ("of", UNIT)] * bool(unit) + words
    elif owner:
        words = [(text, DETERMINER) for text in owner.english] + words
    elif noun.number == "the":
        words = [("the", HEAD), *words]
    elif noun.number == "count" and not general:
        words = [(article(words[0][0]), HEAD), *words]
    return tuple((text, role << slot) for text, role in words)


@cache
def realize_place(place: Place, destination: bool, slot: int) -> Words:
    """A place or means in English; the preposition has the role of the Korean particle."""
    words = place.to if destination else place.at
    if len(words) == 1:
        return ((words[0], (HEAD | CASE) << slot),)
    return ((words[0], CASE << slot), *((text, HEAD << slot) for text in words[1:]))


def be(agreement: str, tense: str) -> str:
    """The form of 'to be'."""
    if tense == "past":
        return "was" if agreement in ("I", "he") else "were"
    return {"I": "am", "he": "is"}.get(agreement, "are")


def auxiliary(aspect: tuple[str, str, str], agreement: str, is_state: bool, bare: bool) -> list[tuple[str, int]]:
    """The words before the main verb: did not, will, cannot, is; none if a plain verb needs none (`bare`)."""
    tense, mood, negation = aspect
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
def realize_verb(
    verb: Verb | Adjective, aspect: tuple[str, str, str], agreement: str, bare: bool
) -> tuple[Words, Words]:
    """The words of a verb in English: what a question puts first, and the rest."""
    tense, mood, _ = aspect
    is_state = isinstance(verb, Adjective) or verb is BE
    helpers = auxiliary(aspect, agreement, is_state, bare)
    main, role = ({"want": "want", "must": "have"}[mood], MOOD) if mood in ("want", "must") else (verb.english, ACTION)
    if is_state:
        rest = [("be", ACTION)] * (tense == "future") + [(main, ACTION)] * (verb is not BE)
    elif mood == "doing":
        rest = [(with_suffix(main, "ing"), ACTION)]
    elif helpers:
        rest = [(main, role)]
    elif tense == "past":
        rest = [({"want": "wanted", "must": "had"}.get(mood, verb.past), role)]
    else:
        rest = [(third_person(main) if agreement == "he" else main, role)]
    if mood in ("want", "must"):
        rest += [("to", ACTION), (verb.english, ACTION)]
    if isinstance(verb, Verb):
        rest += [(text, ACTION) for text in verb.tail]
    first, *others = [(text, role << PREDICATE) for text, role in (*helpers, *rest)]
    return ((first,), tuple(others)) if helpers else ((), (first, *others))


def realize_there(clause: Clause, asked: bool) -> list[tuple[str, int]]:
    """An existence clause in English: there are two books on the desk."""
    noun, _, _, count = clause.object
    many = bool(clause.negation) and noun.number == "count"
    verb = (be("they" if many or count > 1 else "he", clause.tense), TENSE << PREDICATE)
    words = [verb, ("there", ACTION << PREDICATE)] if asked else [("there", ACTION << PREDICATE), verb]
    words += [("no", NOT << PREDICATE)] * bool(clause.negation)
    return [*words, *realize_noun(clause.object, True, many, OBJECT), *realize_place(clause.place, False, PLACE)]


def realize_start(clause: Clause, form: str) -> list[tuple[str, int]]:
    """Subject, verb and the adverb between them, in the word order of the form."""
    aspect = (clause.tense, clause.mood, clause.negation)
    subject = clause.subject
    if subject is None:
        first, rest = realize_verb(clause.verb, aspect, "you", True)
        before = {"lets": ("let's",), "shall": ("shall", "we"), "promise": ("I", "will"), "request": ("please",)}
        role = (MOOD if form == "request" else TENSE) << PREDICATE
        return [*first, *rest] if form == "order" else [*[(text, role) for text in before[form]], *rest]
    asked = form == "question" and clause.asks != "subject"
    agreement = subject.agreement if isinstance(subject, Person) else "he"
    first, rest = realize_verb(clause.verb, aspect, agreement, not asked)
    who = realize_noun(subject, False, False, SUBJECT)
    between = realize_between(clause.time, clause.manner)
    if asked and clause.negation:  # why didn't you come?
        ((text, role),), ((_, no), *rest) = first, rest
        first = ((f"{text}n't", role | no),)
    return [*first, *who, *between, *rest] if asked else [*who, *first, *between, *rest]


@cache
def realize_between(time: Adverb | None, manner: Adverb | None) -> Words:
    """The adverbs that stand before the verb in English: often, really."""
    often = with_roles(time.english, time.korean, TIME) if time and time.before_verb else ()
    return often + with_roles(manner.english, (), MANNER) if manner and manner.before_verb else often


def in_general(clause: Clause, form: str) -> bool:
    """Whether a clause is about things in general: I read books, we like apples, they are students."""
    if clause.verb is BE:
        return clause.subject.agreement in ("we", "they")
    usual = clause.tense == "present" and clause.mood == "plain" and form not in SUBJECTLESS
    return usual or (isinstance(clause.verb, Verb) and "feels" in clause.verb.traits)


def realize_slots(clause: Clause, form: str) -> dict[str, Words]:
    """What follows the verb in English, in order."""
    slots: dict[str, Words] = {}
    place, time, manner = clause.place, clause.time, clause.manner
    goes = place and moves(clause)
    if clause.object:
        slots["object"] = realize_noun(clause.object, True, in_general(clause, form), OBJECT)
    if clause.receiver:
        slots["receiver"] = (("to", CASE << RECEIVER), *realize_noun(clause.receiver, True, False, RECEIVER))
    if goes:
        slots["place"] = realize_place(place, True, PLACE)
    if manner and not manner.before_verb:
        slots["manner"] = with_roles(manner.english, (), MANNER)
    if clause.companion:
        company = ("with", (CASE | UNIT) << COMPANION)
        slots["companion"] = (company, *realize_noun(clause.companion, True, False, COMPANION))
    if clause.means:
        slots["means"] = realize_place(clause.means, False, MEANS)
    if place and not goes:
        slots["place"] = realize_place(place, False, PLACE)
    if time and not time.before_verb:
        slots["time"] = with_roles(time.english, time.korean, TIME)
    if clause.reason:
        slots["reason"] = with_roles(clause.reason.english, (), REASON)
    return slots


def realize_clause(clause: Clause, form: str) -> list[tuple[str, int]]:
    """A clause in English."""
    if clause.verb is THERE:
        return realize_there(clause, form == "question")
    slots = realize_slots(clause, form)
    front = slots.pop("time" if clause.time_first else clause.asks, ())
    return [*front, *realize_start(clause, form), *(word for words in slots.values() for word in words)]


def realize(sentence: Sentence) -> list[tuple[str, int]]:
    """A sentence in English, word by word, without vocative and final punctuation."""
    words = realize_clause(sentence.first, sentence.form)
    if sentence.second is None:
        return words
    shared = sentence.second.subject is sentence.first.subject  # Korean has it once, so both link to one word
    rest = realize_clause(sentence.second, "statement")
    rest = [(text, role if shared and role < 1 << PREDICATE else role << SECOND) for text, role in rest]
    link = LINK << PREDICATE
    if sentence.link in ("because", "so"):
        return [*rest, ("because", link), *words]
    words[-1] = (words[-1][0] + ",", words[-1][1])
    return [("if", link), *words, *rest] if sentence.link == "if" else [*words, (sentence.link, link), *rest]
