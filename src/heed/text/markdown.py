"""Markdown: its text is translated, its signs stay. Emphasis and links go where their words went, by word alignment."""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from heed.text import blocks, markup, projection, protect, tags
from heed.text.inline import Piece, Style, Translate
from heed.text.layout import has_words

_HARD = re.compile(r"(?:(?<! ) {2,}|\\)(?=\r?\n|\Z)|\r?\n(?=\r?\n|\Z)")
_INLINE = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>`+)"  # and what they close
    r"|(?P<image>!\[(?:[^\]!]|!(?!\[))*\](?:\([^()\s]*(?:\s+\"[^\"]*\")?\)|\[[^\[\]]*\]))"
    r"|(?P<note>\[\^[^\[\]\s]+\])"
    r"|\[(?P<text>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])+)\](?P<link>\((?:[^()\s]|\([^()\s]*\))*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\)|\[[^\[\]]*\])"
    r"|(?P<auto><(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>]+)>)"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<comment><!--)|(?P<tag></?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>)"
    r"|\*\*(?=\S)(?P<two>(?:[^*\\]|\\.|\*(?!\*)|\*(?=\*\*(?!\*)))+?)(?<=\S)\*\*(?!\*)"
    r"|(?<!\*)\*(?=[^\s*])(?P<one>(?:[^*\\]|\\.|\*\*)+?)(?<=\S)\*(?!\*)"
    r"|(?<!\w)__(?=\S)(?P<low_two>(?:[^_\\]|\\.|_(?!_))+?)(?<=\S)__(?!\w)"
    r"|(?<!\w)_(?=[^\s_])(?P<low_one>(?:[^_\\]|\\.|(?<=\w)_(?=\w)|__)+?)(?<=\S)_(?!\w)"
    r"|~~(?=\S)(?P<struck>(?:[^~\\]|\\.|~(?!~))+?)(?<=\S)~~",
    re.S,
)
_SIGNS = re.compile(
    r"(?<=\S)[*`]|[*`](?=\S)|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)|\\(?=[!-/:-@\[-`{-~])|~~|<(?=[A-Za-z/!?])|\[(?=[^\[\]]*\][(\[:])"
    r"|&(?=#?\w{1,32};)|(?<=\s)#(?=#*\s*\Z)"
)
_BEGINS = re.compile(r"^[ \t]*(?:(?=[-+*:](?:\s|$)|#{1,6}(?:\s|$)|>|\|)|\d{1,9}(?=[.)](?:\s|$)))", re.M)


def _escaped(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", text)


STYLES = {
    "text": Style(escape=_escaped),
    "cell": Style(escape=lambda text: _escaped(text).replace("|", r"\|")),
    "html": markup.STYLE,
}
SIGNS = {"two": "**", "one": "*", "low_two": "__", "low_one": "_", "struck": "~~"}
DEEPEST = 20


def translate(text: str, translate: Translate, language: str | None = None) -> str:
    """A text in another language, with its code, links and layout as they were."""
    parts = [part for block in blocks.parts(text) for part in ([block] if isinstance(block, str) else _runs(block))]
    runs = [part for part in parts if not isinstance(part, str)]
    styles = [STYLES[run.kind] for run in runs]
    said = projection.translate([run.pieces for run in runs], translate, styles, language)
    texts = iter(map(_safe, runs, said))
    return "".join(part if isinstance(part, str) else next(texts) for part in parts)


class TextRun(NamedTuple):
    """Text with marks, and the kind of its block."""

    pieces: list[Piece]
    kind: str


def _runs(block: blocks.Block) -> Iterator[str | TextRun]:
    """A block; what ends a line for good parts it."""
    if block.kind == "html":
        parts, runs = markup.parts(tags.read(block.text))
        each = iter(runs)
        yield from (part if part is not None else TextRun(next(each), "html") for part in parts)
        return
    leads, place = iter(block.leads), 0
    for match in [*_HARD.finditer(block.text), None]:
        part = block.text[place : match.start() if match else len(block.text)]
        pieces = _inline(part)
        words = any(piece.kind == "text" and has_words(piece.text) for piece in pieces)
        pieces = [piece._replace(raw=_with_leads(piece.raw, leads)) for piece in pieces]
        yield TextRun(pieces, block.kind) if words else "".join(piece.raw for piece in pieces)
        if match:
            yield _with_leads(match[0], leads)
            place = match.end()


def _with_leads(raw: str, leads: Iterator[str]) -> str:
    """Lines with what stood before them again."""
    first, *others = raw.split("\n")
    return "".join([first, *(f"\n{next(leads, '')}{other}" for other in others)])


def _safe(run: TextRun, said: str) -> str:
    """What begins like an item or a heading and was none is written so that it is none."""
    same = said == "".join(piece.raw for piece in run.pieces)
    return said if same or run.kind == "html" else _BEGINS.sub(r"\g<0>\\", said)


def _inline(text: str, depth: int = 0) -> list[Piece]:
    found: list[Piece] = []
    closed, place, looked = protect.code_ends(text, lines=False), 0, 0
    while match := _INLINE.search(text, looked):
        looked, end = match.end(), _end(text, match, closed)
        if end:
            found += [*_plain(text[place : match.start()]), *_marked(match, text[match.start() : end], depth)]
            place = looked = end
    return found + _plain(text[place:])


def _end(text: str, match: re.Match, code: dict[int, int]) -> int:
    """Where what was found ends; 0: it is never closed, and is text."""
    if match["code"]:
        return code.get(match.start(), 0)
    if match["comment"]:
        return protect.comment_end(text, match.end())
    return match.end()


def _marked(match: re.Match, raw: str, depth: int) -> list[Piece]:
    if match["escape"]:
        return [Piece("text", raw, raw[1])]
    if match["code"]:
        return [Piece("opaque", raw, raw.strip("` "))]
    if match["entity"]:
        return [Piece("text", raw, html.unescape(raw))]
    if match["auto"]:
        return [Piece("opaque", raw, raw[1:-1])]
    if match["image"] or match["note"] or match["comment"]:
        return [Piece("point", raw)]
    if match["tag"]:
        return [_tag(raw)]
    if match["link"]:
        name = f"[{depth}"
        return [
            Piece("open", "[", name=name),
            *_inner(match["text"], depth),
            Piece("close", f"]{match['link']}", name=name),
        ]
    kind, sign = next((kind, sign) for kind, sign in SIGNS.items() if match[kind])
    name = f"{sign}{depth}"
    return [Piece("open", sign, name=name), *_inner(match[kind], depth), Piece("close", sign, name=name)]


def _inner(text: str, depth: int) -> list[Piece]:
    return _inline(text, depth + 1) if depth < DEEPEST else _plain(text)


def _tag(raw: str) -> Piece:
    name = (re.match(r"</?([\w-]+)", raw) or ["", ""])[1].lower()
    if not name or name in tags.VOID or raw.endswith("/>"):
        return Piece("point", raw)
    return Piece("close" if raw.startswith("</") else "open", raw, name=f"<{name}")


def _plain(text: str) -> list[Piece]:
    """Text, and what must stay in it as it is."""
    found: list[Piece] = []
    place = 0
    for piece in protect.find(text):
        found += [
            Piece("text", text[place : piece.start], text[place : piece.start]),
            Piece("opaque", piece.text, piece.text),
        ]
        place = piece.end
    return [piece for piece in [*found, Piece("text", text[place:], text[place:])] if piece.raw]
