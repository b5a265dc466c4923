"""Documents: their text is translated, and the rest of the file is unchanged.

Formats: `.txt` `.md` `.html` `.srt` `.vtt` `.tsv` (one column) and `.docx`, by the name of the file.
"""

import codecs
import re
from collections.abc import Callable
from functools import partial
from pathlib import PurePath

from heed.text import docx, layout, markdown, markup, protected, subtitles
from heed.text.inline import Translate, text_of

KINDS = {".txt": "text", ".text": "text", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".xhtml": "html",
         ".srt": "srt", ".vtt": "vtt", ".tsv": "tsv", ".docx": "docx"}  # fmt: skip
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
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
    """Translate a document into the same format, `kind` (default: by its name). `column` is that of a .tsv, from 1.

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
        translate_text = {"text": _text, "md": markdown.translate, "html": markup.translate}.get(kind)
        translate_text = translate_text or partial(subtitles.translate, kind=kind)
        translated = translate_text(text, translate, language)
    return bom + translated.encode(encoding)


def kind_of(name: str) -> str:
    suffix = PurePath(name).suffix.lower()
    if suffix not in KINDS:
        ending = f"ends in {suffix}" if suffix else "has no extension"
        raise ValueError(f"{name} {ending}; heed translates {', '.join(dict.fromkeys(KINDS))}")
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
