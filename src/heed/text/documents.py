"""Documents: their text is translated, and the rest of the file stays as it was.

Formats: `.txt` `.md` `.html` `.srt` `.tsv` (one column) and `.docx`, by the name of the file.
"""

import codecs
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import PurePath

from heed.text import docx, layout, markdown, markup, projection, protected
from heed.text.inline import InlineToken, Style, Translate, text_of

KINDS = {".txt": "text", ".text": "text", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".xhtml": "html",
         ".srt": "srt", ".tsv": "tsv", ".docx": "docx"}  # fmt: skip
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CUE_TIMES = re.compile(r"\s*\d+:\d\d:\d\d[,.]\d+\s*-->\s*\d+:\d\d:\d\d[,.]\d+.*")
_CUE_TAG = re.compile(r"(?P<override>\{\\[^{}]*\})|<(?P<close>/?)(?P<name>[A-Za-z][\w.]*+)[^<>]*>")
_TAGS = re.compile(r"(?:<[^<>]*>|\{\\[^{}]*\})*")
_DASHED = re.compile(rf"({_TAGS.pattern})((?:[-–—]\s*)?)(.*)", re.DOTALL)
_LINE_BREAKS = re.compile(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def translate(
    data: bytes,
    name: str,
    translate: Translate,
    *,
    column: int | None = None,
    language: str | None = None,
    kind: str | None = None,
) -> bytes:
    """A document translated, in the same format: `kind`, by default that of its name. `column` is that of a .tsv, from 1.

    `translate` returns a text for each text, with a word alignment (`Translated`) if it can, by which marks within sentences
    are projected. `language` is the source language.
    """
    if kind is not None and kind not in KINDS.values():
        raise ValueError(f"format is {kind!r}; it must be {', '.join(dict.fromkeys(KINDS.values()))}")
    kind = kind or kind_of(name)
    if (kind == "tsv") != (column is not None):
        raise ValueError(
            f"{name}: choose the column to translate, counted from 1"
            if kind == "tsv"
            else f"{name} has no columns: column {column} is for .tsv files"
        )
    if kind == "docx":
        return docx.translate(data, name, translate, language)
    text, bom, encoding = _decode(data, name)
    if kind == "tsv":
        translated = _table(text, name, translate, column, language)
    else:
        translate_text = {"text": _text, "md": markdown.translate, "html": markup.translate, "srt": _subtitles}[kind]
        translated = translate_text(text, translate, language)
    return bom + translated.encode(encoding)


def kind_of(name: str) -> str:
    suffix = PurePath(name).suffix.lower()
    if suffix not in KINDS:
        raise ValueError(f"{name} ends in {suffix or 'nothing'}; heed translates {', '.join(dict.fromkeys(KINDS))}")
    return KINDS[suffix]


def texts_of(
    data: bytes, name: str, *, column: int | None = None, language: str | None = None, kind: str | None = None
) -> list[str]:
    """The sentences of a document that are translated, in order."""
    found: list[str] = []

    def record(texts: list[str]) -> list[str]:
        found.extend(texts)
        return texts

    translate(data, name, record, column=column, language=language, kind=kind)
    return found


def _decode(data: bytes, name: str) -> tuple[str, bytes, str]:
    """The text of a file, its byte order mark, and its encoding."""
    bom, encoding = next(((bom, encoding) for bom, encoding in BOMS.items() if data.startswith(bom)), (b"", "utf-8"))
    try:
        return data[len(bom) :].decode(encoding), bom, encoding
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{name}, line {line} is not {encoding.upper()}: convert the file first, for example with iconv"
        ) from None


def _without_alignment(translate: Translate) -> Callable[[list[str]], list[str]]:
    return lambda texts: [text_of(one) for one in translate(texts)]


def _text(text: str, translate: Translate, language: str | None) -> str:
    return layout.translate(text, lambda texts: protected.translate(texts, _without_alignment(translate)), language)


