"""Markdown: the text is translated, the markup is kept. Emphasis and links are projected by word alignment."""

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markdown_it.token import Token

from heed.text import html_tokenizer, markdown_blocks, markdown_inline, markup, projection, protect
from heed.text.inline import InlineToken, Style, Translate
from heed.text.layout import has_words

_SPECIAL = re.compile(
    r"(?<=\S)[*`]|[*`](?=\S)|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)|\\(?=[!-/:-@\[-`{-~]|\Z)|~~|<(?=[A-Za-z/!?])|\[(?=[^\[\]]*\][(\[:])"
    r"|&(?=#?\w{1,32};)|(?<=\s)#(?=#*\s*\Z)"
)
_BLOCK_START = re.compile(r"^[ \t]*(?:(?=[-+*:](?:\s|$)|#{1,6}(?:\s|$)|>|\|)|\d{1,9}(?=[.)](?:\s|$)))", re.M)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


STYLES = {
    "text": Style(escape=_escaped),
    "cell": Style(escape=lambda text: _escaped(text).replace("|", r"\|")),
    "html": markup.STYLE,
}
MAX_DEPTH = 20  # of nested emphasis and links


class MarkdownRun(NamedTuple):
    """A run of text with inline markup, the kind of its block, and the run as in the file."""

    tokens: list[InlineToken]
    kind: str
    source: str


def translate(text: str, translate: Translate, language: str | None = None) -> str:
    """Translate a Markdown text, keeping its code, links and layout."""
    blocks = markdown_blocks.split_blocks(text)
    parts = [part for block in blocks for part in ([block] if isinstance(block, str) else runs_of(block))]
    runs = [part for part in parts if not isinstance(part, str)]
    styles = [STYLES[run.kind] for run in runs]
    translations = projection.translate([run.tokens for run in runs], translate, styles, language)
    texts = iter(map(_written, runs, translations))
    return "".join(part if isinstance(part, str) else next(texts) for part in parts)


def runs_of(block: markdown_blocks.Block) -> Iterator[str | MarkdownRun]:
    """The runs of a block, separated by hard line breaks, and what is between them."""
    leads = iter(block.leads)
    if block.kind == "html":
        for part in _html_parts(block):
            yield _with_leads(part, leads) if isinstance(part, str) else _run(part, "html", leads)
        return
    run: list[InlineToken] = []
    for token in _inline_tokens(block):
        if token.name != "break":
            run.append(token)
            continue
        yield _run(run, block.kind, leads)
        yield _with_leads(token.raw, leads)
        run = []
    yield _run(run, block.kind, leads)


def _html_parts(block: markdown_blocks.Block) -> Iterator[str | list[InlineToken]]:
    """The parts of an HTML block; instructions, declarations and CDATA are kept."""
    if block.text.startswith("<?") or (block.text.startswith("<!") and not block.text.startswith("<!--")):
        yield block.text
        return
    parts, runs = markup.split_runs(html_tokenizer.tokenize(block.text))
    remaining, quoted = iter(runs), any(lead.strip() for lead in block.leads)
    for part in parts:
        run = next(remaining) if part is None else []
        if quoted and run:  # a line of a quotation has its marker: what is translated has no line ends
            first, last = run[0], run[-1]
            spaces = first.raw[: len(first.raw) - len(first.raw.lstrip())] if first.kind == "text" else ""
            yield spaces
            run[0] = first._replace(raw=first.raw[len(spaces) :], text=first.text.lstrip() if spaces else first.text)
            last = run[-1]
            spaces = last.raw[len(last.raw.rstrip()) :] if last.kind == "text" else ""
            run[-1] = last._replace(
                raw=last.raw[: len(last.raw) - len(spaces)], text=last.text.rstrip() if spaces else last.text
            )
            yield [token._replace(text=token.text.replace("\n", " ")) for token in run]
            yield spaces
        else:
            yield run or part


def _run(tokens: Sequence[InlineToken], kind: str, leads: Iterator[str]) -> str | MarkdownRun:
    """A run with the markers of its lines; a string if there is nothing to translate."""
    translatable = any(token.kind == "text" and has_words(token.text) for token in tokens)
    placed = [token._replace(raw=_with_leads(token.raw, leads)) for token in tokens]
    source = "".join(token.raw for token in placed)
    if not translatable:
        return source
    return MarkdownRun([_with_reference(token) for token in placed], kind, source)


