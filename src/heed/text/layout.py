"""A text as its layout and the sentences in it: translate these, fill them in, and the rest is as it was.

Blank lines, list marks, tabs, spaces and the ends of lines are layout. A paragraph whose lines were only wrapped is put together
before it is cut into sentences, and wrapped again at about the same places.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from heed.text import sentences

Translate = Callable[[list[str]], Sequence[str]]
HIDDEN = (
    "\ufeff\u200b\u200e\u200f\u2060"  # signs without a shape, which are no part of a sentence that they begin or end
)
WRAPPED = 45  # columns of a line that was, perhaps, cut for its length
ENDS = tuple(sentences.STOPS + sentences.CLOSING + ":;")
_MARKS = re.compile(
    r"(?:[-*+•·‧∙◦▪▫■□●○▶※–—](?=\s|$)|#{1,6}(?=\s|$)|\d{1,3}[.)](?=\s|$)|\(\d{1,3}\)|[a-z][.)](?=\s|$)|\([a-z]\)|[A-Z]\)(?=\s|$)"
    r"|[가나다라마바사아자차카타파하][.)](?=\s|$)|[①-⑳㉠-㉻]|\[[ xX]?\](?=\s|$)|>|[\s" + HIDDEN + "]+)*"
)
_ENDS_OF_LINES = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_TABS = re.compile(r"\t[\t ]*")


class Break(NamedTuple):
    """Where a line ended within a sentence: there is `joint` now, and there was `raw`."""

    place: int
    joint: str
    raw: str


class Segment(NamedTuple):
    """A sentence, with the ends of lines that were taken out of it."""

    text: str
    breaks: tuple[Break, ...] = ()


class Skeleton(NamedTuple):
    """What is not translated: a text before each segment, and one after the last."""

    between: tuple[str, ...]
    segments: tuple[Segment, ...]

    @property
    def texts(self) -> list[str]:
        return [segment.text for segment in self.segments]


class Line(NamedTuple):
    lead: str
    content: str
    tail: str


def translate(text: str, translate: Translate, language: str | None = None) -> str:
    """A text in its own layout, sentence by sentence. `language` is that of the text."""
    skeleton = take_apart(text, language)
    return fill(skeleton, translate(skeleton.texts) if skeleton.segments else [])


def take_apart(text: str, language: str | None = None) -> Skeleton:
    """The layout of a text, and the sentences to be translated; what has no letters is layout."""
    between: list[list[str]] = [[]]
    segments = []
    for piece in _pieces(text, language):
        if isinstance(piece, Segment):
            segments.append(piece)
            between.append([])
        else:
            between[-1].append(piece)
    return Skeleton(tuple("".join(parts) for parts in between), tuple(segments))


def fill(skeleton: Skeleton, translations: Sequence[str]) -> str:
    """The text again, with other sentences."""
    if len(translations) != len(skeleton.segments):
        raise ValueError(f"{len(translations)} translations for {len(skeleton.segments)} sentences: each needs one")
    parts = [skeleton.between[0]]
    for segment, said, after in zip(skeleton.segments, translations, skeleton.between[1:], strict=True):
        parts += [broken(_ENDS_OF_LINES.sub(" ", said), segment), after]
    return "".join(parts)


def broken(said: str, segment: Segment) -> str:
    """A translation with the ends of lines of its segment."""
    parts, place = [], 0
    for start, end, raw in breaks_in(said, segment):
        parts += [said[place:start], raw]
        place = end
    return "".join([*parts, said[place:]])


def breaks_in(said: str, segment: Segment) -> list[tuple[int, int, str]]:
    """What of a translation goes for each end of a line, as far along as that was; where there is no room, it is left out."""
    room = [i for i in range(1, len(said)) if said[i] == " " or _joins(said[i - 1], said[i])] if segment.breaks else []
    found, free = [], 0
    for own in segment.breaks:
        wanted = round(own.place * len(said) / len(segment.text))
        after = max(free, bisect_left(room, wanted))
        near = [i for i in (after - 1, after) if free <= i < len(room)]
        if near:
            chosen = min(near, key=lambda i: abs(room[i] - wanted))
            found.append((room[chosen], room[chosen] + (said[room[chosen]] == " "), own.raw))
            free = chosen + 1
    return found


def has_words(text: str) -> bool:
    """Whether there is anything to translate."""
    return any(char.isalpha() for char in text)


def _pieces(text: str, language: str | None) -> Iterator[str | Segment]:
    for block in _blocks([_line(raw) for raw in text.splitlines(keepends=True)]):
        yield block[0].lead
        if len(block) == 1 and not has_words(block[0].content):
            yield block[0].content
        elif len(block) == 1 and "\t" in block[0].content:
            yield from _cells(block[0].content, language)
        else:
            yield from _sentences(*_joined(block), language)
        yield block[-1].tail


def _line(raw: str) -> Line:
    lead = _MARKS.match(raw)[0]
    rest = raw[len(lead) :]
    content, whole = rest.rstrip(), rest
    while content != whole:
        content, whole = content.rstrip(HIDDEN).rstrip(), content
    return Line(lead, content, rest[len(content) :])


def _blocks(lines: list[Line]) -> Iterator[list[Line]]:
    """Lines one by one, but those that were wrapped together."""
    paragraph: list[Line] = []
    for line in [*lines, Line("", "", "")]:
        if line.content:
            paragraph.append(line)
            continue
        widest = max((_width(one.content) for one in paragraph), default=0)
        block = paragraph[:1]
        for before, after in pairwise(paragraph):
            if _goes_on(before, after, widest):
                block.append(after)
            else:
                yield block
                block = [after]
        if block:
            yield block
        if line.lead or line.tail:
            yield [line]
        paragraph = []


def _goes_on(before: Line, after: Line, widest: int) -> bool:
    """Whether a line was cut for its length alone, and the next goes on with it."""
    marks = after.lead.strip()
    if (marks and (set(marks) != {">"} or marks != before.lead.strip())) or "\t" in before.content + after.content:
        return False
    if before.content.endswith(ENDS) or not before.tail.strip(" ") or before.lead.lstrip().startswith("#"):
        return False
    wide = _width(before.content)
    return after.content[0].islower() or (wide >= WRAPPED and 4 * wide >= 3 * widest)


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _joined(block: list[Line]) -> tuple[str, list[Break]]:
    """Lines as one text, and where they were cut."""
    parts, breaks, length = [block[0].content], [], len(block[0].content)
    for before, after in pairwise(block):
        joint = "" if _joins(before.content[-1], after.content[0]) else " "
        breaks.append(Break(length, joint, before.tail + after.lead))
        parts += [joint, after.content]
        length += len(joint) + len(after.content)
    return "".join(parts), breaks


def _joins(last: str, first: str) -> bool:
    """Whether there was nothing between two characters before a line was cut there."""
    asian = all("\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" for char in (last, first))
    return asian or (last in "-\u00ad" and first.islower())


def _cells(content: str, language: str | None) -> Iterator[str | Segment]:
    place = 0
    for match in [*_TABS.finditer(content), None]:
        cell = content[place : match.start() if match else len(content)]
        yield from _sentences(cell, [], language)
        if match:
            yield match[0]
            place = match.end()


def _sentences(text: str, breaks: list[Break], language: str | None) -> Iterator[str | Segment]:
    place = 0
    for start, end in sentences.spans(text, language):
        yield _with_breaks(text, breaks, place, start)
        own = [one for one in _near(breaks, start, end) if start < one.place and one.place + len(one.joint) < end]
        sentence = text[start:end]
        if has_words(sentence):
            yield Segment(sentence, tuple(one._replace(place=one.place - start) for one in own))
        else:
            yield _with_breaks(text, breaks, start, end)
        place = end
    yield _with_breaks(text, breaks, place, len(text))


def _near(breaks: list[Break], start: int, end: int) -> list[Break]:
    """Those from a place to another."""
    low, high = (
        side(breaks, place, key=lambda one: one.place) for side, place in ((bisect_left, start), (bisect_right, end))
    )
    return breaks[low:high]


def _with_breaks(text: str, breaks: list[Break], start: int, end: int) -> str:
    """A part of a text as it stood: with the ends of lines that are in it."""
    found = ""
    for one in _near(breaks, start, end):
        if start <= one.place and one.place + len(one.joint) <= end and not (one.place == start == end and one.joint):
            found += text[start : one.place] + one.raw
            start = one.place + len(one.joint)
    return found + text[start:end]
