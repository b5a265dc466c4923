"""HTML as its parts: tags, comments and the text between them, as browsers part them (WHATWG, HTML, 13.2.5: tokenization).

Each character is looked at a few times at most, whatever a page holds. Python's own parser takes hours over some pages of a megabyte.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
RAW = frozenset(["script", "style", "xmp", "iframe", "noembed", "noframes"])  # no tags in these, and no text
ESCAPABLE = frozenset(["title", "textarea"])  # no tags in these, but text
_BEGINS = re.compile(r"<(?:[A-Za-z!?]|/(?=.))", re.S)
_NAME = re.compile(r"[^\t\n\f\r />]+")
_SKIPPED = re.compile(r"[\t\n\f\r /]*")
_KEY = re.compile(r"=?[^\t\n\f\r />=]*")
_EQUALS = re.compile(r"[\t\n\f\r ]*=[\t\n\f\r ]*")
_BARE = re.compile(r"[^\t\n\f\r >]*")
_COMMENT_ENDS = re.compile(r"--!?>")


class Value(NamedTuple):
    """What an attribute says, where that stands in its tag, and the quotation mark around it, if there is one."""

    text: str
    start: int
    end: int
    quote: str


class Event(NamedTuple):
    """A part of a page: "text", a tag ("open", "close") or something "other". Together they are the page."""

    kind: str
    raw: str
    name: str = ""
    attributes: dict[str, Value] = {}  # noqa: RUF012 (never changed)

    def says(self, attribute: str) -> str:
        found = self.attributes.get(attribute)
        return found.text if found else ""


def read(page: str) -> list[Event]:
    """The parts of a page, in order and without a gap."""
    joined: list[list[Event]] = []
    for event in _Reader(page).events():
        if event.kind == "text" and joined and joined[-1][0].kind == "text":
            joined[-1].append(event)
        elif event.raw:
            joined.append([event])
    return [own[0] if len(own) == 1 else Event("text", "".join(one.raw for one in own)) for own in joined]


class _Reader:
    def __init__(self, page: str):
        self.page = page
        self.last = page.rfind(">")
        self.closed = page.rfind("]]>")
        self.unclosed: set[str] = set()  # elements that are not closed in what is left

    def events(self) -> Iterator[Event]:
        place = 0
        while place < len(self.page):
            found = _BEGINS.search(self.page, place)
            start = found.start() if found else len(self.page)
            if start > self.last and self.page[start + 1 : start + 2] not in ("!", "?"):  # no tag can end any more
                start = len(self.page)
            yield Event("text", self.page[place:start])
            if start == len(self.page):
                return
            event = self._marked(start)
            yield event
            place = start + len(event.raw)
            if event.kind == "open" and event.name in RAW | ESCAPABLE:
                end = self._inner(event.name, place)
                yield Event("other" if event.name in RAW else "text", self.page[place:end])
                place = end

    def _marked(self, start: int) -> Event:
        """What begins with <."""
        page, after = self.page, self.page[start + 1]
        if page.startswith("<!--", start):
            ends = _COMMENT_ENDS.search(page, start + 4 - 2 * page.startswith((">", "->"), start + 4))
            return Event("other", page[start : ends.end() if ends else len(page)], "!")
        if page.startswith("<![CDATA[", start) and self.closed > start:
            return Event("other", page[start : page.index("]]>", start) + 3])
        name = _NAME.match(page, start + (2 if after == "/" else 1))
        if after in "!?" or name is None or not (name[0][0].isascii() and name[0][0].isalpha()):
            return Event("other", page[start : page.find(">", start) + 1 or len(page)])
        return self._tag(start, name, closes=after == "/")

    def _tag(self, start: int, name: re.Match, closes: bool) -> Event:
        page, place, found = self.page, name.end(), {}
        while True:
            skipped = _SKIPPED.match(page, place)
            place = skipped.end()
            if place >= len(page):
                return Event(
                    "other", page[start:]
                )  # a quotation mark that is never closed: browsers show nothing either
            if page[place] == ">":
                break
            key = _KEY.match(page, place)
            value, place = self._value(start, key.end())
            if value:
                found.setdefault(key[0].lower(), value)
        raw, known = page[start : place + 1], name[0].lower()
        if closes:
            return Event("close", raw, known)
        return Event("other" if skipped[0].endswith("/") and known not in VOID else "open", raw, known, found)

    def _value(self, start: int, place: int) -> tuple[Value | None, int]:
        """What is said of an attribute that ends here, and where that ends."""
        page, equals = self.page, _EQUALS.match(self.page, place)
        if equals is None:
            return None, place
        begin = equals.end()
        quote = page[begin : begin + 1]
        if quote in ('"', "'"):
            end = page.find(quote, begin + 1)
            if end < 0:
                return None, len(page)
            text, end = page[begin + 1 : end], end + 1
        else:
            quote, end = "", _BARE.match(page, begin).end()
            text = page[begin:end]
        return Value(html.unescape(text), begin - start, end - start, quote), end

    def _inner(self, name: str, place: int) -> int:
        """Where an element that has no tags in it ends; one that is never closed has all the rest, or nothing if that is text."""
        if name not in self.unclosed:
            if ends := re.compile(rf"</{name}(?=[\t\n\f\r />])", re.I).search(self.page, place):
                return ends.start()
            self.unclosed.add(name)
        return len(self.page) if name in RAW else place
