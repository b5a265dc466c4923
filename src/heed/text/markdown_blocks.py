"""The blocks of a Markdown text (paragraphs, headings, table cells, HTML), and what is between them and stays.

markdown-it-py, a CommonMark parser, gives the lines of each block and its content; this module finds the content in
its lines.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from heed.text.layout import has_words

MAX_DEPTH = 100  # of nested lists and quotations; what is deeper stays as it is
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+\Z")
_FRONT_MATTER = re.compile(
    r"\A\ufeff?(?:---|\+\+\+)[ \t]*\r?\n.*?^(?:---|\+\+\+|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.S | re.M
)
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]+\]:(?=[ \t]|$)", re.M)
_TASK = re.compile(r"\A\[[ xX]\][ \t]+")
_DEFINITION = re.compile(r"\A:[ \t]+")
_LINK_DEFINITION = re.compile(r"\[(?!\^)[^\[\]]+\]:\s")
_RAW_ELEMENT = re.compile(r"^[ \t]*<(pre|script|style|textarea)(?=[\s>])", re.I | re.M)
_CLOSING = r"(?:[ \t]+#+)?[ \t]*$"


class Block(NamedTuple):
    """Lines that belong together. `leads` are what is between each two of them: the line end, and the markers of the next.

    `references` are the link definitions of the whole text, which decide whether [words] are a link.
    """

    text: str
    leads: tuple[str, ...] = ()
    kind: Literal["text", "cell", "html"] = "text"
    references: dict[str, Any] = {}  # noqa: RUF012 (never changed)

    def with_leads(self) -> str:
        """The block as in the file."""
        first, *others = self.text.split("\n")
        return "".join([first, *(lead + line for lead, line in zip(self.leads, others, strict=True))])


def split_blocks(text: str) -> Iterator[str | Block]:
    """The blocks to translate, and the strings between them, which are kept."""
    front_matter = _FRONT_MATTER.match(text)
    begin = front_matter.end() if front_matter else 0
    position, env = 0, {}
    tokens = _PARSER.parse(text[begin:], env)
    for start, block in _Finder(text, begin).blocks(tokens):
        yield text[position:start]
        yield block._replace(references=env.get("references", {}))
        position = start + len(block.with_leads())
    yield text[position:]


class _Finder:
    """Finds the contents of tokens in the lines of a text."""

    def __init__(self, text: str, begin: int):
        self.text = text
        self.lines: list[str] = []  # as markdown-it-py sees them
        self.starts: list[int] = []
        for match in _LINE.finditer(text, begin):
            self.lines.append(match[0].replace("\0", "\ufffd"))
            self.starts.append(match.start())
        self.column = 0  # after the last cell that was found in a row

    def blocks(self, tokens: Sequence[Token]) -> Iterator[tuple[int, Block]]:
        """Each block with words, and where it begins."""
        shown_from = 0  # the line after raw HTML, such as <pre>, that is closed after a blank line
        for number, token in enumerate(tokens):
            if token.type == "tr_open":
                self.column = 0
            if token.map is None or token.type not in ("inline", "html_block") or token.map[0] < shown_from:
                continue
            opened = tokens[number - 1]
            if token.type == "html_block":
                content, shown_from = self._shown(token)
                yield from self._block(token.map[0], content.rstrip("\n"), "html")
            elif opened.type in ("th_open", "td_open"):
                yield from self._cell(token)
            elif opened.type == "heading_open" and opened.markup.startswith("#"):
                yield from self._heading(token)
            else:
                yield from self._paragraph(token, tokens[number - 2].type)

    def _source(self, number: int, column: int, size: int) -> str:
        start = self.starts[number] + column
        return self.text[start : start + size]

    def _line(self, number: int) -> str:
        return self.lines[number].rstrip("\r\n")

    def _shown(self, token: Token) -> tuple[str, int]:
        """A block of HTML up to a raw element in it that is not closed there, and the line after that element."""
        raw = _RAW_ELEMENT.search(token.content)
        if raw is None or f"</{raw[1].lower()}" in token.content[raw.end() :].lower():
            return token.content, 0
        later = range(token.map[1], len(self.lines))
        ends = (number for number in later if f"</{raw[1].lower()}" in self.lines[number].lower())
        return token.content[: raw.start()], next(ends, len(self.lines)) + 1

    def _cell(self, token: Token) -> Iterator[tuple[int, Block]]:
        number = token.map[0]
        pattern = re.escape(token.content).replace(r"\|", r"\\?\|")
        if found := re.compile(pattern).search(self._line(number), self.column):
            self.column = found.end()
            yield self._placed(number, *found.span(), "cell")

    def _heading(self, token: Token) -> Iterator[tuple[int, Block]]:
        number = token.map[0]
        if found := re.search(re.escape(token.content) + _CLOSING, self._line(number)):
            yield self._placed(number, found.start(), found.start() + len(token.content), "text")

    def _placed(self, number: int, start: int, end: int, kind: str) -> tuple[int, Block]:
        """A block that is a part of one line."""
        return self.starts[number] + start, Block(self._source(number, start, end - start), kind=kind)

    def _paragraph(self, token: Token, inside: str) -> Iterator[tuple[int, Block]]:
        """A paragraph without its task list box; the lines of a definition list one by one."""
        lines, number = [line.lstrip(" \t") for line in token.content.split("\n")], token.map[0]
        if inside == "list_item_open":
            lines[0] = _TASK.sub("", lines[0])
        elif inside == "footnote_open":  # definitions of links often follow without a blank line
            size = next((i for i, line in enumerate(lines) if i and _LINK_DEFINITION.match(line)), len(lines))
            lines = lines[:size]
        while lines:
            size = next((i for i, line in enumerate(lines) if i and _DEFINITION.match(line)), len(lines))
            first = _DEFINITION.sub("", lines[0])
            yield from self._block(number, "\n".join([first, *lines[1:size]]), "text")
            lines, number = lines[size:], number + size

    def _block(self, number: int, content: str, kind: str) -> Iterator[tuple[int, Block]]:
        """A block whose lines are the ends of the lines from `number` on; nothing if they are not."""
        texts, leads, start, end = [], [], 0, 0
        for line in (line.lstrip(" \t") for line in content.split("\n")):
            source = self._line(number)
            column = source.rfind(line)
            if column < 0 or source[column + len(line) :].strip():
                return
            if texts:
                leads.append(self.lines[number - 1][end:] + source[:column])
            else:
                start = self.starts[number] + column
            texts.append(self._source(number, column, len(line)))
            end, number = column + len(line), number + 1
        if has_words(content):
            yield start, Block("\n".join(texts), tuple(leads), kind)


def _footnote(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """A footnote, whose paragraphs are indented by four columns like those of a list item."""
    start = state.bMarks[start_line] + state.tShift[start_line]
    found = _FOOTNOTE.match(state.src, start, state.eMarks[start_line])
    if found is None or state.is_code_block(start_line):
        return False
    if silent:
        return True
    marks = state.bMarks[start_line], state.tShift[start_line], state.sCount[start_line]
    rest = state.src[found.end() : state.eMarks[start_line]]
    spaces = len(rest) - len(rest.lstrip(" \t"))
    state.push("footnote_open", "", 1)
    state.bMarks[start_line], state.tShift[start_line] = found.end(), spaces
    state.blkIndent += 4
    state.sCount[start_line] = state.blkIndent
    state.md.block.tokenize(state, start_line, end_line)
    state.blkIndent -= 4
    state.bMarks[start_line], state.tShift[start_line], state.sCount[start_line] = marks
    state.push("footnote_close", "", -1)
    return True


def _parser() -> MarkdownIt:
    """CommonMark with GitHub's tables and footnotes; blocks only."""
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_DEPTH}).enable("table").disable("inline")
    parser.block.ruler.before("reference", "footnote", _footnote, {"alt": ["paragraph", "reference"]})
    return parser


_PARSER = _parser()
