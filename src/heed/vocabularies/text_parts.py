"""Texts that are read together: sentence pairs, or a question with its choices."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from heed.vocabularies.vocabulary import Vocabulary

SEPARATOR = "\x1f"  # between the parts of a text, where it is one string
INPUT_NAMES = ("<start>", "<delimiter>", "<extract>")  # of InputTokens


class InputTokens(NamedTuple):
    """The ids of the tokens around the parts of a text: <start> a <delimiter> b <extract> (Radford et al., 2018)."""

    start: int
    delimiter: int
    extract: int


class TextParts(Vocabulary):
    """A vocabulary for texts in parts. With separate `tokens`, which no text can spell, the parts are between them.
    Without, the special tokens are those of the vocabulary.
    """

    def __init__(self, vocabulary: Vocabulary, tokens: InputTokens | None = None):
        self.vocabulary, self.tokens = vocabulary, tokens
        self.special = vocabulary.special
        if tokens is not None:
            around = {"before": (tokens.start,), "delimiter": (tokens.delimiter,), "last": tokens.extract}
            self.special = self.special._replace(first=tokens.start, **around)

    def __len__(self) -> int:
        return max(len(self.vocabulary), *(number + 1 for number in self.tokens or [0]))

    def clean(self, text: str) -> str:
        """The parts, each cleaned; a text with an empty part is empty."""
        parts = [self.vocabulary.clean(part) for part in text.split(SEPARATOR)]
        return SEPARATOR.join(parts) if all(parts) else ""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        parts = [text.split(SEPARATOR) for text in texts]
        encoded = iter(self.vocabulary.encode([part for own in parts for part in own]))
        return [self.join([next(encoded) for _ in own]) for own in parts]

    def join(self, parts: Sequence[Sequence[int]]) -> list[int]:
        """The ids of a text from those of its parts."""
        joined = join_parts(parts, self.special.delimiter)
        if len(parts) > 1 and len(split_parts(joined, self.special.delimiter)) != len(parts):
            shown = self.vocabulary.decode([i for part in parts for i in part])[:60]
            raise ValueError(f"the text that begins with {shown!r} contains the delimiter of its parts: remove it")
        return joined

    def of_one_part(self) -> "TextParts":
        """The same for texts of one part, in which a spelled delimiter does not begin a second one."""
        other = TextParts(self.vocabulary, self.tokens)
        other.special = self.special._replace(segments=False)
        return other

    def decode(self, ids: Sequence[int]) -> str:
        return self.vocabulary.decode([i for i in ids if i not in (self.tokens or ())])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        names = dict(zip(self.tokens or (), INPUT_NAMES, strict=False))
        return [names[i] if i in names else self.vocabulary.pieces([i])[0] for i in ids]

    def key(self) -> str:
        if self.tokens is None:
            return self.vocabulary.key()
        return hashlib.sha256(f"{self.vocabulary.key()} {list(self.tokens)}".encode()).hexdigest()


def join_parts(parts: Sequence[Sequence[int]], delimiter: Sequence[int]) -> list[int]:
    """The ids of all parts, with the delimiter between them."""
    joined = list(parts[0])
    for part in parts[1:]:
        joined += [*delimiter, *part]
    return joined


def split_parts(ids: Sequence[int], delimiter: Sequence[int]) -> list[list[int]]:
    """Split what `join_parts` has joined."""
    found, start, size, ids = [], 0, len(delimiter), list(ids)
    delimiter, place = list(delimiter), 0
    while size and place + size <= len(ids):
        if ids[place : place + size] == delimiter:
            found.append(ids[start:place])
            start = place = place + size
        else:
            place += 1
    return [*found, ids[start:]]


def plain(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary of text without parts."""
    return vocabulary.vocabulary if isinstance(vocabulary, TextParts) else vocabulary
