"""Sentences drawn at random from the grammar."""

from random import Random

from heed.data.synthetic.phrasebook.clauses import (  # isort: skip
    BE, SO_MUCH, SUBJECTLESS, THERE, WHAT, WHEN, WHERE, WHO, WHY, Clause, Phrase, Sentence,
)  # fmt: skip
from heed.data.synthetic.phrasebook import choices, korean, lexicon
from heed.data.synthetic.phrasebook.lexicon import ME, THEY, WE, YOU
from heed.data.synthetic.phrasebook.parts_of_speech import Adjective, Noun, Person, Verb
from heed.data.synthetic.splits import pick


def draw_person(rng: Random, pool: list[Person], used: list[Person]) -> Person:
    """A person not yet in the sentence; 'I' and 'we' exclude each other."""
    while True:
        one = pick(rng, pool)
        if one not in used and not (one in (ME, WE) and (ME in used or WE in used)):
            return one


def draw_phrase(rng: Random, noun: Noun, used: list[Person], countable: bool) -> Phrase:
    """A noun phrase, alone or with an owner, an adjective, a count."""
    chance = rng.random()
    if chance < 0.35 or noun.kinds == ("subject",):
        return Phrase(noun)
    if chance < 0.6:
        owner = pick(rng, choices.OWNERS)
        return Phrase(noun, None if owner.name and owner.name in [one.name for one in used] else owner)
    quality = pick(rng, choices.ADJECTIVES[noun]) if chance < 0.85 and choices.ADJECTIVES[noun] else None
    return Phrase(noun, None, quality, draw_count(rng) if countable and noun.counter and chance > 0.75 else 0)


def draw_count(rng: Random) -> int:
    """A number from one to ten, more often a small one."""
    return int(rng.random() ** 2 * 10) + 1


def draw_object(rng: Random, verb: Verb, used: list[Person], negated: bool) -> Person | Phrase | None:
    """The object of a verb."""
    if "person" in verb.objects and (not choices.OBJECTS[verb] or rng.random() < 0.4):
        return draw_person(rng, choices.PARTNERS, used)
    if not choices.OBJECTS[verb]:
        return None
    countable = not negated and "feels" not in verb.traits and "single" not in verb.traits
    return draw_phrase(rng, pick(rng, choices.OBJECTS[verb]), used, countable)


def time_class(form: str, tense: str, mood: str, negated: bool) -> str:
    """The class of times that fit a clause; '' for none."""
    if tense == "past" or (tense == "future" and mood == "plain"):
        return tense
    if mood in ("want", "can", "unable", "must") or form in SUBJECTLESS:
        return "soon"
    return "now" if mood == "doing" else "" if negated else "usual"


def negation_form(rng: Random, verb: Verb | Adjective, mood: str, form: str) -> str:
    """How a verb is negated: short with 안 and 못, long with -지 않다 and -지 못하다, or by 없다 itself."""
    if mood == "can":
        return "own"
    whole = "noun" in verb.traits if isinstance(verb, Verb) else verb.stem.text[-1] in "하있답"
    return "long" if whole or mood in ("want", "doing") or form in ("order", "lets") or rng.random() < 0.5 else "short"


def draw_adjuncts(rng: Random, verb: Verb, negated: bool, used: list[Person], limit: int) -> dict[str, object]:
    """Place, manner, companion and means of an action, at most `limit` of them."""
    found: dict[str, object] = {}
    for slot in choices.SLOTS[verb]:
        if len(found) < limit and rng.random() < 0.35 and not (negated and slot == "manner"):
            if slot == "companion":
                if found.get("manner") is not lexicon.MANNERS["혼자"]:
                    found[slot] = draw_person(rng, choices.PARTNERS, used)
            elif slot == "manner":
                manner = pick(rng, verb.manners)
                found[slot] = SO_MUCH if manner == "많이" and "feels" in verb.traits else lexicon.MANNERS[manner]
            else:
                found[slot] = pick(rng, (choices.PLACES if slot == "place" else choices.MEANS)[verb])
    return found


def draw_aspect(rng: Random, verb: Verb, subject: Person | None, form: str) -> tuple[str, str, bool]:
    """Tense, mood and negation that fit a verb, its subject and the form."""
    if form in SUBJECTLESS:
        return pick(rng, choices.ORDER_ASPECTS if form in ("order", "lets") else choices.ORDER_ASPECTS[:1])
    if "feels" in verb.traits:
        return pick(rng, choices.FEELING_ASPECTS if form == "statement" else choices.FEELING_QUESTION_ASPECTS)
    if form == "question":
        return pick(rng, choices.QUESTION_ASPECTS)
    return pick(rng, choices.FACTUAL_ASPECTS if subject is YOU else choices.ASPECTS)


