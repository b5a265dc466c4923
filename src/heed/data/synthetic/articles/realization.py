"""Facts drawn at random, and realized as an article and as its summary."""

from collections.abc import Sequence
from random import Random
from string import Formatter
from typing import Any, NamedTuple

from heed.data.synthetic.articles.effort_stories import COLLECTION, JOURNEY
from heed.data.synthetic.articles.people_stories import FIND, PRIZE, RESCUE, THEFT
from heed.data.synthetic.articles.story import DAYS, DISTRACTORS, FAMILIES, MEN, TOWNS, WOMEN
from heed.data.synthetic.articles.town_stories import CLOSURE, ELECTION, HIRING, OPENING
from heed.data.synthetic.splits import pick

KINDS = (OPENING, CLOSURE, HIRING, ELECTION, RESCUE, PRIZE, FIND, THEFT, COLLECTION, JOURNEY)


class Facts(NamedTuple):
    """Who did what, where, when, how many were involved, and why; `kind` and `cause` are indices."""

    kind: int
    first: str
    last: str
    thing: str
    where: str
    day: str
    many: int
    cause: int


def sample(rng: Random, options: Sequence, low: int, high: int) -> list:
    """From `low` to `high` different options, in random order."""
    count = low + int(rng.random() * (high - low + 1))
    return sorted(options, key=lambda _: rng.random())[:count]


def pick_other(rng: Random, options: Sequence, excluded: Any) -> Any:
    """One of the options, but not the excluded one."""
    while (found := pick(rng, options)) == excluded:
        pass
    return found


def draw_facts(rng: Random) -> Facts:
    """The facts of a story, at random."""
    number = int(rng.random() * len(KINDS))
    kind = KINDS[number]
    low, high, step = kind.amounts
    many = low + step * int(rng.random() * ((high - low) // step + 1))
    who = (pick(rng, WOMEN + MEN), pick(rng, FAMILIES))
    cause = int(rng.random() * len(kind.causes))
    return Facts(number, *who, pick(rng, kind.things), pick(rng, TOWNS), pick(rng, DAYS), many, cause)


def realize(rng: Random, facts: Facts) -> tuple[str, str]:
    """The facts as an article and as a summary; the lead of the article decides the wording of the summary."""
    kind = KINDS[facts.kind]
    values = fact_values(facts) | {"job": pick(rng, kind.jobs)}
    lead = int(rng.random() * len(kind.lead))
    lines = [kind.lead[lead]]
    in_lead = slots(lines[0])
    if "who" not in in_lead:
        lines.append(pick(rng, kind.who))
    rest = [pick(rng, getattr(kind, fact)) for fact in ("day", "many", "why") if fact not in in_lead]
    rest += sample(rng, kind.restatements, 1, 2) + sample(rng, kind.quotes, 0, 1)
    rest += sample(rng, kind.distractors, 0, 1) + sample(rng, DISTRACTORS, 0, 1)
    lines += sample(rng, rest, len(rest), len(rest))
    summary = kind.summary[lead % len(kind.summary)].format_map(values)
    return " ".join(line.format_map(values | distractor_values(rng, facts)) for line in lines), summary


def slots(template: str) -> set[str]:
    """The names of the slots of a template."""
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def fact_values(facts: Facts) -> dict[str, str]:
    """The values of the slots for facts."""
    values = {
        "who": f"{facts.first} {facts.last}",
        "last": facts.last,
        "their": "her" if facts.first in WOMEN else "his",
        "thing": facts.thing,
        "a_thing": f"{'an' if facts.thing[0] in 'aeiou' else 'a'} {facts.thing}",
        "where": facts.where,
        "day": facts.day,
        "Day": capitalized(facts.day),
        "many": f"{facts.many:,}",
    }
    reason, clause = (text.format_map(values) for text in KINDS[facts.kind].causes[facts.cause])
    return values | {"reason": reason, "Reason": capitalized(reason), "why": clause}


def distractor_values(rng: Random, facts: Facts) -> dict[str, str]:
    """Slot values for distracting people, places, days and numbers; none of them is a fact."""
    return {
        "someone": f"{pick_other(rng, WOMEN + MEN, facts.first)} {pick_other(rng, FAMILIES, facts.last)}",
        "elsewhere": pick_other(rng, TOWNS, facts.where),
        "other_day": pick_other(rng, DAYS[::4], facts.day),
        "number": str(pick_other(rng, range(12, 49), facts.many)),
        "fewer": str(2 + int(rng.random() * (facts.many - 2))),
    }


def capitalized(text: str) -> str:
    """The text with a capital first letter."""
    return text[0].upper() + text[1:]
