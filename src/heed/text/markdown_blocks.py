"""The blocks of a Markdown text (paragraphs, list items, headings, table cells), and what is between them and stays."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from heed.text.layout import has_words

_FRONT_MATTER = re.compile(
    r"\A\ufeff?(?:---|\+\+\+)[ \t]*\r?\n.*?^(?:---|\+\+\+|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.S | re.M
)
_MARKERS = re.compile(
    r"[ \t]*(?:(?:>|#{1,6}(?=[ \t])|[-*+:](?=[ \t])|\d{1,9}[.)](?=[ \t])|\[[ xX]\](?=[ \t])|\[\^[^\[\]\s]+\]:(?=[ \t]))[ \t]*)*"
)
_LIST_ITEM = re.compile(r"(?:^|[ \t>])(?:[-*+]|\d{1,9}[.)]|\[\^[^\[\]\s]+\]:)[ \t]*(?:\[[ xX]\][ \t]*)?$")
_NUMBER_FROM_TWO = re.compile(r"(?:[2-9]|\d{2,9})[.)][ \t]*$")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")
_FENCE = re.compile(r"(`{3,})[^`\n]*$|(~{3,})")
_LINK_DEFINITION = re.compile(r"[ \t]*\[(?!\^)[^\[\]]+\]:\s")
_RAW_HTML = re.compile(r"[ \t]*<(pre|script|style|textarea)(?=[\s>])", re.I)
_BLOCK_HTML = re.compile(
    r"[ \t]*</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    r"fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|"
    r"noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?=[\s/>])",
    re.I,
)
_TAG = re.compile(r"[ \t]*</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>\s*")
_PIPE = re.compile(r"(?<!\\)(\|)")
_TABLE_DELIMITER = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?\s*")
_CLOSING_HASHES = re.compile(r"(?<![ \t])[ \t]+#+\s*$")


class Block(NamedTuple):
    """Lines that belong together. `leads` are the markers before each line but the first, which are not in `text`."""

    text: str
    leads: tuple[str, ...] = ()
    kind: Literal["text", "cell", "html"] = "text"


def split_blocks(text: str) -> Iterator[str | Block]:
    """The blocks to translate, and the strings between them, which stay."""
    if front_matter := _FRONT_MATTER.match(text):
        yield front_matter[0]
        text = text[front_matter.end() :]
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
    parser = _BlockParser(_table_rows(lines))
    for number, line in enumerate(lines):
        yield from parser.feed(number, line)
    yield from parser.flush()


def _table_rows(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines of tables: the delimiter row, the header before it, and the rows up to a blank line."""
    found: set[int] = set()
    for number, line in enumerate(lines):
        if number - 1 in found and line.strip():
            found.add(number)
        elif number and "|" in line and _TABLE_DELIMITER.fullmatch(line) and "|" in lines[number - 1]:
            found |= {number - 1, number}
    return found


