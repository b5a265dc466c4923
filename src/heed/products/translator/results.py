"""What a translator gives back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from heed.products.translator.translator import Translator


@dataclass(frozen=True)
class Candidate:
    """One way to say it."""

    text: str
    score: float
    tokens: list[str]
    scores: list[float] | Callable[[], list[float]] = field(repr=False, compare=False)

    @cached_property
    def token_scores(self) -> list[float]:
        """The log probability of each token; where the search has not kept them, they are computed when asked for."""
        return self.scores() if callable(self.scores) else self.scores


@dataclass(frozen=True)
class TermUse:
    """A term of the glossary where it stands in a text, what it was to become, and whether the translation says that."""

    source: str
    target: str
    met: bool


@dataclass(frozen=True)
class Translation:
    """The best way to say it, and the others that were asked for.

    `score` is the log probability over the length penalty. A text that had to be cut is the sum of its `parts`.
    """

    source: str
    text: str
    score: float
    tokens: list[str]
    ids: list[int] = field(repr=False)
    source_tokens: list[str]
    nbest: list[Candidate]
    parts: list["Translation"] = field(repr=False)
    translator: "Translator" = field(repr=False, compare=False)
    terms: list[TermUse] = field(default_factory=list)

    @property
    def missing(self) -> list[TermUse]:
        """The terms of the glossary that there was no way to say."""
        return [term for term in self.terms if not term.met]

    @property
    def token_scores(self) -> list[float]:
        """The log probability of each token."""
        return self.nbest[0].token_scores

    @cached_property
    def alignment(self) -> list[tuple[int, int]]:
        """(source word, target word), read off the cross attention."""
        return self.translator.align([self])[0]

    @cached_property
    def attentions(self) -> dict[str, np.ndarray]:
        """`encoder` (layers, heads, s, s), `decoder` (layers, heads, t, t) and `cross` (layers, heads, t, s).

        s are the `source_tokens`, t the `tokens`.
        """
        return self.translator.attentions_of(self)


@dataclass(frozen=True)
class Score:
    """What a model thinks of a translation that it is shown."""

    source: str
    target: str
    logp: float
    tokens: list[str]
    token_scores: list[float]


def joined(text: str, parts: list[Translation], nbest: int, translator: "Translator") -> Translation:
    """The translation of a text from those of its parts; of an empty text there are none.

    The k-th best of the whole is made of the k-th best of each part, so there are `nbest` of it in any case.
    """
    if len(parts) == 1:
        return parts[0]
    whole = [_together([part.nbest[min(k, len(part.nbest) - 1)] for part in parts]) for k in range(nbest)]
    best = whole[0]
    ids, tokens = [i for part in parts for i in part.ids], [token for part in parts for token in part.source_tokens]
    terms = [term for part in parts for term in part.terms]
    return Translation(text, best.text, best.score, best.tokens, ids, tokens, whole, parts, translator, terms)


def _together(parts: list[Candidate]) -> Candidate:
    return Candidate(
        " ".join(part.text for part in parts),
        float(sum(part.score for part in parts)),
        [token for part in parts for token in part.tokens],
        partial(_scores_together, parts),
    )


def _scores_together(parts: list[Candidate]) -> list[float]:
    return [score for part in parts for score in part.token_scores]
