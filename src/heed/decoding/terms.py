"""Terms that are to be said: each in one of several ways, and in any order.

An automaton follows what a sequence has said of them, in all ways to read it at once: terms may share tokens, and be begun in vain.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from jaxtyping import Bool
from torch import Tensor

MOST = 16  # readings of a kind that are followed: terms made of the same few tokens can be read in more ways than can be counted


class Way(NamedTuple):
    """One way to write a term.

    `apart`: only within a text, where a word may follow at once. `whole`: no letter right after it. `first`: only at the beginning.
    """

    tokens: tuple[int, ...]
    apart: bool = False
    whole: bool = False
    first: bool = False


Term = tuple[Way, ...]  # its ways; one of them at least can stand anywhere


class Letters(NamedTuple):
    """Of each token whether it begins with a letter that would lengthen a word, and whether no word follows its end at once."""

    begin: Bool[Tensor, " vocab"]
    end: Bool[Tensor, " vocab"]


class Reading(NamedTuple):
    """One way to read what was said: how often each term was met, and the way of which `place` tokens were said last."""

    met: tuple[int, ...]
    way: int = -1
    place: int = 0
    closed: bool = False  # a letter would now spoil the term that was met last


class Standing(NamedTuple):
    """All readings of a sequence, and whether no word follows its last token at once: None at its beginning."""

    readings: frozenset[Reading]
    after: bool | None


class Automaton:
    """The terms of one sentence: one that must be said twice is there twice. Standings go by their numbers, the first is 0.

    `silent` are the tokens that may stand before a text and are none of it.
    """

    def __init__(self, terms: Sequence[Term], letters: Letters, silent: Iterable[int] = ()):
        self.letters, self.silent = letters, frozenset(silent)
        wanted = Counter(terms)
        self.terms, self.many = list(wanted), list(wanted.values())
        self.sizes = [shortest(term) for term in self.terms]
        self.ways = [(number, way) for number, term in enumerate(self.terms) for way in term]
        self.standings: list[Standing] = []
        self.left: list[int] = []  # of each standing the fewest tokens with which all is said
        self.next: list[frozenset[int]] = []  # the tokens that begin a term or go on with one
        self.going: list[frozenset[int]] = []  # those of them that go on
        self.met: list[int] = []  # and how many terms were said
        self._ahead: list[
            dict[int, list[Reading]]
        ] = []  # the tokens that begin a term or go on with one, and how they are read
        self._letter = [bool(letters.begin[way.tokens[0]]) for _, way in self.ways]
        self._counted: dict[Reading, int] = {}
        self._numbers: dict[Standing, int] = {}
        self._known: dict[tuple[int, int], int] = {}
        self._number(Standing(frozenset([Reading((0,) * len(self.terms))]), None))

    @cached_property
    def kinds(self) -> list[int]:
        """Of each token which letters it has, 0 to 3."""
        return (self.letters.begin + 2 * self.letters.end.int()).tolist()

    def step(self, number: int, token: int) -> int:
        """The standing after one more token."""
        if number == 0 and token in self.silent:
            return 0
        kind = self.kinds[token]
        return self._step(number, kind, token) if token in self.next[number] else self.other(number, kind)

    def other(self, number: int, kind: int) -> int:
        """The standing after a token of a kind with which no term begins or goes on."""
        return self._step(number, kind, ~kind)

    def walk(self, tokens: Iterable[int]) -> int:
        number = 0
        for token in tokens:
            number = self.step(number, token)
        return number

    def missing(self, tokens: Iterable[int]) -> Counter[Term]:
        """The terms that these tokens do not say."""
        best = min(self.standings[self.walk(tokens)].readings, key=lambda own: (self._fewest(own), -sum(own.met)))
        each = zip(self.terms, self.many, best.met, strict=True)
        return Counter({term: many - met for term, many, met in each if many > met})

    def _step(self, number: int, kind: int, token: int) -> int:
        if (number, token) not in self._known:
            old, begins = self.standings[number], bool(kind % 2)
            new = {*self._ahead[number].get(token, ())}
            new |= {r._replace(closed=False) for r in old.readings if r.way < 0 and not (r.closed and begins)}
            self._known[number, token] = self._number(Standing(self._best(new), kind > 1))
        return self._known[number, token]

    def _number(self, standing: Standing) -> int:
        if standing not in self._numbers:
            self._numbers[standing] = len(self.standings)
            self.standings.append(standing)
            self.left.append(min(map(self._fewest, standing.readings)))
            ahead: dict[int, list[Reading]] = {}
            for token, reading in self._moves(standing):
                ahead.setdefault(token, []).append(reading)
            self._ahead.append(ahead)
            self.next.append(frozenset(ahead))
            self.met.append(max(sum(r.met) for r in standing.readings))
            begun = [r for r in standing.readings if r.way >= 0]
            self.going.append(frozenset(self.ways[r.way][1].tokens[r.place] for r in begun))
        return self._numbers[standing]

    def _fewest(self, reading: Reading) -> int:
        """The fewest tokens with which all is said."""
        if reading not in self._counted:
            self._counted[reading] = self._count(reading)
        return self._counted[reading]

    def _count(self, reading: Reading) -> int:
        left = sum((n - met) * size for n, met, size in zip(self.many, reading.met, self.sizes, strict=True))
        if reading.way < 0:
            return left
        term, way = self.ways[reading.way]
        return left - self.sizes[term] + len(way.tokens) - reading.place

    def _best(self, readings: set[Reading]) -> frozenset[Reading]:
        """Without those that another is ahead of in every respect. Of many those with the least left to say, of each kind some."""
        ordered = sorted(readings, key=lambda r: (self._fewest(r), [-n for n in r.met], r[1:]))
        kept: dict[tuple[int, int], list[Reading]] = {}
        for one in ordered:
            own = kept.setdefault((one.way, one.place), [])
            if sum(one.closed == other.closed for other in own) < MOST and not any(
                _behind(one, other) for other in own
            ):
                own.append(one)
        begun = [one for (way, _), own in kept.items() if way >= 0 for one in own]
        begun.sort(key=lambda r: (self._fewest(r), r[1:]))
        return frozenset([*begun[: 4 * MOST], *kept.get((-1, 0), [])])

    def _moves(self, standing: Standing) -> Iterator[tuple[int, Reading]]:
        """Each token that begins a way or goes on with one, and how it is then read."""
        for reading in standing.readings:
            for number in self._open(standing, reading) if reading.way < 0 else [reading.way]:
                term, way = self.ways[number]
                token = way.tokens[reading.place]
                if reading.place + 1 < len(way.tokens):
                    yield token, Reading(reading.met, number, reading.place + 1)
                else:
                    met = tuple(n + (i == term) for i, n in enumerate(reading.met))
                    yield token, Reading(met, closed=way.whole)

    def _open(self, standing: Standing, reading: Reading) -> Iterator[int]:
        """The ways that may begin here."""
        for number, (term, way) in enumerate(self.ways):
            spoils = reading.closed and self._letter[number]
            here = not (way.apart and standing.after is not False) and not (way.first and standing.after is not None)
            if here and not spoils and reading.met[term] < self.many[term]:
                yield number


def shortest(term: Term) -> int:
    """The fewest tokens that can say it anywhere."""
    return min(len(way.tokens) for way in term if not (way.apart or way.first))


def _behind(one: Reading, other: Reading) -> bool:
    """Whether another has met all that one has, and may go on as freely."""
    return other.closed <= one.closed and all(a <= b for a, b in zip(one.met, other.met, strict=True))
