"""The interface of a vocabulary, of any kind."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class SpecialTokens(NamedTuple):
    """The ids of special tokens.

    A model reads `[*before, *text, last]`. The inputs of a decoder are `[first, *before, *text]`, its outputs
    `[*before, *text, last]`. A search outputs none of `never`. `mask` replaces words, `gap` a sentence.
    `delimiter` separates two texts that are read together; with `segments` a model gets the text index of each token.
    """

    pad: int
    unknown: int
    first: int
    last: int
    before: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    mask: int | None = None
    gap: int | None = None
    delimiter: tuple[int, ...] = ()
    segments: bool = False


@runtime_checkable
class Vocabulary(Protocol):
    """Converts text to ids and back."""

    special: SpecialTokens

    def __len__(self) -> int: ...

    def fixed_special(self) -> SpecialTokens:
        """The special tokens that do not depend on a direction."""
        return self.special

    def clean(self, text: str) -> str:
        """The text as this vocabulary normalizes it."""

    def clean_all(self, texts: Sequence[str]) -> list[str]:
        """The same for many; some vocabularies are faster than one by one."""
        return [self.clean(text) for text in texts]

    def language_tag(self, text: str) -> str:
        """The language tag before a text, if any: each part of a split text needs it."""
        return ""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special tokens."""

    def encode_clean(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts that `clean` has returned, which some vocabularies need not clean again."""
        return self.encode(texts)

    def decode(self, ids: Sequence[int]) -> str:
        """Text without special tokens."""

    def decode_all(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The same for many; some vocabularies are faster than one by one."""
        return [self.decode(ids) for ids in rows]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Ids in readable form; a piece that begins a word begins with "▁"."""

    def key(self) -> str:
        """A hash of the vocabulary: equal for equal vocabularies."""


class AlignedPieces(NamedTuple):
    """The ids of a text, the character span of each as (start, end), and the index of its word."""

    ids: list[int]
    spans: list[tuple[int, int]]
    words: list[int | None]


@runtime_checkable
class AlignsPieces(Protocol):
    """A vocabulary that knows the positions of its pieces in a text."""

    def encode_aligned(self, texts: Sequence[str]) -> list[AlignedPieces]: ...


def trim_span(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without whitespace at its ends; for whitespace only, its end."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


Pair = tuple[Vocabulary, Vocabulary]
SpecialPair = tuple[SpecialTokens, SpecialTokens]