def action_clause(rng: Random, form: str, limit: int, subject: Person | None, aspect: tuple | None = None) -> Clause:
    """A clause in which a person does or feels something."""
    verb = pick(rng, choices.VERBS[form] if aspect is None else choices.ACTION_VERBS)
    used = [subject or {"order": YOU, "request": YOU, "promise": ME}.get(form, WE)]
    tense, mood, negated = aspect or draw_aspect(rng, verb, subject, form)
    slots: dict[str, object] = {"object": draw_object(rng, verb, used, negated)}
    if isinstance(slots["object"], Person):
        used.append(slots["object"])
    if "receiver" in verb.traits:
        slots["receiver"] = draw_person(rng, choices.PARTNERS, used)
        used.append(slots["receiver"])
    slots |= draw_adjuncts(rng, verb, negated, used, limit)
    if "moves" in verb.traits:
        slots["place"] = pick(rng, choices.PLACES[verb])
    fits = time_class(form, tense, mood, negated)
    if fits and len(slots) <= limit + 2 and rng.random() < 0.45:
        time = pick(rng, choices.TIMES[fits])
        if "feels" in verb.traits:
            time = choices.ALWAYS if fits == "usual" else None
        if time and not (time.before_verb and "manner" in slots):
            slots["time"] = time
            slots["time_first"] = form == "statement" and limit > 1 and not time.before_verb and rng.random() < 0.25
    negation = negation_form(rng, verb, mood, form) if negated else ""
    return Clause(subject, verb, tense=tense, mood=mood, negation=negation, **slots)


def question_clause(rng: Random) -> Clause:
    """A question about an action: whether, or who, what, where, when, why."""
    clause = action_clause(rng, "question", 1, pick(rng, choices.QUESTION_SUBJECTS))
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
        negated = (clause.tense, clause.mood, clause.manner) == ("past", "plain", None) and rng.random() < 0.5
        negation = negation_form(rng, clause.verb, "plain", "question") if negated else ""
        return clause._replace(reason=WHY, negation=negation, asks=asks)
    return clause


def description_clause(rng: Random, form: str) -> Clause:
    """A clause that describes a thing or a place."""
    tense, negated = pick(rng, ("present", "present", "past")), form == "statement" and rng.random() < 0.3
    if rng.random() < 0.15:
        subject = pick(rng, choices.NAMED_PLACES)
        quality = pick(rng, choices.PLACE_ADJECTIVES[subject])
    else:
        noun = pick(rng, choices.DESCRIBABLE_NOUNS)
        subject, quality = Phrase(noun, pick(rng, choices.OWNERS)), pick(rng, choices.ADJECTIVES[noun])
        if noun.kinds == ("subject",):
            subject = Phrase(noun)
    manner = pick(rng, choices.DEGREES) if not negated and rng.random() < 0.4 else None
    negation = negation_form(rng, quality, "plain", form) if negated else ""
    return Clause(subject, quality, tense=tense, negation=negation, manner=manner)


def state_clause(rng: Random, form: str, subject: Person, tense: str = "", timed: bool = True) -> Clause:
    """A clause about the state of a person."""
    quality = pick(rng, choices.PERSON_ADJECTIVES if rng.random() < 0.5 and timed else choices.TEMPORARY_STATES)
    temporary = quality in choices.TEMPORARY_STATES
    tense = tense or pick(rng, ("present", "present", "past", *["future"] * temporary))
    negated = form == "statement" and rng.random() < 0.3
    slots: dict[str, object] = {}
    if timed and temporary and rng.random() < 0.5:
        fits = {"past": "past", "future": "future", "present": "usual" if not negated else ""}[tense]
        slots["time"] = pick(rng, choices.TIMES[fits]) if fits else None
    if not negated and tense != "future" and not slots and rng.random() < 0.4:
        slots["manner"] = pick(rng, choices.PERSON_DEGREES)
    negation = negation_form(rng, quality, "plain", form) if negated else ""
    return Clause(subject, quality, tense=tense, negation=negation, **slots)


def identity_clause(rng: Random, form: str, subject: Person) -> Clause:
    """A clause about the job of a person."""
    job = pick(rng, lexicon.JOBS)
    quality = pick(rng, choices.ADJECTIVES[job]) if rng.random() < 0.5 else None
    tense = pick(rng, ("present", "present", "past"))
    negated = form == "statement" and rng.random() < 0.3
    return Clause(subject, BE, Phrase(job, None, quality), tense, negation="own" if negated else "")


def existence_clause(rng: Random, form: str) -> Clause:
    """A clause that something is somewhere."""
    spot = pick(rng, lexicon.SPOTS)
    noun = pick(rng, choices.NOUNS_AT[spot])
    negated = form == "statement" and rng.random() < 0.25
    quality = pick(rng, choices.ADJECTIVES[noun]) if rng.random() < 0.4 and choices.ADJECTIVES[noun] else None
    counted = form == "statement" and not negated and noun.counter and rng.random() < 0.7
    thing = Phrase(noun, None, quality, draw_count(rng) if counted else 0)
    tense = pick(rng, ("present", "present", "past"))
    return Clause(None, THERE, thing, tense, negation="own" if negated else "", place=spot)


