"""Long texts split into parts that a model allows, at the least harmful places."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from heed.vocabularies.vocabulary import Vocabulary

BOUNDARIES = [
    r"(?<=[.!?…])\s+|(?<=[。！？])\s*",  # sentences
    r"(?<=[;:])\s+|(?<=[；：])\s*",
    r"(?<=,)\s+|(?<=[，、])\s*",
    r"\s+",
]
Size = Callable[[str], int]


def split_texts(
    texts: Sequence[str], vocabulary: Vocabulary, limit: int, cut_off: bool = False
) -> tuple[list[str], list[int]]:
    """Texts in parts of at most `limit` subwords, and which text each part belongs to. Empty texts have no parts."""
    parts, owners = [], []
    for i, text in enumerate(texts):
        text = vocabulary.clean(text)
        tag = vocabulary.language_tag(text)  # every part needs it

        def size(part: str, tag: str = tag) -> int:
            return source_size(tag + part, vocabulary)

        text = text[len(tag) :]
        if cut_off:
            text = cut(text, size, limit)
        own = [tag + part for part in split(text, size, limit)] if text.strip() else []
        parts += own
        owners += [i] * len(own)
    return parts, owners


def source_size(text: str, vocabulary: Vocabulary) -> int:
    """How many positions of a model a text takes, special tokens included."""
    return len(vocabulary.special.before) + len(vocabulary.encode([text])[0]) + 1


def split(text: str, size: Size, limit: int) -> list[str]:
    """Parts of at most `limit` by `size`, verbatim: sentence by sentence, else clauses, words, characters."""
    parts = _split(text, lambda part: size(part.strip()), limit, BOUNDARIES)
    return [part.strip() for part in parts if part.strip()]


def _split(text: str, size: Size, limit: int, boundaries: list[str]) -> list[str]:
    """Each part keeps the space after it: joined they are the text."""
    if size(text) <= limit:
        return [text]
    if not boundaries:
        return _halve(text, size, limit)
    parts: list[str] = []
    start = 0
    for end in [*(match.end() for match in re.finditer(boundaries[0], text)), len(text)]:
        piece, start = text[start:end], end
        # Sentences stay apart, since models translate one at a time; clauses and words are joined up to the limit.
        if boundaries is not BOUNDARIES and parts and size(parts[-1] + piece) <= limit:
            parts[-1] += piece
        else:
            parts += _split(piece, size, limit, boundaries[1:])
    return parts


def _halve(text: str, size: Size, limit: int) -> list[str]:
    if len(text) < 2 or size(text) <= limit:
        return [text]
    middle = len(text) // 2
    return _halve(text[:middle], size, limit) + _halve(text[middle:], size, limit)


def cut(text: str, size: Size, limit: int) -> str:
    """The longest beginning of a text, in whole words, of at most `limit` subwords; in characters where one word has more."""
    if size(text) <= limit:
        return text
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    if not ends or size(text[: ends[0]]) > limit:
        ends = list(range(1, len(text) + 1))
    fits = bisect_right(ends, limit, key=lambda end: size(text[:end]))
    return text[: ends[max(1, fits) - 1]]
