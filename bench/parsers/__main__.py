"""`python -m bench.parsers FORMAT …`: our parsers beside well-kept libraries, by what matters when a file is translated.

A library that is not installed is named and left out. The numbers are in docs/results.md, what follows from them in docs/design.md.
"""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.parsers import commonmark, rouge
from bench.parsers.cases import cases
from bench.parsers.docx_cases import DOCX, docx_file
from bench.parsers.hostile import hostile
from bench.parsers.libraries import LIBRARIES, version
from bench.parsers.measure import Work, cost, identity, judge, outcome
from heed.text import documents, docx, html_tokenizer, markdown, markdown_blocks

SOURCE = Path(__file__).resolve().parents[2] / "src" / "heed"
FORMATS = {"md": "Markdown", "html": "HTML", "docx": "Word", "srt": "SubRip", "vtt": "WebVTT"}
OURS = {
    "md": ["text/markdown.py", "text/markdown_blocks.py", "text/markdown_inline.py"],
    "html": ["text/html_tokenizer.py", "text/markup.py"],
    "docx": ["text/docx.py"],
    "srt": ["text/subtitles.py"],
    "vtt": ["text/subtitles.py"],
}
SIZE = 1 << 18  # bytes that are read for the speed


class Parser(NamedTuple):
    """Ours, or a library."""

    name: str
    parse: Callable[[bytes], Any]
    work: Work


def ours(kind: str) -> Parser:
    def parse_markdown(data: bytes) -> None:
        for block in markdown_blocks.split_blocks(data.decode()):
            if not isinstance(block, str):
                list(markdown.runs_of(block))

    def parse_docx(data: bytes) -> None:
        for entry, content in docx._unpack(data, "speed.docx").items():
            if docx.TEXT_PARTS.fullmatch(entry.filename):
                docx._XmlPart(content, entry.filename)

    parse = {"md": parse_markdown, "html": lambda data: html_tokenizer.tokenize(data.decode()), "docx": parse_docx}
    work = partial(_translate, kind)
    return Parser("ours", parse.get(kind, lambda data: documents.texts_of(data, f"x.{kind}")), work)


def _translate(kind: str, data: bytes, translate: Callable[[list[str]], list[str]]) -> bytes:
    return documents.translate(data, f"x.{kind}", translate)


def parsers(kind: str) -> list[Parser]:
    found = [ours(kind)]
    for library in LIBRARIES[kind]:
        if missing := library.missing():
            print(f"{library.name}: not installed: pip install {' '.join(missing)}")
        else:
            found.append(Parser(f"{library.name} {version(library.name)}", library.parse, library.translate))
    return found


def large(kind: str) -> bytes:
    """A file of about 256 kB of all constructs that can stand in any place."""
    if kind == "docx":
        bodies = [parts["document"] for name, parts in DOCX.items() if len(parts) == 1 and name != "CDATA"]
        body = "".join(bodies).replace("⟦", "").replace("⟧", "")
        return docx_file({"document": body * (SIZE // len(body.encode()))})
    own = [
        case
        for case in cases(kind)
        if case.name not in ("front matter", "byte order mark", "whole page", "old document type")
    ]
    head = b"WEBVTT\n\n" if kind == "vtt" else b""
    joined = b"".join(case.source.removeprefix(head) + b"\n\n" for case in own)
    return head + joined * (SIZE // len(joined))


def compare(kind: str, given: argparse.Namespace) -> None:
    print(f"\n## {FORMATS[kind]}\n")
    found = parsers(kind)
    _constructs(kind, found, given.all)
    if kind == "md" and given.spec:
        commonmark.compare(given.spec, {parser.name: parser.work for parser in found})
    if not given.quick:
        _costs(kind, found)
        _safety(kind, found)


def _constructs(kind: str, found: list[Parser], shown: bool) -> None:
    own = cases(kind)
    judged = {parser.name: [judge(case, kind, parser.work) for case in own] for parser in found}
    print(
        f"| of {len(own)} constructs | the same to the byte, untranslated | the right text translated | the rest kept |\n|---|---|---|---|"
    )
    for name, rows in judged.items():
        print(
            f"| {name} | {sum(row.same for row in rows)} | {sum(row.text for row in rows)} | {sum(row.rest for row in rows)} |"
        )
    print()
    for name, rows in judged.items():
        for case, row in zip(own, rows, strict=True):
            what = [word for good, word in zip(row[:3], ("bytes", "text", "rest"), strict=True) if not good]
            if what and (shown or name == "ours"):
                print(f"- {name}: {case.name}: {row.error or ', '.join(what)}")


def _costs(kind: str, found: list[Parser]) -> None:
    data = large(kind)
    size = len(data) if kind != "docx" else SIZE
    print("\n| | parsed, MB/s | read and written, MB/s | memory |\n|---|---|---|---|")
    for parser in found:
        parsed, whole = cost(partial(parser.parse, data)), cost(partial(parser.work, data, identity))
        speeds = [one.error or f"{size / 1e6 / one.seconds:.2f}" for one in (parsed, whole)]
        print(f"| {parser.name} | {speeds[0]} | {speeds[1]} | {whole.memory / 2**20:.0f} MiB |", flush=True)
    lines = sum(len((SOURCE / name).read_text("utf-8").splitlines()) for name in OURS[kind])
    print(f"\nOurs: {lines} lines in {', '.join(OURS[kind])}.\n")


def _safety(kind: str, found: list[Parser]) -> None:
    print(f"| hostile | {' | '.join(parser.name for parser in found)} |\n|---|{'---|' * len(found)}")
    for name, data in hostile(kind).items():
        told = [outcome(partial(parser.work, data, identity)) for parser in found]
        print(f"| {name} | {' | '.join(told)} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.parsers", description=__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=f"all, or some of {', '.join(FORMATS)}, rouge")
    parser.add_argument(
        "--all", action="store_true", help="list what the libraries lose as well, construct by construct"
    )
    parser.add_argument("--quick", action="store_true", help="only the constructs")
    parser.add_argument("--spec", type=Path, help="spec.txt of CommonMark, whose examples are translated as well")
    given = parser.parse_args()
    if unknown := set(given.formats) - {*FORMATS, "rouge"}:
        raise SystemExit(f"{unknown.pop()} is no format: take some of {', '.join(FORMATS)}, rouge")
    if not hasattr(os, "fork"):
        raise SystemExit("bench.parsers needs fork, which this system does not have: run it on Linux or macOS")
    for kind in FORMATS:
        if kind in (given.formats or FORMATS):
            compare(kind, given)
    if not given.formats or "rouge" in given.formats:
        return rouge.compare()
    return 0


if __name__ == "__main__":
    sys.exit(main())
