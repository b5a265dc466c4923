"""Gap sentences and hidden words, what Pegasus learns from (Zhang et al., 2019)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from heed.data.noise import Ids, Tokens, check_share, check_sum, fresh, sentences, special
from heed.data.overlap import compare, counts
from heed.vocabularies.vocabulary import SpecialTokens


class GapExample(NamedTuple):
    """What the encoder reads, what the decoder should say, and the words of the source that are hidden.

    `places` are those of the hidden words in `source`, counted without the marks before it; `expected` is what stood there.
    """

    source: np.ndarray
    target: np.ndarray
    places: np.ndarray
    expected: np.ndarray


def principal(parts: Sequence[np.ndarray], generator: np.random.Generator) -> Iterator[int]:
    """First the sentences that share most with the rest of their text, by ROUGE-1 F1 ("Ind-Orig")."""
    table = counts([part.tolist() for part in parts])
    score = compare(table, table.sum(0) - table).f1
    yield from np.argsort(-score, kind="stable").tolist()


def sequential(parts: Sequence[np.ndarray], generator: np.random.Generator) -> Iterator[int]:
    """Each time the sentence that, with those before it, shares most with what is then left ("Seq-Orig")."""
    table = counts([part.tolist() for part in parts])
    chosen: list[int] = []
    while left := [i for i in range(len(parts)) if i not in chosen]:
        said = table[chosen].sum(0) + table[left]
        best = int(np.argmax(compare(said, table.sum(0) - said).f1))
        chosen.append(left[best])
        yield left[best]


def random(parts: Sequence[np.ndarray], generator: np.random.Generator) -> Iterator[int]:
    """Any sentences."""
    yield from generator.permutation(len(parts)).tolist()


def lead(parts: Sequence[np.ndarray], generator: np.random.Generator) -> Iterator[int]:
    """The first sentences."""
    yield from range(len(parts))


CHOICES = {"principal": principal, "sequential": sequential, "random": random, "lead": lead}


def hide_words(
    tokens: Ids,
    generator: np.random.Generator,
    mask: int | None,
    words: Bool[np.ndarray, " vocab"],
    rates: tuple[float, float, float],
) -> tuple[Tokens, Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Hide words as BERT does (Devlin et al., 2018): the source, the places, and what stood there.

    `words` tells which ids may be hidden, or said instead. The share rates[0] of them is hidden: of these, rates[1] become
    the mask, rates[2] any other id, and the rest stays as it is.
    """
    text, (share, masked, swapped) = fresh(tokens), rates
    assert mask is not None or not share * masked
    places = np.flatnonzero((generator.random(len(text)) < share) & words[text])
    expected, luck = text[places], generator.random(len(places))
    if mask is not None:
        text[places[luck < masked]] = mask
    other = places[(luck >= masked) & (luck < masked + swapped)]
    if len(other):
        text[other] = generator.choice(np.flatnonzero(words), len(other))
    return text, places, expected


@dataclass(frozen=True, eq=False)
class Gaps:
    """A text to be read with gaps, and the sentences left out to be said in their order; some of the words read are hidden.

    The share `gap_share` of the sentences is left out, but at least one, and never all. A text of one sentence has no gap:
    it is to be said whole, after it was read with hidden words. Only the encoder learns the hidden words.
    """

    marks: SpecialTokens
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
        check_sum({"masked": self.masked, "swapped": self.swapped})
        if self.marks.gap is None:
            raise ValueError(
                "task.name is 'gap-sentences', but the vocabulary has no mark for a sentence left out; "
                "it must be one with such a mark, as Pegasus has"
            )
        if self.marks.mask is None and self.word_share * self.masked:
            raise ValueError(
                f"task.word_share is {self.word_share}, but the vocabulary has no mask; "
                "it must be 0, or the vocabulary one with a mask, as Pegasus has"
            )

    @cached_property
    def kept(self) -> np.ndarray:
        """Which ids are never touched."""
        return np.isin(np.arange(len(self.ends)), special(self.marks, self.keep))

    def __call__(self, tokens: Ids, generator: np.random.Generator) -> GapExample:
        """Leave sentences out, then hide words in what is left."""
        parts = sentences(tokens, self.ends)
        gone = self.choose(parts, generator)
        left = [fresh([self.marks.gap]) if i in gone else part for i, part in enumerate(parts)]
        rates = (self.word_share, self.masked, self.swapped)
        source, places, expected = hide_words(_joined(left), generator, self.marks.mask, ~self.kept, rates)
        return GapExample(source, _joined([parts[i] for i in gone] or parts), places, expected)

    def choose(self, parts: Sequence[np.ndarray], generator: np.random.Generator) -> list[int]:
        """Which sentences to leave out, in order: never all, and none with an id that is to be kept."""
        count = min(max(1, int(self.gap_share * len(parts) + 0.5)), len(parts) - 1)
        able = (i for i in CHOICES[self.choice](parts, generator) if not self.kept[parts[i]].any())
        return sorted(islice(able, count)) if count > 0 else []


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([fresh([]), *parts])
