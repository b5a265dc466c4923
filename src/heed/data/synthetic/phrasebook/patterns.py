"""Patterns: sentences with slots, written in both languages, from which everyday talk is drawn.

A line is `Korean = English`. In it
  (a|b)     is one of several ways to say it, at random; an empty one leaves it out
  [a|b|c]   is one by speech level: plain, polite, formal
  <stem>    is a verb with the ending of the speech level; <춥,ㅂ> is irregular, <가+> past, 학생<이> the copula
  @stems    is a stem of a table, and in the English its translation: <@air>, @air
  {slot}    is an entry of a table or a number; {slot:은} has a particle, {slot:a} and {slot:the} an article, {slot:s} a plural, {slot:n} one unless it is counted as one, {slot:ed} and {slot:ing} are forms of a verb
  is~slot   agrees with the number of an entry: is or are, this or these
  word/x    has the tag x: words that share a tag are linked, as are those without any, and the two sides of a slot
"""

import re
from functools import cache
from random import Random
from typing import NamedTuple

from heed.data.synthetic.phrasebook import korean, numbers
from heed.data.synthetic.phrasebook.clauses import Words
from heed.data.synthetic.phrasebook.english_inflection import article, past, plural, with_suffix
from heed.data.synthetic.phrasebook.korean_inflection import (
    PARTICLES,
    Stem,
    attach_particle,
    final_consonant,
    past_stem,
    with_final,
)
from heed.data.synthetic.splits import pick

LEVELS = ("plain", "polite", "formal")
PLURAL = {"is": "are", "was": "were", "this": "these", "that": "those"}
CONTRACTED = {
    "이라고": "라고",
    "이랑": "랑",
    "이요": "요",
    "이세요": "세요",
    "이신가요": "신가요",
    "이죠": "죠",
    "이네요": "네요",
}
CASES = {*PARTICLES, "에", "에서", "이랑"}
SLOT = re.compile(r"^(.*)\{([a-z]+)(\d?)(?::([^}]*))?\}(.*)$")
VERB = re.compile(r"^(.*)<([^>+]+)(\+?)>$")


class Entry(NamedTuple):
    """A word of a table in both languages; its number is 'count', 'mass' (no article), 'plural', or 'name'."""

    korean: tuple[str, ...]
    english: tuple[str, ...]
    number: str = "count"


class Pattern(NamedTuple):
    """A sentence with slots; `asks` is whether it is a question."""

    korean: str
    english: str
    asks: bool


class Tables(NamedTuple):
    """The entries of slots, and the stems with their English."""

    entries: dict[str, list[Entry]]
    stems: dict[str, list[tuple[str, str]]]


class Drawn(NamedTuple):
    """A drawn sentence: its words with their roles, without final punctuation."""

    korean: Words
    english: Words
    asks: bool


def read(table: str) -> list[Pattern]:
    """The patterns of a table, one per line."""
    found = []
    for line in table.strip().splitlines():
        source, target = line.split(" = ")
        found.append(Pattern(source.strip(), target.strip().rstrip(".?"), target.rstrip().endswith("?")))
    return found


def choose(text: str, rng: Random, level: str) -> str:
    """The text with one of each (a|b), and that of the level of each [a|b|c]."""
    text = re.sub(
        r"\[([^\]]*)\](/\w+|)", lambda match: _tagged(match[1].split("|")[LEVELS.index(level)], match[2]), text
    )
    return re.sub(r"\(([^()]*)\)(/\w+|)", lambda match: _tagged(pick(rng, match[1].split("|")), match[2]), text)


def _tagged(chosen: str, tag: str) -> str:
    """What was chosen, each word with the tag of the whole."""
    return " ".join([word + tag for word in chosen.split()]) or tag


def with_ending(word: str, ending: str, level: str, asks: bool) -> str:
    """A word of a slot with its particle, or as a predicate with the copula (COP, COP+ in the past)."""
    if ending in ("COP", "COP+"):
        return korean.copula_form(
            word, "past" if ending == "COP+" else "present", level, "question" if asks else "statement"
        )
    if not "가" <= word[-1] <= "힣":
        return word + ending
    if ending in PARTICLES:
        return attach_particle(word, ending)
    if ending in CONTRACTED and not final_consonant(word):
        return word + CONTRACTED[ending]
    return word + ending


def conjugated(word: str, level: str, asks: bool) -> str:
    """A word whose verb stands in angle brackets, with its ending."""
    match = VERB.match(word)
    if not match:
        return word
    before, stem, past = match.groups()
    ending = "question" if asks else "statement"
    if stem == "이":
        return korean.copula_form(before, "past" if past else "present", level, ending)
    verb = Stem(*stem.split(","))
    return before + korean.final_verb(past_stem(verb) if past else verb, level, ending)