class _BlockParser:
    def __init__(self, table_rows: set[int]):
        self.table_rows = table_rows
        self.lines: list[str] = []  # of the current block
        self.leads: list[str] = []
        self.fence = ""  # of the current code block
        self.fence_quoted = False  # whether that is in a quotation
        self.html_end = ""  # ends the current raw HTML, which is not translated
        self.columns: list[int] = []  # where the texts of the enclosing list items begin
        self.in_html = False

    def flush(self) -> Iterator[Block]:
        if self.lines:
            yield Block("".join(self.lines), tuple(self.leads[1:]), "html" if self.in_html else "text")
        self.lines, self.leads, self.in_html = [], [], False

    def feed(self, number: int, line: str) -> Iterator[str | Block]:
        """The block that a line ends, if any, and the line itself, unless it begins or continues a block."""
        quote = _QUOTE.match(line)
        if self.fence and (quote or not self.fence_quoted):
            inner = line[quote.end() :] if quote and self.fence_quoted else line
            closes = inner.strip().startswith(self.fence) and not inner.strip().strip(self.fence[0])
            self.fence = "" if closes else self.fence
            yield line
        elif self.html_end:
            self.html_end = "" if self.html_end in line.lower() else self.html_end
            yield line
        elif self.in_html and line.strip() and not _RAW_HTML.match(line):
            self._append(line)
        else:
            self.fence = ""
            yield from self._feed_markdown(number, line)

    def _append(self, line: str, lead: str = "") -> None:
        self.lines.append(line)
        self.leads.append(lead)

    def _feed_markdown(self, number: int, line: str) -> Iterator[str | Block]:
        indent = _width(line[: len(line) - len(line.lstrip(" \t"))])
        lead = _MARKERS.match(line)[0]
        if self.lines and not self.columns and not any(self.leads) and _NUMBER_FROM_TWO.search(lead):
            lead = ""  # within a paragraph, only 1. begins a list
        markers = lead.strip()
        if line.strip() and (markers or not self.lines):
            while self.columns and indent < self.columns[-1]:
                self.columns.pop()
        indented_code = not self.lines and indent >= 4 + (self.columns[-1] if self.columns else 0)
        if not line.strip() or indented_code:
            yield from self.flush()
            yield line
        elif self._continues_quote(markers, line[len(lead) :]):
            self._append(line[len(lead) :], lead)
        elif self.lines and not markers and not self._interrupts(number, line):
            self._append(line)
        else:
            yield from self.flush()
            yield from self._begin(number, lead if markers else "", line)

    def _continues_quote(self, markers: str, rest: str) -> bool:
        """Whether a quoted line continues the paragraph of the line before."""
        same = bool(self.leads) and markers != "" and set(markers) <= {">", " "} and self.leads[-1].strip() == markers
        return same and not self._interrupts(-1, rest)

    def _interrupts(self, number: int, line: str) -> bool:
        """Whether a line cannot be part of a paragraph."""
        symbols_only = not any(char.isalnum() for char in line)
        return bool(
            symbols_only or number in self.table_rows or _FENCE.match(line.strip()) or _RAW_HTML.match(line)
            or _BLOCK_HTML.match(line) or _LINK_DEFINITION.match(line) or _is_table_row(line) or _opens_comment(line)
        )  # fmt: skip

    def _begin(self, number: int, lead: str, line: str) -> Iterator[str | Block]:
        """The first line of a block, or a line that stays."""
        rest, raw = line[len(lead) :], _RAW_HTML.match(line[len(lead) :])
        fence, markers = _FENCE.match(rest.strip()), lead.strip()
        if _LIST_ITEM.search(lead):
            self.columns.append(_width(lead) if rest.strip() else _width(lead.rstrip()) + 1)
        if lead:
            yield lead
        if fence:
            self.fence, self.fence_quoted = fence[1] or fence[2], ">" in lead
            yield rest
        elif raw and f"</{raw[1].lower()}>" not in rest.lower():
            self.html_end = f"</{raw[1].lower()}>"
            yield rest
        elif _opens_comment(rest):
            self.html_end = "-->"
            yield rest
        elif raw or _LINK_DEFINITION.match(rest) or not has_words(rest):
            yield rest
        elif _BLOCK_HTML.match(rest) or _TAG.fullmatch(rest):
            self.lines, self.leads, self.in_html = [rest], [lead], True
        elif number in self.table_rows or _is_table_row(rest):
            yield from _cells(rest)
        elif "#" in markers:
            closing = _CLOSING_HASHES.search(rest)
            yield Block(rest[: closing.start()] if closing else rest)
            yield closing[0] if closing else ""
        else:
            self.lines, self.leads = [rest], [lead]


def _cells(line: str) -> Iterator[str | Block]:
    return (part if number % 2 else Block(part, kind="cell") for number, part in enumerate(_PIPE.split(line)))


def _is_table_row(line: str) -> bool:
    return line.lstrip().startswith("|") and len(_PIPE.findall(line)) > 1


def _opens_comment(line: str) -> bool:
    """Whether a comment begins here that ends in a later line."""
    return line.lstrip().startswith("<!--") and "-->" not in line


def _width(text: str) -> int:
    """The columns of a text, with tab stops every four."""
    return len(text.expandtabs(4))
