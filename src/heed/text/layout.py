"""Plain text as a skeleton of layout and the sentences in it, so that only the sentences are translated.

Blank lines, list markers, tabs, spaces and line breaks are layout. Lines that were only wrapped are joined before
they are split into sentences, and wrapped again at about the same positions.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

from heed.text import sentences

Translate = Callable[[list[str]], Sequence[str]]
HIDDEN = "\ufeff\u200b\u200e\u200f\u2060"  # invisible characters, layout at the ends of a sentence
MIN_WRAPPED = 45  # columns: a shorter line was not wrapped for its length
LINE_ENDS = tuple(sentences.STOPS + sentences.CLOSING + ":;")
_PLAIN_MARKS = (
    r"[-*+•·‧∙◦▪▫■□●○▶※–—](?=\s|$)|#{1,6}(?=\s|$)|\d{1,3}[.)](?=\s|$)|\(\d{1,3}\)|[①-⑳㉠-㉻]|\[[ xX]?\](?=\s|$)|>|[\s"
    + HIDDEN
    + "]+"
)
_LETTERS = r"[a-z][.)](?=\s|$)|\([a-z]\)|[A-Z]\)(?=\s|$)|[가나다라마바사아자차카타파하][.)](?=\s|$)"
_MARKERS, _PLAIN_MARKERS = re.compile(f"(?:{_PLAIN_MARKS}|{_LETTERS})*"), re.compile(f"(?:{_PLAIN_MARKS})*")
_LINE_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_TABS = re.compile(r"(\t[\t ]*)")


class Break(NamedTuple):
    """A line break removed from a sentence: `joint` replaces it at `position`, `raw` is the original."""

    position: int
    joint: str
    raw: str


class Segment(NamedTuple):
    """A sentence, with the line breaks that were removed from it."""

    text: str
    breaks: tuple[Break, ...] = ()


class Skeleton(NamedTuple):
    """What is not translated: the text before each segment, and after the last one."""

    between: tuple[str, ...]
    segments: tuple[Segment, ...]

    @property
    def texts(self) -> list[str]:
        return [segment.text for segment in self.segments]


class Line(NamedTuple):
    """A line: indent and list marker, content, and what follows it up to the next line."""

    lead: str
    content: str
    tail: str


def translate(text: str, translate: Translate, language: str | None = None) -> str:
    """Translate a text sentence by sentence, keeping its layout. `language` is the source language."""
    skeleton = take_apart(text, language)
    return fill(skeleton, translate(skeleton.texts) if skeleton.segments else [])


def take_apart(text: str, language: str | None = None) -> Skeleton:
    """The layout of a text, and its sentences; anything without letters is layout."""
    between: list[list[str]] = [[]]
    segments = []
    for part in _parts(text, language):
        if isinstance(part, Segment):
            segments.append(part)
            between.append([])
        else:
            between[-1].append(part)
    return Skeleton(tuple("".join(parts) for parts in between), tuple(segments))


def fill(skeleton: Skeleton, translations: Sequence[str]) -> str:
    """The text with each sentence replaced by its translation."""
    if len(translations) != len(skeleton.segments):
        raise ValueError(
            f"{len(translations)} translations for {len(skeleton.segments)} sentences: the numbers must match"
        )
    parts = [skeleton.between[0]]
    for segment, translation, after in zip(skeleton.segments, translations, skeleton.between[1:], strict=True):
        line = _LINE_BREAKS.sub(" ", translation)
        parts += [replaced(line, place_breaks(line, segment)), after]
    return "".join(parts)


def replaced(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """A text with each span (start, end, replacement) replaced; the spans are in order."""
    parts, position = [], 0
    for start, end, replacement in spans:
        parts += [text[position:start], replacement]
        position = end
    return "".join([*parts, text[position:]])


def place_breaks(translation: str, segment: Segment) -> list[tuple[int, int, str]]:
    """The span of a translation that each break replaces, proportionally; a break without a gap is dropped."""
    gaps = [i for i in range(1, len(translation)) if _is_gap(translation, i)] if segment.breaks else []
    found, free = [], 0
    for line_break in segment.breaks:
        wanted = round(line_break.position * len(translation) / len(segment.text))
        after = max(free, bisect_left(gaps, wanted))
        near = [i for i in (after - 1, after) if free <= i < len(gaps)]
        if near:
            chosen = min(near, key=lambda i: abs(gaps[i] - wanted))
            found.append((gaps[chosen], gaps[chosen] + (translation[gaps[chosen]] == " "), line_break.raw))
            free = chosen + 1
    return found


def _is_gap(text: str, position: int) -> bool:
    return text[position] == " " or _needs_no_space(text[position - 1], text[position])


def has_words(text: str) -> bool:
    """Whether there is anything to translate."""
    return any(char.isalpha() for char in text)


def _parts(text: str, language: str | None) -> Iterator[str | Segment]:
    for block in _blocks(_lines(text.splitlines(keepends=True))):
        yield block[0].lead
        if len(block) == 1 and not has_words(block[0].content):
            yield block[0].content
        elif len(block) == 1 and "\t" in block[0].content:
            yield from _cells(block[0].content, language)
        else:
            yield from _sentences(*_joined(block), language)
        yield block[-1].tail


def _lines(raw: list[str]) -> list[Line]:
    """The lines of a text. A letter that is not a list marker, in its own line or the next, is a word: 가. is "Go."."""
    lines = [_line(one) for one in raw]
    for number, (line, after) in enumerate(pairwise([*lines, Line("", "", "")])):
        if not line.content and not after.content and has_words(line.lead):
            lines[number] = _line(raw[number], _PLAIN_MARKERS)
    return lines


def _line(raw: str, markers: re.Pattern[str] = _MARKERS) -> Line:
    lead = markers.match(raw)[0]
    rest = raw[len(lead) :]
    content, before = rest.rstrip(), rest
    while content != before:
        content, before = content.rstrip(HIDDEN).rstrip(), content
    return Line(lead, content, rest[len(content) :])


def _blocks(lines: list[Line]) -> Iterator[list[Line]]:
    """Each line separately, but wrapped lines together."""
    paragraph: list[Line] = []
    for line in [*lines, Line("", "", "")]:
        if line.content:
            paragraph.append(line)
            continue
        widest = max((_width(other.content) for other in paragraph), default=0)
        block = paragraph[:1]
        for before, after in pairwise(paragraph):
            if _continues(before, after, widest):
                block.append(after)
            else:
                yield block
                block = [after]
        if block:
            yield block
        if line.lead or line.tail:
            yield [line]
        paragraph = []


def _continues(before: Line, after: Line, widest: int) -> bool:
    """Whether a line was only wrapped for its length, and the next one continues it."""
    marker = after.lead.strip()
    if (marker and (set(marker) != {">"} or marker != before.lead.strip())) or "\t" in before.content + after.content:
        return False
    if before.content.endswith(LINE_ENDS) or not before.tail.strip(" ") or before.lead.lstrip().startswith("#"):
        return False
    width = _width(before.content)
    return after.content[0].islower() or (width >= MIN_WRAPPED and 4 * width >= 3 * widest)


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _joined(block: list[Line]) -> tuple[str, list[Break]]:
    """Wrapped lines as one text, and the breaks removed from it."""
    parts, breaks, length = [block[0].content], [], len(block[0].content)
    for before, after in pairwise(block):
        joint = "" if _needs_no_space(before.content[-1], after.content[0]) else " "
        breaks.append(Break(length, joint, before.tail + after.lead))
        parts += [joint, after.content]
        length += len(joint) + len(after.content)
    return "".join(parts), breaks


def _needs_no_space(last: str, first: str) -> bool:
    """Whether two characters on both sides of a line break are joined without a space."""
    asian = all("\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" for char in (last, first))
    return asian or (last in "-\u00ad" and first.islower())


def _cells(content: str, language: str | None) -> Iterator[str | Segment]:
    for number, part in enumerate(_TABS.split(content)):
        yield from [part] if number % 2 else _sentences(part, [], language)


def _sentences(text: str, breaks: list[Break], language: str | None) -> Iterator[str | Segment]:
    position = 0
    for start, end in sentences.spans(text, language):
        yield _with_breaks(text, breaks, position, start)
        if has_words(text[start:end]):
            within = _breaks_within(breaks, start, end)
            inside = (b for b in within if start < b.position and b.position + len(b.joint) < end)
            yield Segment(text[start:end], tuple(b._replace(position=b.position - start) for b in inside))
        else:
            yield _with_breaks(text, breaks, start, end)
        position = end
    yield _with_breaks(text, breaks, position, len(text))


def _breaks_within(breaks: list[Break], start: int, end: int) -> list[Break]:
    """The breaks from `start` to `end`, inclusive."""
    low = bisect_left(breaks, start, key=lambda b: b.position)
    return breaks[low : bisect_right(breaks, end, key=lambda b: b.position)]


def _with_breaks(text: str, breaks: list[Break], start: int, end: int) -> str:
    """Part of a joined text with its original line breaks."""
    found = ""
    for b in _breaks_within(breaks, start, end):
        if start <= b.position and b.position + len(b.joint) <= end:
            found += text[start : b.position] + b.raw
            start = b.position + len(b.joint)
    return found + text[start:end]