def single_clause(rng: Random, form: str) -> Clause:
    """The only clause of a sentence, a statement or a question."""
    chance = rng.random()
    subject = pick(rng, choices.SUBJECTS if form == "statement" else choices.QUESTION_SUBJECTS)
    if chance < 0.7:
        return action_clause(rng, form, 2, subject) if form == "statement" else question_clause(rng)
    if chance < 0.78:
        return description_clause(rng, form)
    if chance < 0.88:
        return state_clause(rng, form, subject)
    if chance < 0.94:
        return identity_clause(rng, form, subject if subject not in choices.UNNAMED[3:] else THEY)
    return existence_clause(rng, form)


def two_clauses(rng: Random) -> tuple[Clause, str, Clause]:
    """Two clauses and the conjunction between them."""
    subject = pick(rng, choices.SUBJECTS)
    link = pick(rng, ("but", "and", "because", "so", "so", "if"))
    same = not subject.name and len(subject.plain) == 1 and link != "and" and rng.random() < 0.7
    other = subject if same else draw_person(rng, choices.SUBJECTS, [subject])
    if link == "if":
        first = action_clause(rng, "statement", 0, subject, ("present", "plain", False))
        second = action_clause(rng, "statement", 1, other, ("future", "plain", rng.random() < 0.2))
        return first._replace(time=None, time_first=False), link, second
    aspect = pick(rng, choices.ASPECTS)
    second = action_clause(rng, "statement", 1, other, aspect)
    tense = "past" if aspect[0] == "past" else "present"
    if link == "so" or rng.random() < 0.3:
        return state_clause(rng, "statement", subject, tense, timed=False), link, second
    first = action_clause(rng, "statement", 0, subject, pick(rng, choices.FIRST_CLAUSE_ASPECTS[link, tense]))
    return first, link, second


def may_omit(clause: Clause, form: str, level: str) -> bool:
    """Whether a clause is clear without its 'I' or 'you': 가 is an order, 귀여워 is said of others."""
    if clause.subject is not (YOU if form == "question" else ME) or form not in ("statement", "question"):
        return False
    if isinstance(clause.verb, Adjective):
        return clause.verb in choices.TEMPORARY_STATES
    plain = (clause.tense, clause.mood, clause.negation) == ("present", "plain", "")
    ordered = plain and level == "plain" and "action" in clause.verb.traits
    return form == "question" or clause.verb is BE or not ordered


def spoken(rng: Random, sentence: Sentence) -> Sentence:
    """The sentence as it is often said or typed: without a clear subject, some particles, the final punctuation."""
    first, form, level = sentence.first, sentence.form, sentence.level
    clauses = [clause for clause in (first, sentence.second) if clause]
    omitted = all(may_omit(clause, form, level) for clause in clauses) and rng.random() < 0.45
    if omitted and form == "question" and level == "polite" and rng.random() < 0.6:
        unclear = first.object is WHAT and first.verb.stem.text in korean.HONORIFIC  # 뭐 드세요: eat, or drink
        level = "polite" if unclear else "honorific"
    if form == "statement" and level == "plain" and not sentence.vocative and rng.random() < 0.15:
        level = "written"
    persons = any(isinstance(clause.object, Person) and clause.object is not WHAT for clause in clauses)
    casual = level in ("plain", "polite", "honorific") and not persons and rng.random() < 0.3
    bare = rng.random() < 0.25 and (form != "question" or bool(first.asks or level == "formal"))
    if omitted:  # nothing is before the time then
        sentence = sentence._replace(first=first._replace(time_first=False))
    return sentence._replace(level=level, omitted=omitted, casual=casual, bare=bare)


def draw(rng: Random) -> Sentence:
    """A sentence of the grammar, at random, as one might say it: mostly short."""
    return spoken(rng, draw_complete(rng, called=0.1, linked=0.06))


def draw_complete(rng: Random, called: float = 0.25, linked: float = 0.15) -> Sentence:
    """A sentence of the grammar, at random, with nothing left out; the shares of vocatives and of two clauses."""
    level = pick(rng, ("plain", "polite", "formal"))
    vocative = pick(rng, choices.NAMED) if rng.random() < called else None
    chance = rng.random()
    link, second, form = "", None, "statement"
    if chance < linked:
        first, link, second = two_clauses(rng)
    elif chance < 0.27:
        form = pick(rng, ("order", "order", "lets", "request", "request", "shall", "promise"))
        first = action_clause(rng, form, 1, None)
    else:
        form = "question" if chance < 0.47 else "statement"
        first = single_clause(rng, form)
    if vocative and any(mentions(clause, vocative) for clause in (first, second) if clause):
        vocative = None
    return Sentence(first, level, form, vocative, link, second)


def mentions(clause: Clause, person: Person) -> bool:
    """Whether a clause mentions a person, also as an owner."""
    phrases = [thing for thing in (clause.subject, clause.object) if isinstance(thing, Phrase)]
    owners = [phrase.owner.name for phrase in phrases if phrase.owner]
    return person in (clause.subject, clause.object, clause.receiver, clause.companion) or person.name in owners
