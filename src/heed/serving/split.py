"""Long texts in parts that a model allows, cut where it hurts least."""

import re
from collections.abc import Callable

CUTS = [
    r"(?<=[.!?。！？…])\s+|(?<=[。！？])",  # sentences
    r"(?<=[;:；：])\s*",
    r"(?<=[,，、])\s*",
    r"\s+",
]


def split(text: str, size: Callable[[str], int], limit: int, cuts: list[str] = CUTS) -> list[str]:
    """Parts of at most `limit` by `size`: whole sentences where they fit, then clauses, words, characters."""
    if size(text) <= limit:
        return [text]
    if not cuts:
        return _halves(text, size, limit)
    parts = []
    for piece in filter(None, re.split(cuts[0], text)):
        joined = f"{parts[-1]} {piece}" if parts else piece
        if parts and size(joined) <= limit:
            parts[-1] = joined
        else:
            parts += split(piece, size, limit, cuts[1:])
    return parts


def _halves(text: str, size: Callable[[str], int], limit: int) -> list[str]:
    """No place to cut is left: through the middle."""
    if len(text) < 2 or size(text) <= limit:
        return [text]
    middle = len(text) // 2
    return _halves(text[:middle], size, limit) + _halves(text[middle:], size, limit)
