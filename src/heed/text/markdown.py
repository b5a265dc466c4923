"""Markdown: its text is translated, its signs stay. Emphasis and links go where their words went, by word alignment."""

import re
from collections.abc import Iterator

from heed.text import projection, protect
from heed.text.inline import Piece, Style, Translate
from heed.text.layout import has_words
from heed.text.markup import VOID

_FRONT = re.compile(r"\A(?:\ufeff)?(?:---|\+\+\+)[ \t]*\r?\n.*?^(?:---|\+\+\+|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_FENCE = re.compile(r" {0,3}(?:>[ ]?)*(`{3,}|~{3,})")
_LEAD = re.compile(r"[ \t]*(?:(?:>|#{1,6}(?=[ \t])|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t])|\[[ xX]\](?=[ \t]))[ \t]*)*")
_REFERENCE = re.compile(r" {0,3}\[[^\]]+\]:\s")
_ROW = re.compile(r"(?<!\\)\|")
_HARD = re.compile(r"(?: {2,}|\\)(?=\r?\n|\Z)|\r?\n(?=\r?\n|\Z)")
_INLINE = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>(?<!`)(?P<ticks>`{1,8})(?!`).+?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<image>!\[[^\]]*\](?:\([^()\s]*(?:\s+\"[^\"]*\")?\)|\[[^\]]*\]))"
    r"|(?P<note>\[\^[^\]\s]+\])"
    r"|\[(?P<text>(?:[^\[\]\\]|\\.|\[[^\[\]]*\])+)\](?P<link>\((?:[^()\s]|\([^()\s]*\))*(?:\s+(?:\"[^\"]*\"|'[^']*'))?\)|\[[^\]]*\])"
    r"|(?P<tag><!--.{0,2000}?-->|</?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>)"
    r"|\*\*(?=\S)(?P<two>(?:[^*\\]|\\.|\*(?!\*)|\*(?=\*\*(?!\*)))+?)(?<=\S)\*\*(?!\*)"
    r"|\*(?=[^\s*])(?P<one>(?:[^*\\]|\\.|\*\*)+?)(?<=\S)\*(?!\*)"
    r"|(?<!\w)__(?=\S)(?P<low_two>(?:[^_\\]|\\.|_(?!_))+?)(?<=\S)__(?!\w)"
    r"|(?<!\w)_(?=[^\s_])(?P<low_one>(?:[^_\\]|\\.|(?<=\w)_(?=\w)|__)+?)(?<=\S)_(?!\w)"
    r"|~~(?=\S)(?P<struck>(?:[^~\\]|\\.|~(?!~))+?)(?<=\S)~~",
    re.S,
)
_SIGNS = re.compile(r"(?<=\S)[*`]|[*`](?=\S)|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)|\\(?=[!-/:-@\[-`{-~])")
STYLE = Style(escape=lambda text: _SIGNS.sub(r"\\\g<0>", text))
SIGNS = {"two": "**", "one": "*", "low_two": "__", "low_one": "_", "struck": "~~"}
DEEPEST = 20


def translate(text: str, translate: Translate, language: str | None = None) -> str:
    """A text in another language, with its code, links and layout as they were."""
    parts = list(_parts(text))
    runs = [part for part in parts if not isinstance(part, str)]
    said = iter(projection.translate(runs, translate, STYLE, language))
    return "".join(part if isinstance(part, str) else next(said) for part in parts)


def _parts(text: str) -> Iterator[str | list[Piece]]:
    """What stays as it is, and runs of text with marks."""
    front = _FRONT.match(text)
    if front:
        yield front[0]
        text = text[front.end() :]
    fence, paragraph, blank, in_list = "", [], True, False
    for line in re.findall(r"[^\n]*\n|[^\n]+\Z", text):
        lead = _LEAD.match(line)[0]
        opens = _FENCE.match(line)
        code = blank and not in_list and re.match(r" {4}|\t", line)
        if fence or opens or code or not has_words(line) or _REFERENCE.match(line) or _is_row(line) or lead.strip():
            yield from _paragraph("".join(paragraph))
            paragraph = []
        if fence or opens:
            closes = fence and opens and opens[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence or opens[1]
            yield line
        elif code or _REFERENCE.match(line) or not has_words(line):
            yield line
        elif _is_row(line):
            yield from _row(line)
        else:
            if lead.strip():
                yield lead
                line = line[len(lead) :]
                in_list = bool(re.search(r"[-*+]|\d", lead))
            paragraph.append(line)
            if lead.lstrip().startswith("#"):
                yield from _paragraph("".join(paragraph))
                paragraph = []
        blank = not line.strip()
        in_list = in_list and (blank or bool(paragraph) or line.startswith((" ", "\t")))
    yield from _paragraph("".join(paragraph))


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|") and len(_ROW.findall(line)) > 1


def _row(line: str) -> Iterator[str | list[Piece]]:
    """The cells of a table."""
    place = 0
    for match in [*_ROW.finditer(line), None]:
        yield from _paragraph(line[place : match.start() if match else len(line)])
        if match:
            yield match[0]
            place = match.end()


def _paragraph(text: str) -> Iterator[str | list[Piece]]:
    """Lines that belong together; what ends a line for good parts them."""
    place = 0
    for match in [*_HARD.finditer(text), None]:
        part = text[place : match.start() if match else len(text)]
        pieces = _inline(part)
        if any(piece.kind == "text" and has_words(piece.text) for piece in pieces):
            yield pieces
        else:
            yield part
        if match:
            yield match[0]
            place = match.end()


def _inline(text: str, depth: int = 0) -> list[Piece]:
    found, place = [], 0
    for match in _INLINE.finditer(text):
        found += _plain(text[place : match.start()]) + _marked(match, depth)
        place = match.end()
    return found + _plain(text[place:])


def _marked(match: re.Match, depth: int) -> list[Piece]:
    raw = match[0]
    if match["escape"]:
        return [Piece("text", raw, raw[1])]
    if match["code"]:
        return [Piece("opaque", raw, match["code"].strip("` "))]
    if match["image"] or match["note"]:
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
    if not name or name in VOID or raw.endswith("/>"):
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
