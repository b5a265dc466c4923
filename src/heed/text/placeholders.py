"""Placeholders for opaque spans in a translation: one private-use character each, whatever the span holds.

Korean particles follow a span without a space ({n}개의, `f`에서), and code may contain spaces, so spans cannot be located
by words.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from heed.text import protect
from heed.text.layout import replaced

Alignment = Sequence[tuple[int, int]]  # (source word, target word)
FIRST = 0xF0000  # of Unicode's private use planes
MAX_DISTINCT = 1000  # different spans of a sentence that are searched for
MAX_ASSIGNED = 50  # occurrences of one span that are assigned by distance, and not in order
_WORDS = re.compile(r"\S+")


class Located(NamedTuple):
    """A translation with placeholders in it, its word alignment, and the span number of each placeholder."""

    text: str
    alignment: list[tuple[int, int]]
    spans: dict[str, int]


class OpaqueSpan(NamedTuple):
    """Part of the source that must not change, and its position."""

    text: str
    start: int
    end: int


def unused(texts: Sequence[str]) -> Iterator[str]:
    """Placeholder characters that are in none of the texts."""
    used = {ord(char) for text in texts for char in text if ord(char) >= FIRST}
    return (chr(code) for code in range(FIRST, 0x10FFFE) if code not in used)


def locate(
    source: str, spans: Sequence[OpaqueSpan], translation: str, alignment: Alignment, placeholders: Iterator[str]
) -> Located:
    """Replace the opaque spans in a translation; the alignment decides between occurrences, then the distance."""
    by_text: dict[str, list[int]] = {}
    for number, span in enumerate(spans):
        if span.text.strip():
            by_text.setdefault(span.text, []).append(number)
    if not by_text or len(by_text) > MAX_DISTINCT:
        return Located(translation, list(alignment), {})
    locator = _Locator(source, translation, alignment)
    taken = bytearray(len(translation))
    found: dict[int, tuple[int, int]] = {}
    for text in sorted(by_text, key=len, reverse=True):
        matches = (match.span() for match in _pattern(text).finditer(translation))
        free = [(start, end) for start, end in matches if not any(taken[start:end])]
        for number, (start, end) in locator.assign(by_text[text], [spans[i] for i in by_text[text]], free):
            taken[start:end] = b"\1" * (end - start)
            found[number] = start, end
    return locator.replace(found, spans, placeholders)


def any_lost(spans: Sequence[OpaqueSpan], translation: str) -> bool:
    """Whether a translation has a span fewer times than its source."""
    wanted = Counter(span.text for span in spans if span.text.strip())
    return len(wanted) <= MAX_DISTINCT and any(
        len(_pattern(text).findall(translation)) < times for text, times in wanted.items()
    )


def quote_as_code(source: str, spans: Sequence[OpaqueSpan]) -> str:
    """A source with its spans in backticks, unless heed.text.protect protects them anyway."""
    quoted = []
    for text, start, end in spans:
        protected = "`" in text or protect.pieces(text) == [("opaque", text)]
        quoted.append((start, end, text if protected or not text.strip() else f"`{text}`"))
    return replaced(source, quoted)


def unquote_code(translation: str, spans: Sequence[OpaqueSpan]) -> str:
    """A translation of such a source without the backticks."""
    texts = sorted({span.text for span in spans if span.text.strip()}, key=len, reverse=True)
    for text in texts[:MAX_DISTINCT]:
        translation = translation.replace(f"`{text}`", text)
    return translation


def _pattern(text: str) -> re.Pattern:
    """A span that is not part of a longer ASCII word; a Korean particle may follow."""
    before, after = (r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])")
    ascii_ends = [char.isascii() and (char.isalnum() or char == "_") for char in (text[0], text[-1])]
    return re.compile((before if ascii_ends[0] else "") + re.escape(text) + (after if ascii_ends[1] else ""))


class _Locator:
    def __init__(self, source: str, translation: str, alignment: Alignment):
        self.source, self.translation, self.alignment = source, translation, alignment
        self.source_starts = [match.start() for match in _WORDS.finditer(source)]
        self.target_starts = [match.start() for match in _WORDS.finditer(translation)]
        self.linked: dict[int, set[int]] = {}
        for source_word, target_word in alignment:
            self.linked.setdefault(source_word, set()).add(target_word)

    def assign(
        self, numbers: Sequence[int], spans: Sequence[OpaqueSpan], matches: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, tuple[int, int]]]:
        """Spans of the same text, each with its match in the translation."""
        if len(matches) == len(numbers) or max(len(matches), len(numbers)) > MAX_ASSIGNED:
            yield from zip(numbers, matches, strict=False)
            return
        left = list(matches)
        for number, span in zip(numbers, spans, strict=True):
            wanted = span.start * len(self.translation) / max(1, len(self.source))
            linked = self.linked.get(_word_at(self.source_starts, span.start), set())
            words = (_word_at(self.target_starts, start) for start, _ in left)
            ranks = [(word not in linked, abs(at - wanted), at) for word, (at, _) in zip(words, left, strict=True)]
            if ranks:
                yield number, left.pop(ranks.index(min(ranks)))

    def replace(
        self, found: dict[int, tuple[int, int]], spans: Sequence[OpaqueSpan], placeholders: Iterator[str]
    ) -> Located:
        """Put placeholders in place of the spans found, and align those with their source words."""
        parts, position, numbers = [], 0, {}
        joined: set[int] = set()  # words that become one with the word before them
        links: list[tuple[int, int]] = []
        for number, (start, end) in sorted(found.items(), key=lambda item: item[1]):
            if (placeholder := next(placeholders, "")) == "":
                break
            numbers[placeholder] = number
            parts += [self.translation[position:start], placeholder]
            position = end
            first, last = _word_at(self.target_starts, start), _word_at(self.target_starts, end - 1)
            joined |= set(range(first + 1, last + 1))
            low, high = (_word_at(self.source_starts, at) for at in (spans[number].start, spans[number].end - 1))
            links += [(word, first) for word in range(low, high + 1)]
        before = sorted(joined)
        new = [word - bisect_left(before, word + 1) for word in range(len(self.target_starts))]
        merged = {(source, new[target]) for source, target in [*self.alignment, *links] if 0 <= target < len(new)}
        return Located("".join([*parts, self.translation[position:]]), sorted(merged), numbers)


def _word_at(starts: Sequence[int], position: int) -> int:
    """The number of the word at a position."""
    return max(0, bisect_left(starts, position + 1) - 1)
