"""From the terms of a glossary to what a search must say, and back."""

import dataclasses
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import torch

from heed.decoding.config import DecodingConfig
from heed.decoding.terms import Automaton, Term, TokenEdges, Variant
from heed.products.translator.results import TermUse, Translation
from heed.text.glossary import Glossary, Match, kind
from heed.vocabularies.vocabulary import Pair

CLOSING = ".,;:!?%…)]}»”"
REMEMBERED = 10_000  # terms
BEFORE = ("", "a ", "가 ", "(", "-", '"', "/", "。")  # what may stand before a term: it is cut into other tokens there


class Wanted(NamedTuple):
    """The terms that stand in a text, what each must be said as, and from which of the text's tokens to which it stands there."""

    matches: list[Match]
    terms: list[Term]
    spans: list[tuple[int, int]]


class Spelling:
    """How a vocabulary writes terms, for a model that says no more than `most` tokens."""

    def __init__(self, subwords: Pair, vocab_size: int, most: int):
        self.source, self.vocabulary = subwords
        self.vocab_size, self.most = vocab_size, most
        self._known: dict[tuple[str, bool], Term] = {}

    @cached_property
    def by_letters(self) -> dict[bool, list[tuple[str, int]]]:
        """The pieces that begin a word and the others, each with its number, in the order of their letters."""
        found: dict[bool, list[tuple[str, int]]] = {True: [], False: []}
        for token in range(len(self.vocabulary)):
            piece = self.vocabulary.pieces([token])[0]
            found[piece.startswith("▁")].append((piece.lstrip("▁"), token))
        return {mark: sorted(own) for mark, own in found.items()}

    @cached_property
    def letters(self) -> TokenEdges:
        pieces = [self.vocabulary.pieces([i])[0] for i in range(len(self.vocabulary))]
        pieces += [""] * (self.vocab_size - len(pieces))
        return TokenEdges(torch.tensor(list(map(_begins, pieces))), torch.tensor(list(map(_ends, pieces))))

    def wanted(self, parts: Sequence[str], glossary: Glossary, config: DecodingConfig) -> list[Wanted]:
        """What the terms in each text must be said as."""
        if glossary and config.sample:
            raise ValueError(
                "sample is true, and there is a glossary: terms are found by a beam search; leave one of the two out"
            )
        found = []
        for part in parts:
            part = unicodedata.normalize("NFC", part)  # in which matches have their places
            matches = glossary.matches(part)
            terms = [self.term(match.target, fixed=match.source == match.target) for match in matches]
            found.append(Wanted(matches, terms, [self._span(part, match) for match in matches]))
        return found

    def _span(self, part: str, match: Match) -> tuple[int, int]:
        start, end = map(len, self.source.encode([part[: match.start].rstrip(), part[: match.end]]))
        return start, max(start + 1, end)

    def missing(self, terms: Sequence[Term], tokens: Sequence[int]) -> Counter[Term]:
        """The terms that these tokens do not say."""
        return (
            Automaton(terms, self.letters, self.vocabulary.marks.before).missing_terms(tokens) if terms else Counter()
        )

    def used(self, wanted: Wanted, tokens: Sequence[int]) -> list[TermUse]:
        """What became of the terms of a text, when these tokens were said."""
        missing, uses = self.missing(wanted.terms, tokens), []
        for match, term in reversed(list(zip(wanted.matches, wanted.terms, strict=True))):
            uses.append(TermUse(match.source, match.target, met=not missing[term]))
            missing[term] -= missing[term] > 0
        return uses[::-1]

    def term(self, text: str, fixed: bool = False) -> Term:
        """The ways to write a term; one that is not fixed may have a capital at the beginning of a sentence."""
        if (text, fixed) not in self._known:
            ways = list(dict.fromkeys(self._ways(text)))
            free = [len(way.tokens) for way in ways if not (way.inside or way.initial)]
            if not free:
                shown = self.vocabulary.decode(self.vocabulary.encode([text])[0])
                raise ValueError(
                    f"the term {text!r} cannot be written with the subwords of this model, which make {shown!r} of it: leave it out of "
                    "the glossary, or write it with other characters"
                )
            if min(free) >= self.most:
                raise ValueError(
                    f"the term {text!r} has {min(free)} subwords, and this model says no more than {self.most} in all: leave it out of the "
                    "glossary, or shorten it"
                )
            capital = text[0].upper() + text[1:]
            if not fixed and capital != text:
                ways += [way._replace(initial=True) for way in dict.fromkeys(self._ways(capital)) if not way.inside]
            if len(self._known) >= REMEMBERED:  # terms come from whoever asks
                self._known.clear()
            self._known[text, fixed] = tuple(ways)
        return self._known[text, fixed]

    def _ways(self, text: str) -> Iterator[Variant]:
        """The tokens of a term after this and that, where they are the term and nothing else."""
        encode, decode, marks = self.vocabulary.encode, self.vocabulary.decode, self.vocabulary.marks
        banned = {marks.unknown, marks.last, marks.pad, *marks.never}
        for before in BEFORE:
            start, whole = encode([before.strip(), before + text])
            own = tuple(whole[len(start) :])
            if not own or whole[: len(start)] != start or banned & {*own} or decode(own).strip() != text:
                continue
            joins = not self.vocabulary.pieces(own)[0].startswith("▁") and kind(text[0]) in ("word", "hangul")
            yield Variant(
                own, inside=joins and before != "", initial=joins and before == "", whole=kind(text[-1]) == "word"
            )


def with_lost_terms(translation: Translation, glossary: Glossary) -> Translation:
    """A text that was cut into parts through a term: the term is missing, and told as that."""
    if len(translation.parts) < 2 or not glossary:
        return translation
    there = Counter((match.source, match.target) for match in glossary.matches(translation.source))
    there -= Counter((term.source, term.target) for term in translation.terms)
    lost = [TermUse(*both, met=False) for both in there.elements()]
    return dataclasses.replace(translation, terms=[*translation.terms, *lost]) if lost else translation


def _byte(piece: str) -> int | None:
    """A byte is written <0x41>."""
    return int(piece[3:5], 16) if len(piece) == 6 and piece.startswith("<0x") else None


def _begins(piece: str) -> bool:
    """Whether it would lengthen a word of letters; Hangul would not, since particles follow words."""
    if (byte := _byte(piece)) is not None:
        return kind(chr(byte)) == "word" if byte < 128 else False
    return bool(piece) and kind(piece[0]) == "word" and not piece.startswith("▁")


def _ends(piece: str) -> bool:
    """Whether no word follows it at once: after letters, and what closes; bytes beyond ASCII are parts of letters."""
    if (byte := _byte(piece)) is not None:
        return byte >= 128 or _ends(chr(byte))
    return bool(piece) and (kind(piece[-1]) in ("word", "hangul") or piece[-1] in CLOSING)
