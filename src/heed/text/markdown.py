"""Markdown: the text is translated, the markup stays. Emphasis and links are projected by word alignment."""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from heed.text import html_tokenizer, markdown_blocks, markup, projection, protect
from heed.text.inline import InlineToken, Style, Translate
from heed.text.layout import has_words

_HARD_BREAK = re.compile(r"((?:(?<! ) {2,}|\\)(?=\r?\n|\Z)|\r?\n(?=\r?\n|\Z))")
_INLINE = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>`+)"  # up to its closing backticks, which _match_end finds
    r"|(?P<image>!\[(?:[^\]!]|!(?!\[))*\](?:\([^()\s]*(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\]))"
    r"|(?P<footnote>\[\^[^\[\]\s]+\])"
    r"|\[(?P<text>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])+)\](?P<link>\((?:[^()\s]|\([^()\s]*\))*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\)|\[[^\[\]]*\])"
    r"|(?P<autolink><(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>]+)>)"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<comment><!--)|(?P<tag></?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>)"
    r"|\*\*(?=\S)(?P<strong>(?:[^*\\]|\\.|\*(?!\*)|\*(?=\*\*(?!\*)))+?)(?<=\S)\*\*(?!\*)"
    r"|(?<!\*)\*(?=[^\s*])(?P<emphasis>(?:[^*\\]|\\.|\*\*)+?)(?<=\S)\*(?!\*)"
    r"|(?<!\w)__(?=\S)(?P<low_strong>(?:[^_\\]|\\.|_(?!_))+?)(?<=\S)__(?!\w)"
    r"|(?<!\w)_(?=[^\s_])(?P<low_emphasis>(?:[^_\\]|\\.|(?<=\w)_(?=\w)|__)+?)(?<=\S)_(?!\w)"
    r"|~~(?=\S)(?P<strikethrough>(?:[^~\\]|\\.|~(?!~))+?)(?<=\S)~~",
    re.S,
)
_SPECIAL = re.compile(
    r"(?<=\S)[*`]|[*`](?=\S)|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)|\\(?=[!-/:-@\[-`{-~])|~~|<(?=[A-Za-z/!?])|\[(?=[^\[\]]*\][(\[:])"
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
DELIMITERS = {"strong": "**", "emphasis": "*", "low_strong": "__", "low_emphasis": "_", "strikethrough": "~~"}
MAX_DEPTH = 20  # of nested emphasis and links


class MarkdownRun(NamedTuple):
    """A run of text with inline markup, and the kind of its block."""

    tokens: list[InlineToken]
    kind: str


def translate(text: str, translate: Translate, language: str | None = None) -> str:
    """A Markdown text translated, with its code, links and layout as they were."""
    blocks = markdown_blocks.split_blocks(text)
    parts = [part for block in blocks for part in ([block] if isinstance(block, str) else _runs(block))]
    runs = [part for part in parts if not isinstance(part, str)]
    styles = [STYLES[run.kind] for run in runs]
    translations = projection.translate([run.tokens for run in runs], translate, styles, language)
    texts = iter(map(_escape_block_starts, runs, translations))
    return "".join(part if isinstance(part, str) else next(texts) for part in parts)


def _runs(block: markdown_blocks.Block) -> Iterator[str | MarkdownRun]:
    """The runs of a block, which hard line breaks separate."""
    if block.kind == "html":
        parts, runs = markup.split_runs(html_tokenizer.tokenize(block.text))
        remaining = iter(runs)
        yield from (part if part is not None else MarkdownRun(next(remaining), "html") for part in parts)
        return
    leads = iter(block.leads)
    for number, part in enumerate(_HARD_BREAK.split(block.text)):
        if number % 2:
            yield _with_leads(part, leads)
            continue
        tokens = _inline_tokens(part)
        translatable = any(token.kind == "text" and has_words(token.text) for token in tokens)
        tokens = [token._replace(raw=_with_leads(token.raw, leads)) for token in tokens]
        yield MarkdownRun(tokens, block.kind) if translatable else "".join(token.raw for token in tokens)


def _with_leads(raw: str, leads: Iterator[str]) -> str:
    """Lines with the markers before them again."""
    first, *others = raw.split("\n")
    return "".join([first, *(f"\n{next(leads, '')}{other}" for other in others)])


def _escape_block_starts(run: MarkdownRun, translation: str) -> str:
    """Escape what would begin a list item or a heading in a translation."""
    unchanged = translation == "".join(token.raw for token in run.tokens)
    return translation if unchanged or run.kind == "html" else _BLOCK_START.sub(r"\g<0>\\", translation)


def _inline_tokens(text: str, depth: int = 0) -> list[InlineToken]:
    tokens: list[InlineToken] = []
    code_ends, position, searched = protect.code_ends(text, lines=False), 0, 0
    while match := _INLINE.search(text, searched):
        searched, end = match.end(), _match_end(text, match, code_ends)
        if end:
            tokens += [*_plain_tokens(text[position : match.start()]), *_mark(match, text[match.start() : end], depth)]
            position = searched = end
    return tokens + _plain_tokens(text[position:])


def _match_end(text: str, match: re.Match, code_ends: dict[int, int]) -> int:
    """The end of a match with its content; 0 if it is never closed, and so is plain text."""
    if match["code"]:
        return code_ends.get(match.start(), 0)
    if match["comment"]:
        return protect.comment_end(text, match.end())
    return match.end()


def _mark(match: re.Match, raw: str, depth: int) -> list[InlineToken]:
    if match["escape"]:
        return [InlineToken("text", raw, raw[1])]
    if match["code"]:
        return [InlineToken("opaque", raw, raw.strip("` "))]
    if match["entity"]:
        return [InlineToken("text", raw, html.unescape(raw))]
    if match["autolink"]:
        return [InlineToken("opaque", raw, raw[1:-1])]
    if match["image"] or match["footnote"] or match["comment"]:
        return [InlineToken("point", raw)]
    if match["tag"]:
        return [_html_tag(raw)]
    if match["link"]:
        opening, content, closing = "[", match["text"], f"]{match['link']}"
    else:
        kind, opening = next((kind, delimiter) for kind, delimiter in DELIMITERS.items() if match[kind])
        content, closing = match[kind], opening
    name = f"{opening}{depth}"
    inner = _inline_tokens(content, depth + 1) if depth < MAX_DEPTH else _plain_tokens(content)
    return [InlineToken("open", opening, name=name), *inner, InlineToken("close", closing, name=name)]


def _html_tag(raw: str) -> InlineToken:
    name = (re.match(r"</?([\w-]+)", raw) or ["", ""])[1].lower()
    if not name or name in html_tokenizer.VOID or raw.endswith("/>"):
        return InlineToken("point", raw)
    return InlineToken("close" if raw.startswith("</") else "open", raw, name=f"<{name}")


def _plain_tokens(text: str) -> list[InlineToken]:
    """Text, with its protected spans as opaque tokens."""
    return [InlineToken(kind, part, part) for kind, part in protect.pieces(text)]
