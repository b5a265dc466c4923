"""Terms that a translation must contain, each in one of several variants, in any order.

An automaton tracks which of them a sequence contains, over all possible parses: terms may share tokens, and a partial
term may be abandoned.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from jaxtyping import Bool
from torch import Tensor

MAX_PARSES = 16  # of a kind that are tracked: terms made of the same few tokens have exponentially many


class Variant(NamedTuple):
    """One way to write a term.

    `inside`: only after a token that a word may directly follow. `whole`: no letter directly after it. `initial`: only at
    the beginning of a text.
    """

    tokens: tuple[int, ...]
    inside: bool = False
    whole: bool = False
    initial: bool = False


Term = tuple[Variant, ...]  # at least one variant can stand anywhere


class TokenEdges(NamedTuple):
    """For each token whether it begins with a letter that would extend a word, and whether no word may directly
    follow it.
    """

    extends: Bool[Tensor, " vocab"]
    closes: Bool[Tensor, " vocab"]


class Parse(NamedTuple):
    """One parse of a sequence: how often each term was met, and the variant that the last `matched` tokens are part
    of.
    """

    met: tuple[int, ...]
    variant: int = -1
    matched: int = 0
    closed: bool = False  # a letter now would spoil the term that was met last


class ParseState(NamedTuple):
    """All parses of a sequence, and whether no word may directly follow its last token: None at its beginning."""

    parses: frozenset[Parse]
    closes: bool | None


class Automaton:
    """The terms of one sentence; a term that is required twice is listed twice. States are numbered, the first is 0.

    `silent` are tokens before a text that are not part of it.
    """

    def __init__(self, terms: Sequence[Term], edges: TokenEdges, silent: Iterable[int] = ()):
        self.edges, self.silent = edges, frozenset(silent)
        required = Counter(terms)
        self.terms, self.required = list(required), list(required.values())
        self.sizes = [min_tokens(term) for term in self.terms]
        self.variants = [(number, variant) for number, term in enumerate(self.terms) for variant in term]
        self.states: list[ParseState] = []
        self.remaining: list[int] = []  # for each state, the fewest tokens that complete all terms
        self.term_tokens: list[frozenset[int]] = []  # the tokens that begin or continue a term
        self.continuing: list[frozenset[int]] = []  # those of them that continue one
        self.met: list[int] = []  # how many terms are met
        self._transitions: list[
            dict[int, list[Parse]]
        ] = []  # by token that begins or continues a term, the parses after it
        self._extends = [bool(edges.extends[variant.tokens[0]]) for _, variant in self.variants]
        self._remaining_of: dict[Parse, int] = {}
        self._numbers: dict[ParseState, int] = {}
        self._steps: dict[tuple[int, int], int] = {}
        self._number(ParseState(frozenset([Parse((0,) * len(self.terms))]), None))

    @cached_property
    def kinds(self) -> list[int]:
        """The edges of each token as a number from 0 to 3."""
        return (self.edges.extends + 2 * self.edges.closes.int()).tolist()

    def step(self, number: int, token: int) -> int:
        """The state after one more token."""
        if number == 0 and token in self.silent:
            return 0
        kind = self.kinds[token]
        return self._step(number, kind, token) if token in self.term_tokens[number] else self.step_other(number, kind)

    def step_other(self, number: int, kind: int) -> int:
        """The state after any token of a kind that neither begins nor continues a term."""
        return self._step(number, kind, ~kind)

    def run(self, tokens: Iterable[int]) -> int:
        """The state after a sequence."""
        number = 0
        for token in tokens:
            number = self.step(number, token)
        return number

    def missing_terms(self, tokens: Iterable[int]) -> Counter[Term]:
        """The terms that a sequence does not contain."""
        parses = self.states[self.run(tokens)].parses
        best = min(parses, key=lambda parse: (self._fewest(parse), -sum(parse.met)))
        counts = zip(self.terms, self.required, best.met, strict=True)
        return Counter({term: required - met for term, required, met in counts if required > met})

    def _step(self, number: int, kind: int, token: int) -> int:
        if (number, token) not in self._steps:
            state, extends = self.states[number], bool(kind % 2)
            parses = {*self._transitions[number].get(token, ())}
            parses |= {p._replace(closed=False) for p in state.parses if p.variant < 0 and not (p.closed and extends)}
            self._steps[number, token] = self._number(ParseState(self._prune(parses), kind > 1))
        return self._steps[number, token]

    def _number(self, state: ParseState) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self.states)
            self.states.append(state)
            self.remaining.append(min(map(self._fewest, state.parses)))
            transitions: dict[int, list[Parse]] = {}
            for token, parse in self._moves(state):
                transitions.setdefault(token, []).append(parse)
            self._transitions.append(transitions)
            self.term_tokens.append(frozenset(transitions))
            self.met.append(max(sum(p.met) for p in state.parses))
            begun = [p for p in state.parses if p.variant >= 0]
            self.continuing.append(frozenset(self.variants[p.variant][1].tokens[p.matched] for p in begun))
        return self._numbers[state]

    def _fewest(self, parse: Parse) -> int:
        """The fewest tokens that complete all terms."""
        if parse not in self._remaining_of:
            self._remaining_of[parse] = self._count(parse)
        return self._remaining_of[parse]

    def _count(self, parse: Parse) -> int:
        counts = zip(self.required, parse.met, self.sizes, strict=True)
        remaining = sum((required - met) * size for required, met, size in counts)
        if parse.variant < 0:
            return remaining
        term, variant = self.variants[parse.variant]
        return remaining - self.sizes[term] + len(variant.tokens) - parse.matched

    def _prune(self, parses: set[Parse]) -> frozenset[Parse]:
        """Without parses that another dominates; of each kind only some, those with the fewest remaining tokens."""
        ordered = sorted(parses, key=lambda p: (self._fewest(p), [-n for n in p.met], p[1:]))
        kept: dict[tuple[int, int], list[Parse]] = {}
        for parse in ordered:
            same = kept.setdefault((parse.variant, parse.matched), [])
            full = sum(parse.closed == other.closed for other in same) >= MAX_PARSES
            if not full and not any(_dominated(parse, other) for other in same):
                same.append(parse)
        begun = [parse for (variant, _), same in kept.items() if variant >= 0 for parse in same]
        begun.sort(key=lambda p: (self._fewest(p), p[1:]))
        return frozenset([*begun[: 4 * MAX_PARSES], *kept.get((-1, 0), [])])

    def _moves(self, state: ParseState) -> Iterator[tuple[int, Parse]]:
        """Each token that begins or continues a variant, and the parse after it."""
        for parse in state.parses:
            for number in self._startable(state, parse) if parse.variant < 0 else [parse.variant]:
                term, variant = self.variants[number]
                token = variant.tokens[parse.matched]
                if parse.matched + 1 < len(variant.tokens):
                    yield token, Parse(parse.met, number, parse.matched + 1)
                else:
                    met = tuple(n + (i == term) for i, n in enumerate(parse.met))
                    yield token, Parse(met, closed=variant.whole)

    def _startable(self, state: ParseState, parse: Parse) -> Iterator[int]:
        """The variants that may begin here."""
        for number, (term, variant) in enumerate(self.variants):
            spoils = parse.closed and self._extends[number]
            misplaced = (variant.inside and state.closes is not False) or (variant.initial and state.closes is not None)
            if not misplaced and not spoils and parse.met[term] < self.required[term]:
                yield number


def min_tokens(term: Term) -> int:
    """The length of the shortest variant that may occur anywhere."""
    return min(len(variant.tokens) for variant in term if not (variant.inside or variant.initial))


def _dominated(parse: Parse, other: Parse) -> bool:
    """Whether another parse has met at least as much, and is at least as free to continue."""
    return other.closed <= parse.closed and all(a <= b for a, b in zip(parse.met, other.met, strict=True))
