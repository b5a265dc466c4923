"""Restore protected spans missing from a translation, next to the words aligned with their neighbours."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from heed.text.layout import replaced
from heed.text.sentences import CLOSING, OPENING, STOPS

Links = Sequence[tuple[int, int]]  # (source word, target word); words are separated by white space
_WORDS = re.compile(r"\S+")
_ENDING = f"{STOPS}{CLOSING},;:"
_NUMBER = re.compile(r"[$€£¥₩]?[0-9](?:[0-9]|[.,](?=[0-9]))*[%‰]?")


class Span(Protocol):
    """A part of a text."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def text(self) -> str: ...


def place(
    source: str,
    spans: Sequence[Span],
    translation: str,
    links: Links,
    find: Callable[[str], Sequence[Span]],
    first: int = 0,
) -> str:
    """A translation with each of `spans`, and no others that `find` finds; its `first` characters are kept. A missing
    number replaces one that is not in the source; other spans are inserted before the first word linked to theirs, or
    after the one linked to the previous word.
    """
    needed = Counter(span.text for span in spans)
    wrong = []
    for span in find(translation):
        if needed[span.text] > 0:
            needed[span.text] -= 1
        else:
            wrong.append((span.start, span.end))
    lost = []
    for span in reversed(spans):  # of several that are the same, the last are lost
        if needed[span.text] > 0:
            needed[span.text] -= 1
            lost.append(span)
    lost.reverse()
    numbers = deque(_foreign_numbers(source, translation, wrong))
    edits = [(*at, "") for at in wrong]
    inserted = []
    for span in lost:
        if numbers and _NUMBER.fullmatch(span.text):
            edits.append((*numbers.popleft(), span.text))
        else:
            inserted.append(span)
    edits += _insertions(source, inserted, translation, links, first)
    return _tidy(replaced(translation, sorted(edits, key=lambda edit: edit[:2])))


def _foreign_numbers(source: str, translation: str, wrong: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The numbers of a translation that its source does not have, outside of `wrong`, which is sorted."""
    known = {match[0] for match in _NUMBER.finditer(source)}
    found, following = [], deque(wrong)
    for match in _NUMBER.finditer(translation):
        start, end = match.span()
        while following and following[0][1] <= start:
            following.popleft()
        if match[0] not in known and (not following or end <= following[0][0]):
            found.append((start, end))
    return found


def _insertions(
    source: str, lost: Iterable[Span], translation: str, links: Links, first: int
) -> list[tuple[int, int, str]]:
    """The missing spans with their positions; those at the same position are joined in order."""
    ours, theirs = ([match.span() for match in _WORDS.finditer(text)] for text in (source, translation))
    linked: dict[int, list[int]] = {}
    for word, other in links:
        if word < len(ours) and other < len(theirs):
            linked.setdefault(word, []).append(other)
    starts, known = [start for start, _ in ours], sorted(linked)
    lowest, highest = bounds(translation)
    found: dict[int, list[str]] = {}
    for span in lost:
        word = max(0, bisect_right(starts, span.start) - 1)
        if word in linked:
            at = theirs[min(linked[word])][0]
        elif before := bisect_left(known, word):
            at = theirs[max(linked[known[before - 1]])][1]
        else:
            number = round(word * len(theirs) / max(1, len(ours)))
            at = theirs[number][0] if number < len(theirs) else len(translation)
        found.setdefault(max(first, lowest, min(at, highest)), []).append(span.text)
    return [(at, at, f" {' '.join(texts)} ") for at, texts in sorted(found.items())]


def bounds(translation: str) -> tuple[int, int]:
    """Where a span can be inserted: not before an opening quotation mark, nor after the last full stop."""
    end = len(translation.rstrip().rstrip(_ENDING))
    return min(len(translation) - len(translation.lstrip(OPENING)), end), end


def _tidy(text: str) -> str:
    """Single spaces, and none before punctuation or at the ends."""
    return re.sub(r" +(?=[.,;:!?…。！？](?:\s|$))", "", re.sub(" {2,}", " ", text)).strip()