def remarked(adjective: str, level: str, rng: Random) -> str:
    """The stem of an adjective as a remark: 춥네요, 춥다."""
    if level == "plain" and rng.random() < 0.6:
        return adjective + "다"
    open_stem = with_final(adjective, "") if final_consonant(adjective) == "ㄹ" else adjective
    return open_stem + ("네" if level == "plain" else "네요")


def english_words(entry: Entry, form: str) -> tuple[str, ...]:
    """The English of an entry with an article, or in the plural."""
    said, counted = entry.english, entry.number == "count"
    if form in ("s", "n"):
        return (*said[:-1], plural(said[-1])) if counted else said
    if form == "a":
        return (article(said[0]), *said) if counted else said
    if form in ("ed", "ing"):
        return (past(said[0]) if form == "ed" else with_suffix(said[0], "ing"), *said[1:])
    if form == "the":
        return said if entry.number == "name" else ("the", *said)
    return said


class _Tags:
    """A bit for each tag of a sentence."""

    def __init__(self):
        self.bits: dict[str, int] = {}

    def role(self, tags: list[str]) -> int:
        found = 0
        for tag in tags:
            found |= self.bits.setdefault(tag, 1 << len(self.bits))
        return found


@cache
def _tokens(text: str) -> tuple[tuple[str, str], ...]:
    """The words of a chosen text, each with its tags."""
    found = []
    for token in re.findall(r"(?:\{[^}]*\}|<[^>]*>|[^\s{}<>])+", text):
        word, _, tags = token.partition("/")
        if word:
            found.append((word, tags))
    return tuple(found)


def realize(pattern: Pattern, tables: Tables, rng: Random, level: str) -> Drawn:
    """A pattern with its slots filled."""
    entries, tags, filled = tables.entries, _Tags(), {}
    source, target = choose(pattern.korean, rng, level), pattern.english
    for name in re.findall(r"@([a-z]+)", source):
        stem, said = pick(rng, tables.stems[name])
        if source.endswith(f"<@{name}>") and not pattern.asks and rng.random() < 0.25:
            source = source.replace(f"<@{name}>", remarked(stem.split(",")[0], level, rng))
        source = source.replace(f"@{name}", stem)
        target = re.sub(
            rf"@{name}(/\w+|)", lambda match, said=said: " ".join(word + match[1] for word in said.split()), target
        )
    for name, digit in re.findall(r"\{([a-z]+)(\d?)", source):
        if name + digit not in filled:
            filled[name + digit] = draw_entry(name, entries, rng, level, list(filled.values()))
    return Drawn(
        _side(
            source,
            filled,
            tags,
            lambda entry, form: _korean_words(entry, form, level, pattern.asks),
            level,
            pattern.asks,
        ),
        _side(target, filled, tags, english_words, level, pattern.asks),
        pattern.asks,
    )


def _korean_words(entry: Entry, form: str, level: str, asks: bool) -> tuple[str, ...]:
    return (*entry.korean[:-1], with_ending(entry.korean[-1], form, level, asks) if form else entry.korean[-1])


def _side(text: str, filled: dict[str, Entry], tags: _Tags, words, level: str, asks: bool) -> Words:
    found: list[tuple[str, int]] = []
    for token, own in _tokens(text):
        match = SLOT.match(token)
        if not match:
            word, _, slot = token.partition("~")
            word = PLURAL[word] if slot and filled[slot].number == "plural" else word
            found.append((conjugated(word, level, asks), tags.role(list(own) or ["."])))
            continue
        before, name, digit, form, after = match.groups()
        entry = filled[name + digit]
        one = form == "n" and any(other.english in (("one",), ("1",)) for other in filled.values())
        said = words(entry, "" if one else form or "")
        own = own if not form or form in CASES or words is english_words else own + "."
        same = len(entry.korean) == len(entry.english)
        added = len(said) - len(entry.english) if words is english_words else 0  # an article goes with its noun
        places = [len(entry.english) - 1] * added + list(range(len(said) - added))
        roles = [tags.role([f"{name}{digit}{i if same else ''}", *own]) for i in places]
        said = (before + said[0], *said[1:])
        said = (*said[:-1], said[-1] + after)
        found += zip(said, roles, strict=True)
    return tuple(found)


def draw_entry(name: str, entries: dict[str, list[Entry]], rng: Random, level: str, used: list[Entry]) -> Entry:
    """An entry of a slot that is not used yet; 'i' and 'my' have the form of the speech level."""
    if name in numbers.DRAWN:
        source, target = numbers.DRAWN[name](rng)
        return Entry(tuple(source.split()), tuple(target.split()), "name")
    if name in ("i", "my"):
        return Entry(({"i": "나저", "my": "내제"}[name][level != "plain"],), ({"i": "I", "my": "my"}[name],), "name")
    while (found := pick(rng, entries[name])) in used:
        pass
    return found
