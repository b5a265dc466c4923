"""Sentences drawn at random from all that the grammar allows."""

from collections.abc import Sequence
from random import Random
from typing import Any

from heed.data.synthetic.phrasebook import choices, lexicon
from heed.data.synthetic.phrasebook.clauses import (
    BE,
    SO_MUCH,
    THERE,
    WHAT,
    WHEN,
    WHERE,
    WHO,
    WHY,
    Clause,
    Phrase,
    Sentence,
)
from heed.data.synthetic.phrasebook.lexicon import ME, THEY, WE, YOU
from heed.data.synthetic.phrasebook.words import Adjective, Noun, Person, Verb


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
        owner = pick(rng, choices.OWNERS)
        return Phrase(noun, None if owner.name and owner.name in [one.name for one in taken] else owner)
    quality = pick(rng, choices.FITTING[noun]) if chance < 0.85 and choices.FITTING[noun] else None
    return Phrase(noun, None, quality, number(rng) if countable and noun.counter and chance > 0.75 else 0)


def number(rng: Random) -> int:
    """A number from one to ten, more often a small one."""
    return int(rng.random() ** 2 * 10) + 1


def acted_on(rng: Random, verb: Verb, taken: list[Person], denied: bool) -> Person | Phrase | None:
    """What a verb acts on."""
    if "person" in verb.objects and (not choices.OBJECTS[verb] or rng.random() < 0.4):
        return someone(rng, choices.PARTNERS, taken)
    if not choices.OBJECTS[verb]:
        return None
    countable = not denied and "feels" not in verb.traits and "single" not in verb.traits
    return something(rng, pick(rng, choices.OBJECTS[verb]), taken, countable)


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
    for slot in choices.SLOTS[verb]:
        if len(found) < room and rng.random() < 0.35 and not (denied and slot == "manner"):
            if slot == "companion":
                if found.get("manner") is not lexicon.WAYS["혼자"]:
                    found[slot] = someone(rng, choices.PARTNERS, taken)
            elif slot == "manner":
                way = pick(rng, verb.manners)
                found[slot] = SO_MUCH if way == "많이" and "feels" in verb.traits else lexicon.WAYS[way]
            else:
                found[slot] = pick(rng, (choices.PLACES if slot == "place" else choices.TOOLS)[verb])
    return found


def aspect(rng: Random, verb: Verb, subject: Person | None, form: str) -> tuple[str, str, bool]:
    """Tense, mood and denial that suit a verb, its subject and the form."""
    if form in ("order", "lets"):
        return pick(rng, choices.ORDERS)
    if "feels" in verb.traits:
        return pick(rng, choices.FEELINGS if form == "statement" else choices.ASKED_FEELINGS)
    return pick(rng, choices.QUERIES if form == "question" else choices.FACTS if subject is YOU else choices.EVENTS)


def action(rng: Random, form: str, room: int, subject: Person | None, how: tuple | None = None) -> Clause:
    """A clause in which someone does or feels something."""
    verb = pick(rng, choices.VERBS[form] if how is None else choices.DEEDS)
    taken = [subject or (YOU if form == "order" else WE)]
    tense, mood, denied = how or aspect(rng, verb, subject, form)
    slots: dict[str, object] = {"object": acted_on(rng, verb, taken, denied)}
    if isinstance(slots["object"], Person):
        taken.append(slots["object"])
    if "receiver" in verb.traits:
        slots["receiver"] = someone(rng, choices.PARTNERS, taken)
        taken.append(slots["receiver"])
    slots |= extras(rng, verb, denied, taken, room)
    if "moves" in verb.traits:
        slots["place"] = pick(rng, choices.PLACES[verb])
    fits = season(form, tense, mood, denied)
    if fits and len(slots) <= room + 2 and rng.random() < 0.45:
        time = pick(rng, choices.TIMES[fits])
        if "feels" in verb.traits:
            time = choices.ALWAYS if fits == "usual" else None
        if time and not (time.before_verb and "manner" in slots):
            slots["time"] = time
            slots["time_first"] = form == "statement" and room > 1 and not time.before_verb and rng.random() < 0.25
    return Clause(
        subject, verb, tense=tense, mood=mood, negation=denial(rng, verb, mood, form) if denied else "", **slots
    )


def question(rng: Random) -> Clause:
    """A question about an action: whether, or who, what, where, when, why."""
    clause = action(rng, "question", 1, pick(rng, choices.ASKED))
    asks = pick(rng, ("", "", "", "", "subject", "object", "place", "time", "reason"))
    if asks and clause.tense == "present" and clause.mood == "plain":
        clause = clause._replace(time=None)
    if asks == "subject":
        return clause._replace(subject=WHO, asks=asks)
    if asks == "object" and clause.object:
        return clause._replace(object=WHO if isinstance(clause.object, Person) else WHAT, asks=asks)
    if asks == "place" and choices.PLACES[clause.verb]:
        return clause._replace(place=WHERE, asks=asks)
    if asks == "time" and clause.tense != "present" and "feels" not in clause.verb.traits:
        return clause._replace(time=WHEN, asks=asks)
    if asks == "reason":
        denied = (clause.tense, clause.mood, clause.manner) == ("past", "plain", None) and rng.random() < 0.5
        negation = denial(rng, clause.verb, "plain", "question") if denied else ""
        return clause._replace(reason=WHY, negation=negation, asks=asks)
    return clause


