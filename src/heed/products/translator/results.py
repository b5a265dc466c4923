"""The results of a translator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from heed.products.translator.alignment import Links


@dataclass(frozen=True)
class Candidate:
    """One hypothesis of a search, as text."""

    text: str
    score: float
    tokens: list[str]
    scores: list[float] | Callable[[], list[float]] = field(repr=False, compare=False)

    @cached_property
    def token_scores(self) -> list[float]:
        """The log probability of each token; computed on first use if the search did not keep them."""
        return self.scores() if callable(self.scores) else self.scores


@dataclass(frozen=True)
class TermUse:
    """A glossary term that occurs in a text, its required translation, and whether the translation contains it."""

    source: str
    target: str
    met: bool


@runtime_checkable
class Inspector(Protocol):
    """Computes details of a translation on demand."""

    def align(self, translations: Sequence["Translation"]) -> list[Links]: ...

    def attentions_of(self, translation: "Translation") -> dict[str, np.ndarray]: ...


@dataclass(frozen=True)
class Translation:
    """The best translation of a text, and with `nbest` the next ones.

    `score` is the log probability divided by the length penalty. For a split text it is the sum over its `parts`.
    """

    source: str
    text: str
    score: float
    tokens: list[str]
    ids: list[int] = field(repr=False)
    source_tokens: list[str]
    nbest: list[Candidate]
    parts: list["Translation"] = field(repr=False)
    inspector: Inspector | None = field(repr=False, compare=False)
    terms: list[TermUse] = field(default_factory=list)

    @classmethod
    def by(cls, **fields: Any) -> "Translation":
        """One with these fields; `_rest` computes the others on first use: few people look at the tokens of a large file."""
        own = object.__new__(cls)
        object.__setattr__(own, "__dict__", fields)
        return own

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        if rest := fields.get("_rest"):  # two threads may both ask: they find the same
            fields.update(rest())
            fields.pop("_rest", None)
        if name not in fields:
            raise AttributeError(f"a translation has no {name!r}")
        return fields[name]

    def __getstate__(self) -> dict[str, Any]:
        """All fields, for copies."""
        return {"tokens": self.tokens, **self.__dict__}

    @property
    def missing(self) -> list[TermUse]:
        """The glossary terms missing from the translation."""
        return [term for term in self.terms if not term.met]

    @property
    def token_scores(self) -> list[float]:
        """The log probability of each token."""
        return self.nbest[0].token_scores

    @cached_property
    def alignment(self) -> Links:
        """(source word, target word) pairs, from the cross-attention."""
        return self.inspector.align([self])[0]

    @cached_property
    def attentions(self) -> dict[str, np.ndarray]:
        """`encoder` (layers, heads, s, s), `decoder` (layers, heads, t, t) and `cross` (layers, heads, t, s).

        s are the `source_tokens`, t the `tokens`.
        """
        return self.inspector.attentions_of(self)


@dataclass(frozen=True)
class Score:
    """The probability of a given translation under a model."""

    source: str
    target: str
    logp: float
    tokens: list[str]
    token_scores: list[float]


def join_parts(text: str, parts: list[Translation], nbest: int, inspector: Inspector | None) -> Translation:
    """The translation of a text from those of its parts; an empty text has none.

    The k-th best of the whole joins the k-th best of each part, or its last if it has fewer, so there are always
    `nbest`.
    """
    if len(parts) == 1:
        return parts[0]
    whole = [_join_candidates([part.nbest[min(k, len(part.nbest) - 1)] for part in parts]) for k in range(nbest)]
    best = whole[0]
    ids, tokens = [i for part in parts for i in part.ids], [token for part in parts for token in part.source_tokens]
    terms = [term for part in parts for term in part.terms]
    return Translation(text, best.text, best.score, best.tokens, ids, tokens, whole, parts, inspector, terms)


def _join_candidates(parts: list[Candidate]) -> Candidate:
    text, tokens = " ".join(part.text for part in parts), [token for part in parts for token in part.tokens]
    return Candidate(text, float(sum(part.score for part in parts)), tokens, partial(_join_scores, parts))


def _join_scores(parts: list[Candidate]) -> list[float]:
    return [score for part in parts for score in part.token_scores]
