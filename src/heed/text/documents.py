"""Documents: what is text in them is translated, and the rest of the file is as it was.

`.txt` `.md` `.html` `.srt` `.tsv` (one column) and `.docx`; the name of a file says which it is.
"""

import codecs
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import PurePath

from heed.text import layout, markdown, markup, projection, protect, word
from heed.text.inline import Piece, Style, Translate, Translated

KINDS = {".txt": "text", ".text": "text", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".xhtml": "html",
         ".srt": "srt", ".tsv": "tsv", ".docx": "docx"}  # fmt: skip
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_TIMES = re.compile(r"\s*\d+:\d\d:\d\d[,.]\d+\s*-->\s*\d+:\d\d:\d\d[,.]\d+.*")
_CUE_MARK = re.compile(r"(?P<place>\{\\[^{}]*\})|<(?P<close>/?)(?P<name>[A-Za-z][\w.]*+)[^<>]*>")
_ENDS = re.compile(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def translate(
    data: bytes,
    name: str,
    translate: Translate,
    *,
    column: int | None = None,
    language: str | None = None,
    kind: str | None = None,
) -> bytes:
    """A document in another language, in the same format: of `kind`, or what its name says. `column` is that of a .tsv, from 1.

    `translate` gives a text for each text, with a word alignment (`Translated`) if it can: marks within sentences are put
    back by it. `language` is that of the document.
    """
    if kind is not None and kind not in KINDS.values():
        raise ValueError(f"format is {kind!r}; it is {', '.join(dict.fromkeys(KINDS.values()))}")
    kind = kind or kind_of(name)
    if (kind == "tsv") != (column is not None):
        raise ValueError(
            f"{name}: say which column is to be translated, counted from 1"
            if kind == "tsv"
            else f"{name} has no columns: column {column} is for .tsv files"
        )
    if kind == "docx":
        return word.translate(data, name, translate, language)
    text, mark, encoding = _decoded(data, name)
    if kind == "tsv":
        said = _table(text, name, translate, column, language)
    else:
        said = {"text": _text, "md": markdown.translate, "html": _page, "srt": _subtitles}[kind](
            text, translate, language
        )
    return mark + said.encode(encoding)


def kind_of(name: str) -> str:
    suffix = PurePath(name).suffix.lower()
    if suffix not in KINDS:
        raise ValueError(f"{name} ends in {suffix or 'nothing'}; heed translates {', '.join(dict.fromkeys(KINDS))}")
    return KINDS[suffix]


def texts_of(
    data: bytes, name: str, *, column: int | None = None, language: str | None = None, kind: str | None = None
) -> list[str]:
    """The sentences of a document that a translator is asked for, in order."""
    asked: list[str] = []

    def note(texts: list[str]) -> list[str]:
        asked.extend(texts)
        return texts

    translate(data, name, note, column=column, language=language, kind=kind)
    return asked


def _decoded(data: bytes, name: str) -> tuple[str, bytes, str]:
    """The text of a file, the mark that it begins with, and how it is written."""
    mark, encoding = next(((mark, own) for mark, own in BOMS.items() if data.startswith(mark)), (b"", "utf-8"))
    try:
        return data[len(mark) :].decode(encoding), mark, encoding
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{name}, line {line} is not {encoding.upper()}: convert the file first, for example with iconv"
        ) from None


def _plainly(translate: Translate) -> Callable[[list[str]], list[str]]:
    """Texts alone."""
    return lambda texts: [own.text if isinstance(own, Translated) else own for own in translate(texts)]


def _text(text: str, translate: Translate, language: str | None) -> str:
    return layout.translate(text, lambda texts: protect.translate(texts, _plainly(translate)), language)


def _page(text: str, translate: Translate, language: str | None) -> str:
    return markup.translate(text, translate, language=language)


