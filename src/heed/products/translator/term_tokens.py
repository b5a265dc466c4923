"""Glossary terms as tokens that a search must produce, and whether it did."""

import dataclasses
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import torch

from heed.decoding.config import DecodingConfig
from heed.decoding.terms import Automaton, Term, TokenEdges, Variant
from heed.products.translator.results import TermUse, Translation
from heed.text.glossary import Glossary, Match, char_class
from heed.vocabularies.vocabulary import Pair, Vocabulary

CLOSING = ".,;:!?%…)]}»”"
MAX_CACHED = 10_000  # terms
CONTEXTS = ("", "a ", "가 ", "(", "-", '"', "/", "。")  # what may stand before a term: its tokens depend on that


class RequiredTerms(NamedTuple):
    """The glossary terms in a text, the tokens of each, and its span of source tokens."""

    matches: list[Match]
    terms: list[Term]
    spans: list[tuple[int, int]]


NO_TERMS = RequiredTerms([], [], [])


class TermEncoder:
    """Encodes terms with a target vocabulary, for a model whose translations have at most `max_target` tokens."""

    def __init__(self, vocabularies: Pair, vocab_size: int, max_target: int):
        self.source, self.vocabulary = vocabularies
        self.vocab_size, self.max_target = vocab_size, max_target
        self._pieces = _Pieces(self.vocabulary, vocab_size)
        self._cache: dict[tuple[str, bool], Term] = {}

    def for_pair(self, vocabularies: Pair) -> "TermEncoder":
        """The same for another direction of the model, with the same tables."""
        own = copy(self)
        own.source, own.vocabulary = vocabularies
        return own

    @property
    def sorted_pieces(self) -> dict[bool, list[tuple[str, int]]]:
        """(text, token) of the pieces that begin a word (True) and of the others, sorted."""
        return self._pieces.sorted

    @property
    def letters(self) -> TokenEdges:
        return self._pieces.letters

    def required(self, parts: Sequence[str], glossary: Glossary, config: DecodingConfig) -> list[RequiredTerms]:
        """The terms that occur in each text."""
        if glossary and config.sample:
            raise ValueError("sample is true, but glossary terms need beam search: leave one of them out")
        if not glossary:
            return [NO_TERMS] * len(parts)
        found = []
        for part in parts:
            part = unicodedata.normalize("NFC", part)  # the form in which matches have their positions
            matches = glossary.matches(part)
            terms = [self.term(match.target, fixed=match.source == match.target) for match in matches]
            found.append(RequiredTerms(matches, terms, [self._span(part, match) for match in matches]))
        return found

    def _span(self, part: str, match: Match) -> tuple[int, int]:
        start, end = map(len, self.source.encode([part[: match.start].rstrip(), part[: match.end]]))
        return start, max(start + 1, end)

    def missing(self, terms: Sequence[Term], tokens: Sequence[int]) -> Counter[Term]:
        """The terms missing from a translation."""
        return (
            Automaton(terms, self.letters, self.vocabulary.special.before).missing_terms(tokens) if terms else Counter()
        )

    def uses(self, required: RequiredTerms, tokens: Sequence[int]) -> list[TermUse]:
        """Which terms a translation contains; of a term that occurs too rarely, the last ones are missing."""
        if not required.terms:
            return []
        missing, uses = self.missing(required.terms, tokens), []
        for match, term in reversed(list(zip(required.matches, required.terms, strict=True))):
            uses.append(TermUse(match.source, match.target, met=not missing[term]))
            missing[term] -= missing[term] > 0
        return uses[::-1]

    def can_spell(self, text: str) -> bool:
        """Whether the model has the subwords, and the space, to write a text verbatim."""
        try:
            return bool(self.term(text, fixed=True))
        except ValueError:
            return False

    def term(self, text: str, fixed: bool = False) -> Term:
        """All tokenizations of a term; unless `fixed`, also capitalized at the beginning of a sentence."""
        found = self._cache.get((text, fixed))  # several threads ask, and one may clear it
        if found is None:
            ways = list(dict.fromkeys(self._ways(text)))
            free = [len(way.tokens) for way in ways if not (way.inside or way.initial)]
            if not free:
                shown = self.vocabulary.decode(self.vocabulary.encode([text])[0])
                raise ValueError(
                    f"the term {text!r} cannot be encoded with the subwords of this model, which turn it into "
                    f"{shown!r}: remove it from the glossary, or use other characters"
                )
            if min(free) >= self.max_target:
                raise ValueError(
                    f"the term {text!r} has {min(free)} subwords, and this model generates at most {self.max_target}: "
                    "remove it from the glossary, or shorten it"
                )
            capital = text[0].upper() + text[1:]
            if not fixed and capital != text:
                ways += [way._replace(initial=True) for way in dict.fromkeys(self._ways(capital)) if not way.inside]
            if len(self._cache) >= MAX_CACHED:  # requests bring terms of their own: the cache must not grow for ever
                self._cache.clear()
            found = self._cache[text, fixed] = tuple(ways)
        return found

    def _ways(self, text: str) -> Iterator[Variant]:
        """The tokens of a term in different contexts, if they decode to exactly the term."""
        encode, decode, special = self.vocabulary.encode, self.vocabulary.decode, self.vocabulary.special
        banned = {special.unknown, special.last, special.pad, *special.never}
        for before in CONTEXTS:
            start, whole = encode([before.strip(), before + text])
            own = tuple(whole[len(start) :])
            if not own or whole[: len(start)] != start or banned & {*own} or decode(own).strip() != text:
                continue
            joins = not self.vocabulary.pieces(own)[0].startswith("▁") and char_class(text[0]) in ("word", "hangul")
            yield Variant(
                own, inside=joins and before != "", initial=joins and before == "", whole=char_class(text[-1]) == "word"
            )


