"""HTML as tags, comments and the text between them, tokenized as browsers do (WHATWG HTML standard, 13.2.5).

It runs in linear time on any page. Python's own parser takes hours for some pages of a megabyte.
"""

import html
import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
RAW = frozenset(["script", "style", "xmp", "iframe", "noembed", "noframes"])  # content without tags, not shown as text
ESCAPABLE = frozenset(["title", "textarea"])  # content without tags, shown as text
_MARKUP_START = re.compile(r"<(?:[A-Za-z!?]|/(?=.))", re.S)
_NAME = re.compile(r"[^\t\n\f\r />]+")
_SEPARATORS = re.compile(r"[\t\n\f\r /]*")
_ATTRIBUTE = re.compile(r"=?[^\t\n\f\r />=]*")
_EQUALS = re.compile(r"[\t\n\f\r ]*=[\t\n\f\r ]*")
_UNQUOTED = re.compile(r"[^\t\n\f\r >]*")
_COMMENT_END = re.compile(r"--!?>")


class AttributeValue(NamedTuple):
    """The unescaped value of an attribute, its span in the tag, and the quotation mark around it, if any."""

    text: str
    start: int
    end: int
    quote: str


class HtmlToken(NamedTuple):
    """A part of a page: "text", a tag ("open", "close") or something "other". All `raw` together are the page."""

    kind: str
    raw: str
    name: str = ""
    attributes: dict[str, AttributeValue] = {}  # noqa: RUF012 (never changed)

    def attribute(self, name: str) -> str:
        """The text of an attribute, or ""."""
        value = self.attributes.get(name)
        return value.text if value else ""


def tokenize(page: str) -> list[HtmlToken]:
    """The tokens of a page, in order and without gaps."""
    found: list[HtmlToken] = []
    nonempty = (token for token in _Tokenizer(page).tokens() if token.raw)
    for kind, group in groupby(nonempty, key=lambda token: token.kind):  # adjacent texts are one token
        tokens = list(group)
        found += [HtmlToken("text", "".join(token.raw for token in tokens))] if kind == "text" else tokens
    return found


class _Tokenizer:
    def __init__(self, page: str):
        self.page = page
        self.last_tag_end = page.rfind(">")
        self.last_cdata_end = page.rfind("]]>")
        self.unclosed: set[str] = set()  # elements that are not closed in the rest of the page

    def tokens(self) -> Iterator[HtmlToken]:
        position = 0
        while position < len(self.page):
            found = _MARKUP_START.search(self.page, position)
            start = found.start() if found else len(self.page)
            if start > self.last_tag_end and self.page[start + 1 : start + 2] not in ("!", "?"):  # no tag ends any more
                start = len(self.page)
            yield HtmlToken("text", self.page[position:start])
            if start == len(self.page):
                return
            token = self._markup(start)
            yield token
            position = start + len(token.raw)
            if token.kind == "open" and token.name in RAW | ESCAPABLE:
                end = self._raw_content_end(token.name, position)
                yield HtmlToken("other" if token.name in RAW else "text", self.page[position:end])
                position = end

    def _markup(self, start: int) -> HtmlToken:
        """The token that begins with the < at `start`."""
        page, after = self.page, self.page[start + 1]
        if page.startswith("<!--", start):
            end = _COMMENT_END.search(page, start + 4 - 2 * page.startswith((">", "->"), start + 4))
            return HtmlToken("other", page[start : end.end() if end else len(page)], "!")
        if page.startswith("<![CDATA[", start) and self.last_cdata_end > start:
            return HtmlToken("other", page[start : page.index("]]>", start) + 3])
        name = _NAME.match(page, start + (2 if after == "/" else 1))
        if after in "!?" or name is None or not (name[0][0].isascii() and name[0][0].isalpha()):
            return HtmlToken("other", page[start : page.find(">", start) + 1 or len(page)])
        return self._tag(start, name, closes=after == "/")

    def _tag(self, start: int, match: re.Match, closes: bool) -> HtmlToken:
        page, position, attributes = self.page, match.end(), {}
        while True:
            separators = _SEPARATORS.match(page, position)
            position = separators.end()
            if position >= len(page):  # an unclosed quotation mark: browsers drop the rest of the page, too
                return HtmlToken("other", page[start:])
            if page[position] == ">":
                break
            attribute = _ATTRIBUTE.match(page, position)
            value, position = self._value(start, attribute.end())
            if value:
                attributes.setdefault(attribute[0].lower(), value)
        raw, name = page[start : position + 1], match[0].lower()
        if closes:
            return HtmlToken("close", raw, name)
        self_closed = separators[0].endswith("/") and name not in VOID
        return HtmlToken("other" if self_closed else "open", raw, name, attributes)

    def _value(self, tag_start: int, position: int) -> tuple[AttributeValue | None, int]:
        """The value of the attribute whose name ends at `position`, and where the value ends."""
        page, equals = self.page, _EQUALS.match(self.page, position)
        if equals is None:
            return None, position
        start = equals.end()
        quote = page[start : start + 1]
        if quote in ('"', "'"):
            end = page.find(quote, start + 1)
            if end < 0:
                return None, len(page)
            text, end = page[start + 1 : end], end + 1
        else:
            quote, end = "", _UNQUOTED.match(page, start).end()
            text = page[start:end]
        return AttributeValue(html.unescape(text), start - tag_start, end - tag_start, quote), end

    def _raw_content_end(self, name: str, start: int) -> int:
        """The end of content without tags; never closed, RAW runs to the end of the page and ESCAPABLE is empty."""
        if name not in self.unclosed:
            if end := re.compile(rf"</{name}(?=[\t\n\f\r />])", re.I).search(self.page, start):
                return end.start()
            self.unclosed.add(name)
        return len(self.page) if name in RAW else start
