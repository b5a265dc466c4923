"""Long texts in parts that a model allows, cut where it hurts least."""

import re
from bisect import bisect_right
from collections.abc import Callable

CUTS = [
    r"(?<=[.!?…])\s+|(?<=[。！？])\s*",  # sentences
    r"(?<=[;:])\s+|(?<=[；：])\s*",
    r"(?<=,)\s+|(?<=[，、])\s*",
    r"\s+",
]
Size = Callable[[str], int]


def split(text: str, size: Size, limit: int) -> list[str]:
    """Parts of at most `limit` by `size`, as they stand in the text: sentence by sentence, else clauses, words, characters."""
    parts = _split(text, lambda part: size(part.strip()), limit, CUTS)
    return [part.strip() for part in parts if part.strip()]


def _split(text: str, size: Size, limit: int, cuts: list[str]) -> list[str]:
    """Each part with the space after it: put together they are the text."""
    if size(text) <= limit:
        return [text]
    if not cuts:
        return _halves(text, size, limit)
    parts: list[str] = []
    start = 0
    for end in [*(found.end() for found in re.finditer(cuts[0], text)), len(text)]:
        piece, start = text[start:end], end
        if cuts is not CUTS and parts and size(parts[-1] + piece) <= limit:  # clauses and words, not sentences
            parts[-1] += piece
        else:
            parts += _split(piece, size, limit, cuts[1:])
    return parts


def _halves(text: str, size: Size, limit: int) -> list[str]:
    """No place to cut is left: through the middle."""
    if len(text) < 2 or size(text) <= limit:
        return [text]
    middle = len(text) // 2
    return _halves(text[:middle], size, limit) + _halves(text[middle:], size, limit)


def cut(text: str, size: Size, most: int) -> str:
    """The longest beginning of a text, in whole words, that has no more than `most` subwords; in characters where a word has."""
    if size(text) <= most:
        return text
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    if not ends or size(text[: ends[0]]) > most:
        ends = list(range(1, len(text) + 1))
    fits = bisect_right(ends, most, key=lambda end: size(text[:end]))
    return text[: ends[max(1, fits) - 1]]