class _Pieces:
    """Tables of all pieces of a vocabulary, built on demand since they take a while for a large one."""

    def __init__(self, vocabulary: Vocabulary, vocab_size: int):
        self.vocabulary, self.vocab_size = vocabulary, vocab_size

    @cached_property
    def sorted(self) -> dict[bool, list[tuple[str, int]]]:
        found: dict[bool, list[tuple[str, int]]] = {True: [], False: []}
        for token in range(len(self.vocabulary)):
            piece = self.vocabulary.pieces([token])[0]
            found[piece.startswith("▁")].append((piece.lstrip("▁"), token))
        return {opens: sorted(pieces) for opens, pieces in found.items()}

    @cached_property
    def letters(self) -> TokenEdges:
        pieces = [self.vocabulary.pieces([i])[0] for i in range(len(self.vocabulary))]
        pieces += [""] * (self.vocab_size - len(pieces))
        return TokenEdges(torch.tensor(list(map(_begins, pieces))), torch.tensor(list(map(_ends, pieces))))


def add_split_terms(translation: Translation, glossary: Glossary) -> Translation:
    """Report terms that were split between parts of a text as missing."""
    if len(translation.parts) < 2 or not glossary:
        return translation
    matched = Counter((match.source, match.target) for match in glossary.matches(translation.source))
    matched -= Counter((term.source, term.target) for term in translation.terms)
    split = [TermUse(source, target, met=False) for source, target in matched.elements()]
    return dataclasses.replace(translation, terms=[*translation.terms, *split]) if split else translation


def _byte(piece: str) -> int | None:
    """A byte is written <0x41>."""
    return int(piece[3:5], 16) if len(piece) == 6 and piece.startswith("<0x") else None


def _begins(piece: str) -> bool:
    """Whether it would extend the word before it; Hangul would not, since particles follow words."""
    if (byte := _byte(piece)) is not None:
        return char_class(chr(byte)) == "word" if byte < 128 else False
    return bool(piece) and char_class(piece[0]) == "word" and not piece.startswith("▁")


def _ends(piece: str) -> bool:
    """Whether no word can follow without a space: after letters and closing marks; bytes beyond ASCII are parts of
    letters.
    """
    if (byte := _byte(piece)) is not None:
        return byte >= 128 or _ends(chr(byte))
    return bool(piece) and (char_class(piece[-1]) in ("word", "hangul") or piece[-1] in CLOSING)