def _table(text: str, name: str, translate: Translate, column: int, language: str | None) -> str:
    if column < 1:
        raise ValueError(f"{name}: column is {column}; columns are counted from 1")
    rows = [line.split("\t") for line in text.split("\n")]
    for number, row in enumerate(rows, 1):
        if len(row) < column and row != [""] and row != ["\r"]:
            raise ValueError(f"{name}, line {number} has {len(row)} columns; column {column} is to be translated")
    full = [row for row in rows if len(row) >= column]
    skeletons = [layout.take_apart(row[column - 1], language) for row in full]
    asked = [text for skeleton in skeletons for text in skeleton.texts]
    said = iter(protect.translate(asked, _plainly(translate)) if asked else [])
    for row, skeleton in zip(full, skeletons, strict=True):
        row[column - 1] = layout.fill(skeleton, [_ENDS.sub(" ", next(said)) for _ in skeleton.segments])
    return "\n".join("\t".join(row) for row in rows)


def _subtitles(text: str, translate: Translate, language: str | None) -> str:
    """Each cue with its number, its times, its marks and its lines."""
    lines = text.splitlines(keepends=True)
    cues = [cue for start, end in _cues(lines) for cue in _spoken(lines, start, end)]
    runs = [_marks(" ".join(lines[i].strip() for i in range(start, end))) for start, end in cues]
    said = projection.translate(runs, translate, Style(), language)
    place, parts = 0, []
    for (start, end), run, own in zip(cues, runs, said, strict=True):
        whole = "".join(piece.raw for piece in run)
        parts += [*lines[place:start], _lines(lines[start:end], whole, own)]
        place = end
    return "".join([*parts, *lines[place:]])


def _cues(lines: Sequence[str]) -> list[tuple[int, int]]:
    """From which line to which each cue speaks."""
    found, start = [], None
    for number, line in enumerate([*lines, ""]):
        times = _TIMES.fullmatch(line.rstrip("\r\n"))
        if start is not None and (times or not line.strip()):
            numbered = times and lines[number - 1].strip().isdigit() and number - 1 >= start
            found.append((start, number - 1 if numbered else number))
            start = None
        if times:
            start = number + 1
    return [(start, end) for start, end in found if end > start]


def _spoken(lines: Sequence[str], start: int, end: int) -> list[tuple[int, int]]:
    """A cue as one text; of a dialogue, each line."""
    dialogue = end - start > 1 and all(re.match(r"\s*(?:<[^<>]*>)*[-–—]", lines[i]) for i in range(start, end))
    return [(i, i + 1) for i in range(start, end)] if dialogue else [(start, end)]


def _marks(text: str) -> list[Piece]:
    found, place = [], 0
    for match in _CUE_MARK.finditer(text):
        found.append(Piece("text", text[place : match.start()], text[place : match.start()]))
        kind = "point" if match["place"] else "close" if match["close"] else "open"
        found.append(Piece(kind, match[0], name=(match["name"] or "").lower()))
        place = match.end()
    return [piece for piece in [*found, Piece("text", text[place:], text[place:])] if piece.raw]


def _lines(old: Sequence[str], whole: str, said: str) -> str:
    """What is said on as many lines as there were, each with its own ends."""
    if said == whole:
        return "".join(old)
    breaks, length = [], 0
    for line, after in pairwise(old):
        length += len(_CUE_MARK.sub("", line.strip()))
        space = line[len(line.rstrip()) :] + after[: len(after) - len(after.lstrip())]
        breaks.append(layout.Break(length, " ", space))
        length += 1
    said = _ENDS.sub(" ", said)
    tags = [place for match in _CUE_MARK.finditer(said) for place in range(match.start(), match.end())]
    shown = sorted(set(range(len(said))) - set(tags))  # which characters are seen
    segment = layout.Segment(_CUE_MARK.sub("", whole), tuple(breaks))
    parts, place = [], 0
    for start, end, raw in layout.breaks_in("".join(said[i] for i in shown), segment):
        parts += [said[place : shown[start]], raw]
        place = shown[start] + end - start
    first, last = old[0], old[-1]
    return "".join([first[: len(first) - len(first.lstrip())], *parts, said[place:], last[len(last.rstrip()) :]])
