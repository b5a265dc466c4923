"""Split long texts into parts that a model allows, at the least harmful points."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from heed.vocabularies.vocabulary import Vocabulary

BOUNDARIES = [
    r"(?<=[.!?…])\s+|(?<=[。！？])\s*",  # sentences
    r"(?<=[;:])\s+|(?<=[；：])\s*",
    r"(?<=,)\s+|(?<=[，、])\s*",
    r"\s+",
]
Size = Callable[[str], int]


class Parts(NamedTuple):
    """Parts of texts, which text each belongs to, and its subwords."""

    texts: list[str]
    owners: list[int]
    ids: list[list[int]]


def split_texts(texts: Sequence[str], vocabulary: Vocabulary, limit: int, cut_off: bool = False) -> Parts:
    """Texts in parts of at most `limit` subwords. Empty texts have no parts."""
    cleaned = vocabulary.clean_all(texts)
    every = vocabulary.encode_clean(cleaned)
    if _all_whole(cleaned, every, vocabulary, limit):
        return Parts(cleaned, list(range(len(cleaned))), every)
    found, rest = Parts([], [], []), []
    for i, (text, ids) in enumerate(zip(cleaned, every, strict=True)):
        tag = vocabulary.language_tag(text)  # every part needs it
        body = text[len(tag) :]
        if not body.strip():
            continue
        whole = body == body.strip() and len(vocabulary.special.before) + len(ids) + 1 <= limit
        own = [text] if whole else _parts(tag, body, vocabulary, limit, cut_off)
        rest += [] if whole else range(len(found.texts), len(found.texts) + len(own))
        found.texts.extend(own)
        found.owners.extend([i] * len(own))
        found.ids.extend([ids] * len(own))
    for part, ids in zip(rest, vocabulary.encode([found.texts[part] for part in rest]), strict=True):
        found.ids[part] = ids
    return found


def _all_whole(texts: list[str], ids: list[list[int]], vocabulary: Vocabulary, limit: int) -> bool:
    """Whether each text is one part, as nearly all are: none is empty, too long, or has a tag before it."""
    most = limit - len(vocabulary.special.before) - 1
    if not all(texts) or max(map(len, ids), default=0) > most or any(map(vocabulary.language_tag, texts)):
        return False
    return [text.strip() for text in texts] == texts


def _parts(tag: str, text: str, vocabulary: Vocabulary, limit: int, cut_off: bool) -> list[str]:
    def size(part: str) -> int:
        return source_size(tag + part, vocabulary)

    if cut_off:
        text = cut(text, size, limit)
    return [tag + part for part in split(text, size, limit)] if text.strip() else []


def source_size(text: str, vocabulary: Vocabulary) -> int:
    """The number of positions a text takes, including special tokens."""
    return len(vocabulary.special.before) + len(vocabulary.encode([text])[0]) + 1


def split(text: str, size: Size, limit: int) -> list[str]:
    """Parts of at most `limit` by `size`, verbatim: sentences, else clauses, words, characters."""
    parts = _split(text, lambda part: size(part.strip()), limit, BOUNDARIES)
    return [part.strip() for part in parts if part.strip()]


def _split(text: str, size: Size, limit: int, boundaries: list[str]) -> list[str]:
    """Each part keeps the space after it: joined they give the text."""
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
    """The longest prefix of a text in whole words, of at most `limit` subwords; in characters if one word has more."""
    if size(text) <= limit:
        return text
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    if not ends or size(text[: ends[0]]) > limit:
        ends = list(range(1, len(text) + 1))
    fits = bisect_right(ends, limit, key=lambda end: size(text[:end]))
    return text[: ends[max(1, fits) - 1]]