def described(rng: Random, form: str) -> Clause:
    """A clause that says how a thing or a place is."""
    tense, denied = pick(rng, ("present", "present", "past")), form == "statement" and rng.random() < 0.3
    if rng.random() < 0.15:
        site = pick(rng, list(choices.SIGHTS))
        subject, quality = site, pick(rng, choices.SIGHTS[site])
    else:
        noun = pick(rng, choices.DESCRIBED)
        subject, quality = Phrase(noun, pick(rng, choices.OWNERS)), pick(rng, choices.FITTING[noun])
        if noun.kinds == ("subject",):
            subject = Phrase(noun)
    manner = pick(rng, choices.DEGREES) if not denied and rng.random() < 0.4 else None
    negation = denial(rng, quality, "plain", form) if denied else ""
    return Clause(subject, quality, tense=tense, negation=negation, manner=manner)


def state(rng: Random, form: str, subject: Person, tense: str = "", timed: bool = True) -> Clause:
    """A clause that says how someone is."""
    quality = pick(rng, choices.TRAITS if rng.random() < 0.5 and timed else choices.PASSING)
    passing = quality in choices.PASSING
    tense = tense or pick(rng, ("present", "present", "past", "future") if passing else ("present", "present", "past"))
    denied = form == "statement" and rng.random() < 0.3
    slots: dict[str, object] = {}
    if timed and passing and rng.random() < 0.5:
        fits = {"past": "past", "future": "future", "present": "usual" if not denied else ""}[tense]
        slots["time"] = pick(rng, choices.TIMES[fits]) if fits else None
    if not denied and tense != "future" and not slots and rng.random() < 0.4:
        slots["manner"] = pick(rng, choices.DEGREES)
    negation = denial(rng, quality, "plain", form) if denied else ""
    return Clause(subject, quality, tense=tense, negation=negation, **slots)


def identity(rng: Random, form: str, subject: Person) -> Clause:
    """A clause that says what someone is."""
    job = pick(rng, lexicon.WORK)
    quality = pick(rng, choices.FITTING[job]) if rng.random() < 0.5 else None
    tense = pick(rng, ("present", "present", "past"))
    denied = form == "statement" and rng.random() < 0.3
    return Clause(subject, BE, Phrase(job, None, quality), tense, negation="own" if denied else "")


def there(rng: Random, form: str) -> Clause:
    """A clause that says that something is somewhere."""
    spot = pick(rng, lexicon.CORNERS)
    noun = pick(rng, choices.LAID[spot])
    denied = form == "statement" and rng.random() < 0.25
    quality = pick(rng, choices.FITTING[noun]) if rng.random() < 0.4 and choices.FITTING[noun] else None
    counted = form == "statement" and not denied and noun.counter and rng.random() < 0.7
    thing = Phrase(noun, None, quality, number(rng) if counted else 0)
    tense = pick(rng, ("present", "present", "past"))
    return Clause(None, THERE, thing, tense, negation="own" if denied else "", place=spot)


def simple(rng: Random, form: str) -> Clause:
    """A sentence's only clause, stated or asked."""
    chance = rng.random()
    subject = pick(rng, choices.SPEAKERS if form == "statement" else choices.ASKED)
    if chance < 0.7:
        return action(rng, form, 2, subject) if form == "statement" else question(rng)
    if chance < 0.78:
        return described(rng, form)
    if chance < 0.88:
        return state(rng, form, subject)
    if chance < 0.94:
        return identity(rng, form, subject if subject not in choices.OTHERS[3:] else THEY)
    return there(rng, form)


def joined(rng: Random) -> tuple[Clause, str, Clause]:
    """Two clauses and the conjunction between them."""
    subject = pick(rng, choices.SPEAKERS)
    link = pick(rng, ("but", "and", "because", "so", "so", "if"))
    same = not subject.name and len(subject.plain) == 1 and link != "and" and rng.random() < 0.7
    other = subject if same else someone(rng, choices.SPEAKERS, [subject])
    if link == "if":
        first = action(rng, "statement", 0, subject, ("present", "plain", False))
        second = action(rng, "statement", 1, other, ("future", "plain", rng.random() < 0.2))
        return first._replace(time=None, time_first=False), link, second
    how = pick(rng, choices.EVENTS)
    second = action(rng, "statement", 1, other, how)
    tense = "past" if how[0] == "past" else "present"
    if link == "so" or rng.random() < 0.3:
        return state(rng, "statement", subject, tense, timed=False), link, second
    return action(rng, "statement", 0, subject, pick(rng, choices.BEFORE[link, tense])), link, second


def draw(rng: Random) -> Sentence:
    """Any sentence of the phrasebook."""
    level = pick(rng, ("plain", "polite", "formal"))
    vocative = pick(rng, choices.NAMED) if rng.random() < 0.2 else None
    chance = rng.random()
    link, second, form = "", None, "statement"
    if chance < 0.15:
        first, link, second = joined(rng)
    elif chance < 0.22:
        form = pick(rng, ("order", "order", "lets"))
        first = action(rng, form, 1, None)
    else:
        form = "question" if chance < 0.42 else "statement"
        first = simple(rng, form)
    if vocative and (mentions(first, vocative) or mentions(second, vocative)):
        vocative = None
    return Sentence(first, level, form, vocative, link, second)


def mentions(clause: Clause | None, person: Person) -> bool:
    """Whether a clause speaks of someone, be it as an owner."""
    if clause is None:
        return False
    owners = [
        thing.owner.name for thing in (clause.subject, clause.object) if isinstance(thing, Phrase) and thing.owner
    ]
    return person in (clause.subject, clause.object, clause.receiver, clause.companion) or person.name in owners
