"""Gap sentences and masked words, the pre-training of Pegasus (Zhang et al., 2019)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from numpy.random import Generator

from heed.data.noise import Ids, Tokens, check_share, check_total, copy_ids, protected_ids, sentences
from heed.data.overlap import bag_counts, overlap_of_counts
from heed.vocabularies.vocabulary import SpecialTokens


class GapExample(NamedTuple):
    """Encoder input, decoder output, and the positions and original tokens of the words masked in `source`."""

    source: np.ndarray
    target: np.ndarray
    positions: np.ndarray
    expected: np.ndarray


def principal(parts: Sequence[np.ndarray], generator: Generator) -> Iterator[int]:
    """Sentences by ROUGE-1 F1 against the rest of their text, highest first ("Ind-Orig")."""
    table = bag_counts([part.tolist() for part in parts])
    score = overlap_of_counts(table, table.sum(0) - table).f1
    yield from np.argsort(-score, kind="stable").tolist()


def sequential(parts: Sequence[np.ndarray], generator: Generator) -> Iterator[int]:
    """Greedily the sentence that, with those already chosen, has the highest F1 against the rest ("Seq-Orig")."""
    table = bag_counts([part.tolist() for part in parts])
    chosen: list[int] = []
    while left := [i for i in range(len(parts)) if i not in chosen]:
        candidates = table[chosen].sum(0) + table[left]
        best = int(np.argmax(overlap_of_counts(candidates, table.sum(0) - candidates).f1))
        chosen.append(left[best])
        yield left[best]


def random(parts: Sequence[np.ndarray], generator: Generator) -> Iterator[int]:
    """Random sentences."""
    yield from generator.permutation(len(parts)).tolist()


def lead(parts: Sequence[np.ndarray], generator: Generator) -> Iterator[int]:
    """The first sentences."""
    yield from range(len(parts))


CHOICES = {"principal": principal, "sequential": sequential, "random": random, "lead": lead}
Rates = tuple[float, float, float]


def mask_words(
    tokens: Ids, generator: Generator, mask: int | None, maskable: Bool[np.ndarray, " vocab"], rates: Rates
) -> tuple[Tokens, Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Mask words as BERT does (Devlin et al., 2018): the source, the positions, and the original tokens.

    `maskable` says which ids may be masked, or replace others. The share rates[0] of these tokens is chosen: rates[1]
    of the chosen become the mask, rates[2] a random other id, and the rest are unchanged.
    """
    text, (share, masked, swapped) = copy_ids(tokens), rates
    assert mask is not None or not share * masked
    positions = np.flatnonzero((generator.random(len(text)) < share) & maskable[text])
    expected, draws = text[positions], generator.random(len(positions))
    if mask is not None:
        text[positions[draws < masked]] = mask
    replaced = positions[(draws >= masked) & (draws < masked + swapped)]
    pool = np.flatnonzero(maskable)
    if len(replaced) and len(pool) > 1:
        drawn = generator.integers(len(pool) - 1, size=len(replaced))
        text[replaced] = pool[drawn + (drawn >= np.searchsorted(pool, text[replaced]))]  # never the token itself
    return text, positions, expected


@dataclass(frozen=True, eq=False)
class Gaps:
    """The source is a text with gaps and masked words, the target the removed sentences in order. `gap_share` of the
    sentences is removed, at least one and never all. A single sentence has no gap: its target is the whole text. The
    encoder predicts the masked words. `ends` says which ids end a sentence.
    """

    special: SpecialTokens
    ends: np.ndarray
    keep: tuple[int, ...] = ()
    choice: str = "principal"
    gap_share: float = 0.3
    word_share: float = 0.15
    masked: float = 0.8
    swapped: float = 0.1

    def __post_init__(self):
        if self.choice not in CHOICES:
            raise ValueError(f"task.choice is {self.choice!r}; it must be one of {', '.join(CHOICES)}")
        for name in ("gap_share", "word_share", "masked", "swapped"):
            check_share(name, getattr(self, name))
        check_total({"masked": self.masked, "swapped": self.swapped})
        if self.special.gap is None:
            raise ValueError(
                "task.name is 'gap-sentences', but the vocabulary has no token for a removed sentence; use one that "
                "has it, such as Pegasus'"
            )
        if self.special.mask is None and self.word_share * self.masked:
            raise ValueError(
                f"task.word_share is {self.word_share}, but the vocabulary has no mask; set it to 0, or use a "
                "vocabulary with a mask, such as Pegasus'"
            )

    @cached_property
    def protected(self) -> np.ndarray:
        """Ids that are never changed."""
        return np.isin(np.arange(len(self.ends)), protected_ids(self.special, self.keep))

    def __call__(self, tokens: Ids, generator: Generator) -> GapExample:
        """Remove sentences, then mask words in the rest."""
        parts = sentences(tokens, self.ends)
        removed = self.choose(parts, generator)
        left = _concatenate([copy_ids([self.special.gap]) if i in removed else part for i, part in enumerate(parts)])
        rates = (self.word_share, self.masked, self.swapped)
        source, positions, expected = mask_words(left, generator, self.special.mask, ~self.protected, rates)
        return GapExample(source, _concatenate([parts[i] for i in removed] or parts), positions, expected)

    def choose(self, parts: Sequence[np.ndarray], generator: Generator) -> list[int]:
        """The sentences to remove, in order: never all, and none with a protected id."""
        count = min(max(1, int(self.gap_share * len(parts) + 0.5)), len(parts) - 1)
        removable = (i for i in CHOICES[self.choice](parts, generator) if not self.protected[parts[i]].any())
        return sorted(islice(removable, count)) if count > 0 else []


def _concatenate(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([copy_ids([]), *parts])
