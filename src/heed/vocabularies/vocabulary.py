"""What the rest of heed asks of a vocabulary, whoever has made it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class SpecialTokens(NamedTuple):
    """The ids with a meaning of their own.

    A model reads `[*before, *text, last]`. A decoder is given `[first, *before, *text]`, and `[*before, *text, last]` is
    what it should say. A search says none of `never`. `mask` stands for words left out, `gap` for a sentence left out.
    """

    pad: int
    unknown: int
    first: int
    last: int
    before: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    mask: int | None = None
    gap: int | None = None


@runtime_checkable
class Vocabulary(Protocol):
    """Text to ids and back."""

    marks: SpecialTokens

    def __len__(self) -> int: ...

    def clean(self, text: str) -> str:
        """The text as this vocabulary takes it."""

    def lead(self, text: str) -> str:
        """What stands before a text and is none of it (a language tag): each part of a text that is cut needs it."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without marks."""

    def decode(self, ids: Sequence[int]) -> str:
        """Text; marks are left out."""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Ids to be looked at; what begins a word begins with "▁"."""

    def key(self) -> str:
        """A hash: the same for the same vocabulary."""


Pair = tuple[Vocabulary, Vocabulary]