def _table(text: str, name: str, translate: Translate, column: int, language: str | None) -> str:
    if column < 1:
        raise ValueError(f"{name}: column is {column}; columns are counted from 1")
    rows = [line.split("\t") for line in text.split("\n")]
    for number, row in enumerate(rows, 1):
        if len(row) < column and row != [""] and row != ["\r"]:
            raise ValueError(f"{name}, line {number} has {len(row)} columns; column {column} was to be translated")
    full = [row for row in rows if len(row) >= column]
    skeletons = [layout.take_apart(row[column - 1], language) for row in full]
    texts = [text for skeleton in skeletons for text in skeleton.texts]
    translations = iter(protected.translate(texts, _without_alignment(translate)) if texts else [])
    for row, skeleton in zip(full, skeletons, strict=True):
        row[column - 1] = layout.fill(skeleton, [_LINE_BREAKS.sub(" ", next(translations)) for _ in skeleton.segments])
    return "\n".join("\t".join(row) for row in rows)


def _subtitles(text: str, translate: Translate, language: str | None) -> str:
    """Subtitles, each cue with its number, times, tags and number of lines."""
    lines = text.splitlines(keepends=True)
    speeches = [speech for start, end in _cues(lines) for speech in _speeches(lines, start, end)]
    cues = [
        _DASHED.fullmatch(" ".join(lines[i].strip() for i in range(start, end))).groups() for start, end in speeches
    ]
    runs = [_cue_tokens(tags + speech) for tags, _, speech in cues]
    translations = projection.translate(runs, translate, Style(), language)
    position, parts = 0, []
    for (start, end), (tags, dash, speech), translation in zip(speeches, cues, translations, strict=True):
        after = _TAGS.match(translation).end() if tags else 0  # the dash of a speaker stays before what is said
        whole = translation[:after] + dash + translation[after:]
        parts += [*lines[position:start], _wrap_cue(lines[start:end], tags + dash + speech, whole)]
        position = end
    return "".join([*parts, *lines[position:]])


def _cues(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The first line and the end of the text of each cue."""
    found, start = [], None
    for number, line in enumerate([*lines, ""]):
        times = _CUE_TIMES.fullmatch(line.rstrip("\r\n"))
        if start is not None and (times or not line.strip()):
            numbered = times and lines[number - 1].strip().isdigit() and number - 1 >= start
            found.append((start, number - 1 if numbered else number))
            start = None
        if times:
            start = number + 1
    return [(start, end) for start, end in found if end > start]


def _speeches(lines: Sequence[str], start: int, end: int) -> list[tuple[int, int]]:
    """A cue as one text; the lines of a dialogue one by one."""
    dialogue = end - start > 1 and all(re.match(r"\s*(?:<[^<>]*>)*[-–—]", lines[i]) for i in range(start, end))
    return [(i, i + 1) for i in range(start, end)] if dialogue else [(start, end)]


def _cue_tokens(text: str) -> list[InlineToken]:
    tokens, position = [], 0
    for match in _CUE_TAG.finditer(text):
        tokens.append(InlineToken("text", text[position : match.start()], text[position : match.start()]))
        kind = "point" if match["override"] else "close" if match["close"] else "open"
        tokens.append(InlineToken(kind, match[0], name=(match["name"] or "").lower()))
        position = match.end()
    tokens.append(InlineToken("text", text[position:], text[position:]))
    return [token for token in tokens if token.raw]


def _wrap_cue(old_lines: Sequence[str], source: str, translation: str) -> str:
    """A translation on as many lines as its cue had, with their line ends."""
    if translation == source:
        return "".join(old_lines)
    breaks, length = [], 0
    for line, after in pairwise(old_lines):
        length += len(_CUE_TAG.sub("", line.strip()))
        space = line[len(line.rstrip()) :] + after[: len(after) - len(after.lstrip())]
        breaks.append(layout.Break(length, " ", space))
        length += 1
    translation = _LINE_BREAKS.sub(" ", translation)
    in_tags = [i for match in _CUE_TAG.finditer(translation) for i in range(match.start(), match.end())]
    visible = sorted(set(range(len(translation))) - set(in_tags))
    segment = layout.Segment(_CUE_TAG.sub("", source), tuple(breaks))
    placed = layout.place_breaks("".join(translation[i] for i in visible), segment)
    wrapped = layout.replaced(translation, ((visible[i], visible[i] + end - i, raw) for i, end, raw in placed))
    first, last = old_lines[0], old_lines[-1]
    return first[: len(first) - len(first.lstrip())] + wrapped + last[len(last.rstrip()) :]