def _with_reference(token: InlineToken) -> InlineToken:
    """The end of a reference link that names its reference, since the link text changes."""
    return token._replace(raw=f"][{token.text}]", text="") if token.kind == "close" and token.text else token


def _with_leads(raw: str, leads: Iterator[str]) -> str:
    """Restore the markers before lines."""
    first, *others = raw.split("\n")
    return "".join([first, *(next(leads, "\n") + other for other in others)])


def _written(run: MarkdownRun, translation: str) -> str:
    """A translation in which nothing begins a list item or a heading."""
    if translation == "".join(token.raw for token in run.tokens):
        return run.source
    return translation if run.kind == "html" else _BLOCK_START.sub(r"\g<0>\\", translation)


def _inline_tokens(block: markdown_blocks.Block) -> list[InlineToken]:
    """A block as inline tokens; one with the name "break" is a hard line break."""
    text, tokens, position, opened, unclosed = block.text, [], 0, [], set()
    for mark in markdown_inline.marks(text, block.references):
        if mark.start < position:
            continue
        tokens += _plain_tokens(text[position : mark.start])
        raw, kind, position = text[mark.start : mark.end], mark.token.type, mark.end
        if kind == "html_inline" and (end := _code_end(text, mark, unclosed)):
            position = end
            raw = text[mark.start : end]
            tokens.append(InlineToken("opaque", raw, _words(raw)))
        elif kind.endswith(("_open", "_close")) and mark.token.info != "auto":
            tokens.append(_pair(mark, raw, text, opened))
        else:
            tokens.append(_single(mark.token, raw))
    return tokens + _plain_tokens(text[position:])


def _pair(mark: markdown_inline.Mark, raw: str, text: str, opened: list[int]) -> InlineToken:
    """The beginning or end of emphasis or a link. Beyond a depth, marks are kept in order, but not projected."""
    kind = mark.token.tag
    if mark.token.nesting > 0:
        opened.append(mark.end)
        return InlineToken("open", raw, name=kind if len(opened) <= MAX_DEPTH else f"{kind} {mark.start}")
    name = kind if len(opened) <= MAX_DEPTH else f"{kind} {mark.start}"
    start = opened.pop() if opened else 0
    label = text[start : mark.start] if kind == "a" and raw in ("]", "][]") else ""
    return InlineToken("close", raw, label, name)


def _single(token: Token, raw: str) -> InlineToken:
    if token.type == "text_special":
        return InlineToken("text", raw, token.content)
    if token.type == "code_inline":
        return InlineToken("opaque", raw, raw.strip("` "))
    if token.type == "link_open":  # an address in angle brackets
        return InlineToken("opaque", raw, raw[1:-1])
    if token.type == "hardbreak":
        return InlineToken("point", raw, name="break")
    return _html_tag(raw) if token.type == "html_inline" else InlineToken("point", raw)


def _code_end(text: str, mark: markdown_inline.Mark, unclosed: set[str]) -> int:
    """The end of an element such as <kbd>, whose words are not translated; 0 if it is not one."""
    found = re.match(r"<([A-Za-z]+)", text[mark.start : mark.end])
    name = found[1].lower() if found else ""
    if name not in markup.CODE - unclosed:
        return 0
    end = re.compile(rf"</{name}\s*>", re.I).search(text, mark.end)
    unclosed |= set() if end else {name}
    return end.end() if end else 0


def _words(raw: str) -> str:
    """The text of an element."""
    page = html_tokenizer.tokenize(raw)
    return " ".join(html.unescape("".join(token.raw for token in page if token.kind == "text")).split())


def _html_tag(raw: str) -> InlineToken:
    name = (re.match(r"</?([\w-]+)", raw) or ["", ""])[1].lower()
    if not name or name in html_tokenizer.VOID or raw.endswith("/>"):
        return InlineToken("point", raw)
    return InlineToken("close" if raw.startswith("</") else "open", raw, name=f"<{name}")


def _plain_tokens(text: str) -> list[InlineToken]:
    """Text, with its protected spans as opaque tokens."""
    return [InlineToken(kind, part, part) for kind, part in protect.pieces(text)]
