"""The blocks of a Markdown text: paragraphs, items, headings and cells, and what stands around them and stays."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from heed.text.layout import has_words

_FRONT = re.compile(r"\A\ufeff?(?:---|\+\+\+)[ \t]*\r?\n.*?^(?:---|\+\+\+|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_LEAD = re.compile(
    r"[ \t]*(?:(?:>|#{1,6}(?=[ \t])|[-*+:](?=[ \t])|\d{1,9}[.)](?=[ \t])|\[[ xX]\](?=[ \t])|\[\^[^\[\]\s]+\]:(?=[ \t]))[ \t]*)*"
)
_ITEM = re.compile(r"(?:^|[ \t>])(?:[-*+]|\d{1,9}[.)]|\[\^[^\[\]\s]+\]:)[ \t]*(?:\[[ xX]\][ \t]*)?$")
_NUMBERED = re.compile(r"(?:[2-9]|\d{2,9})[.)][ \t]*$")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})")
_REFERENCE = re.compile(r"[ \t]*\[(?!\^)[^\[\]]+\]:\s")
_RAW = re.compile(r"[ \t]*<(pre|script|style|textarea)(?=[\s>])", re.I)
_HTML = re.compile(
    r"[ \t]*</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    r"fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|"
    r"noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?=[\s/>])",
    re.I,
)
_TAG = re.compile(r"[ \t]*</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>\s*")
_PIPE = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?\s*")
_CLOSING = re.compile(r"(?<![ \t])[ \t]+#+\s*$")


class Block(NamedTuple):
    """Lines that belong together. `leads` are what stood before each line but the first and is no part of it."""

    text: str
    leads: tuple[str, ...] = ()
    kind: Literal["text", "cell", "html"] = "text"


def parts(text: str) -> Iterator[str | Block]:
    """What stays as it is, and blocks of text. Together they are the text."""
    if front := _FRONT.match(text):
        yield front[0]
        text = text[front.end() :]
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
    reader = _Reader(_rows(lines))
    for number, line in enumerate(lines):
        yield from reader.take(number, line)
    yield from reader.flush()


def _rows(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines of tables: a line of dashes, the one before it, and all after it until there is no more."""
    found: set[int] = set()
    for number, line in enumerate(lines):
        if number - 1 in found and line.strip():
            found.add(number)
        elif number and "|" in line and _DASHES.fullmatch(line) and "|" in lines[number - 1]:
            found |= {number - 1, number}
    return found


class _Reader:
    def __init__(self, rows: set[int]):
        self.rows = rows
        self.lines: list[str] = []  # of the paragraph that is being read
        self.leads: list[str] = []
        self.fence = self.quoted = ""
        self.until = ""  # what ends a part of HTML that is left alone
        self.columns: list[int] = []  # where the texts of the items around begin
        self.in_html = False

    def flush(self) -> Iterator[Block]:
        if self.lines:
            yield Block("".join(self.lines), tuple(self.leads[1:]), "html" if self.in_html else "text")
        self.lines, self.leads, self.in_html = [], [], False

    def take(self, number: int, line: str) -> Iterator[str | Block]:
        """What a line ends, and what it is, unless it is yet to be seen."""
        quote = _QUOTE.match(line)
        if self.fence and not (self.quoted and not quote):
            inner = line[quote.end() :] if quote and self.quoted else line
            closes = inner.strip().startswith(self.fence) and not inner.strip().strip(self.fence[0])
            self.fence = "" if closes else self.fence
            yield line
        elif self.until:
            self.until = "" if self.until in line.lower() else self.until
            yield line
        elif self.in_html and line.strip() and not _RAW.match(line):
            self.lines.append(line)
            self.leads.append("")
        else:
            self.fence = ""
            yield from self._take(number, line)

    def _take(self, number: int, line: str) -> Iterator[str | Block]:
        indent = _width(line[: len(line) - len(line.lstrip(" \t"))])
        lead = _LEAD.match(line)[0]
        if self.lines and not self.columns and not any(self.leads) and _NUMBERED.search(lead):
            lead = ""  # a line that begins with a number, in a paragraph
        marks = lead.strip()
        if line.strip() and (marks or not self.lines):
            while self.columns and indent < self.columns[-1]:
                self.columns.pop()
        code = not self.lines and indent >= 4 + (self.columns[-1] if self.columns else 0)
        if not line.strip() or code:
            yield from self.flush()
            yield line
        elif self._goes_on(marks, line[len(lead) :]):
            self.lines.append(line[len(lead) :] if marks else line)
            self.leads.append(lead if marks else "")
        elif self.lines and not marks and not self._is_other(number, line):
            self.lines.append(line)
            self.leads.append("")
        else:
            yield from self.flush()
            yield from self._begin(number, lead if marks else "", line)

    def _goes_on(self, marks: str, rest: str) -> bool:
        """Whether a line of a quotation goes on with the one before."""
        same = bool(self.leads) and marks != "" and set(marks) <= {">", " "} and self.leads[-1].strip() == marks
        return same and not self._is_other(-1, rest)

    def _is_other(self, number: int, line: str) -> bool:
        """Whether a line is no line of a paragraph."""
        signs = not any(char.isalnum() for char in line)
        return bool(
            signs or number in self.rows or _FENCE.match(line.strip()) or _RAW.match(line) or _HTML.match(line)
            or _REFERENCE.match(line) or _is_row(line) or _comment(line)
        )  # fmt: skip

    def _begin(self, number: int, lead: str, line: str) -> Iterator[str | Block]:
        """The first line of something."""
        rest, raw = line[len(lead) :], _RAW.match(line[len(lead) :])
        fence, marks = _FENCE.match(rest.strip()), lead.strip()
        if _ITEM.search(lead):
            self.columns.append(_width(lead) if rest.strip() else _width(lead.rstrip()) + 1)
        if lead:
            yield lead
        if fence:
            self.fence, self.quoted = fence[1] or fence[2], ">" if ">" in lead else ""
            yield rest
        elif raw and f"</{raw[1].lower()}>" not in rest.lower():
            self.until = f"</{raw[1].lower()}>"
            yield rest
        elif _comment(rest):
            self.until = "-->"
            yield rest
        elif raw or _REFERENCE.match(rest) or not has_words(rest):
            yield rest
        elif _HTML.match(rest) or _TAG.fullmatch(rest):
            self.lines, self.leads, self.in_html = [rest], [lead], True
        elif number in self.rows or _is_row(rest):
            yield from _cells(rest)
        elif "#" in marks:
            closing = _CLOSING.search(rest)
            yield Block(rest[: closing.start()] if closing else rest)
            yield closing[0] if closing else ""
        else:
            self.lines, self.leads = [rest], [lead]


def _cells(line: str) -> Iterator[str | Block]:
    place = 0
    for match in [*_PIPE.finditer(line), None]:
        yield Block(line[place : match.start() if match else len(line)], kind="cell")
        if match:
            yield match[0]
            place = match.end()


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|") and len(_PIPE.findall(line)) > 1


def _comment(line: str) -> bool:
    """Whether a comment begins here that ends in another line."""
    return line.lstrip().startswith("<!--") and "-->" not in line


def _width(space: str) -> int:
    """Of what stands before a text, in columns: a tab goes to the next that is a multiple of four."""
    return len(space.expandtabs(4))
