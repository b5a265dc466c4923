"""Facts drawn at random, and told as an article and as its summary."""

from collections.abc import Sequence
from random import Random
from string import Formatter
from typing import Any, NamedTuple

from heed.data.synthetic.articles import deeds, efforts, town
from heed.data.synthetic.articles.words import ASIDES, DAYS, FAMILIES, MEN, TOWNS, WOMEN

KINDS = (
    town.OPENING, town.CLOSURE, town.HIRING, town.ELECTION,
    deeds.RESCUE, deeds.PRIZE, deeds.FIND, deeds.THEFT,
    efforts.COLLECTION, efforts.JOURNEY,
)  # fmt: skip


class Facts(NamedTuple):
    """Who did what, where, when, how many were concerned, and which of its kind's causes it had."""

    kind: int
    first: str
    last: str
    thing: str
    where: str
    day: str
    many: int
    cause: int


def pick(rng: Random, options: Sequence) -> Any:
    """One of the options."""
    return options[int(rng.random() * len(options))]


def some(rng: Random, options: Sequence, least: int, most: int) -> list:
    """From `least` to `most` different ones of the options, in any order."""
    count = least + int(rng.random() * (most - least + 1))
    return sorted(options, key=lambda _: rng.random())[:count]


def other(rng: Random, options: Sequence, taken: Any) -> Any:
    """One of the options, but not the one that is taken."""
    while (found := pick(rng, options)) == taken:
        pass
    return found


def draw(rng: Random) -> Facts:
    """Any facts."""
    number = int(rng.random() * len(KINDS))
    kind = KINDS[number]
    low, high, step = kind.amounts
    many = low + step * int(rng.random() * ((high - low) // step + 1))
    who = (pick(rng, WOMEN + MEN), pick(rng, FAMILIES))
    cause = int(rng.random() * len(kind.causes))
    return Facts(number, *who, pick(rng, kind.things), pick(rng, TOWNS), pick(rng, DAYS), many, cause)


def tell(rng: Random, facts: Facts) -> tuple[str, str]:
    """The facts as an article and as a summary; how the article begins decides how the summary is worded."""
    kind = KINDS[facts.kind]
    said = sayings(facts) | {"job": pick(rng, kind.jobs)}
    opening = int(rng.random() * len(kind.lead))
    lines = [kind.lead[opening]]
    told = mentioned(lines[0])
    if "who" not in told:
        lines.append(pick(rng, kind.who))
    rest = [pick(rng, getattr(kind, fact)) for fact in ("day", "many", "why") if fact not in told]
    rest += some(rng, kind.again, 1, 2) + some(rng, kind.quotes, 0, 1)
    rest += some(rng, kind.asides, 0, 1) + some(rng, ASIDES, 0, 1)
    lines += some(rng, rest, len(rest), len(rest))
    summary = kind.summary[opening % len(kind.summary)].format_map(said)
    return " ".join(line.format_map(said | strangers(rng, facts)) for line in lines), summary


def mentioned(line: str) -> set[str]:
    """What a sentence has places for."""
    return {name for _, name, _, _ in Formatter().parse(line) if name}


def sayings(facts: Facts) -> dict[str, str]:
    """What the places for facts are filled with."""
    said = {
        "who": f"{facts.first} {facts.last}",
        "last": facts.last,
        "their": "her" if facts.first in WOMEN else "his",
        "thing": facts.thing,
        "a_thing": f"{'an' if facts.thing[0] in 'aeiou' else 'a'} {facts.thing}",
        "where": facts.where,
        "day": facts.day,
        "Day": upper(facts.day),
        "many": f"{facts.many:,}",
    }
    reason, clause = (text.format_map(said) for text in KINDS[facts.kind].causes[facts.cause])
    return said | {"reason": reason, "Reason": upper(reason), "why": clause}


def strangers(rng: Random, facts: Facts) -> dict[str, str]:
    """People, places, days and numbers that do not matter; none of them is one of the facts."""
    return {
        "someone": f"{other(rng, WOMEN + MEN, facts.first)} {other(rng, FAMILIES, facts.last)}",
        "elsewhere": other(rng, TOWNS, facts.where),
        "other_day": other(rng, DAYS[::4], facts.day),
        "number": str(other(rng, range(12, 49), facts.many)),
        "fewer": str(2 + int(rng.random() * (facts.many - 2))),
    }


def upper(text: str) -> str:
    """The text with a capital letter at its front."""
    return text[0].upper() + text[1:]
