"""Constructs of each format. What stands in ⟦…⟧ is text to translate; every other byte of the file has to stay."""

import re
from typing import NamedTuple

from bench.parsers.docx_cases import DOCX, docx_file
from bench.parsers.html_cases import HTML
from bench.parsers.markdown_cases import MARKDOWN
from bench.parsers.subtitle_cases import SRT, VTT

_MARKED = re.compile("⟦(.*?)⟧", re.S)


class Case(NamedTuple):
    """A small file with one construct, and the file with its text in capitals."""

    name: str
    source: bytes
    expected: bytes


def cases(kind: str) -> list[Case]:
    """All constructs of a format: md, html, docx, srt or vtt."""
    if kind == "docx":
        return [
            Case(name, docx_file(source), docx_file(expected))
            for name, parts in DOCX.items()
            for source, expected in [
                tuple({part: made(text) for part, text in parts.items()} for made in (plain, capitals))
            ]
        ]
    marked = {"md": MARKDOWN, "html": HTML, "srt": SRT, "vtt": VTT}[kind]
    return [Case(name, plain(text).encode(), capitals(text).encode()) for name, text in marked.items()]


def plain(marked: str) -> str:
    return _MARKED.sub(r"\1", marked)


def capitals(marked: str) -> str:
    return _MARKED.sub(lambda match: match[1].upper(), marked)
