"""Word documents (.docx): their text is translated in place, and every other byte of their XML is kept. The XML is
not reserialized, which would lose unknown extensions: expat gives the positions of text, which is replaced. Nothing
of an archive is written to disk; sizes are limited, and a DTD is refused.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

from heed.text import projection
from heed.text.inline import InlineToken, Style, Translate
from heed.text.layout import has_words

MAX_FILES, MAX_BYTES = 10_000, 300 << 20  # of an archive, unpacked
MAX_RATIO, SMALL_FILE = 200, 1 << 20  # unpacked to packed size of a file, and bytes below which any ratio will do
MAX_XML, MAX_DEPTH = 32 << 20, 200  # bytes of the XML parts together, and nested elements
TEXT_PARTS = re.compile(r"word/(?:document\d*|header\d*|footer\d*|footnotes|endnotes)\.xml")
NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
WRAPPERS = ("hyperlink", "ins", "smartTag", "sdt", "sdtContent", "customXml", "fldSimple", "dir", "bdo", "moveTo")
RANGES = ("bookmark", "commentRange", "perm")  # marked by …Start and …End elements with an id
POINTS = ("del", "moveFrom", "sdtPr", "sdtEndPr", "proofErr", "smartTagPr")  # kept as they are, with their content
INLINE_OBJECTS = ("footnoteReference", "endnoteReference", "commentReference", "annotationRef", "drawing", "pict", "object",
          "lastRenderedPageBreak")  # fmt: skip
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_TEXT_TAG = re.compile(r"<((?:\w+:)?)t(?=[\s>])(?![^>]*xml:space)")


def translate(data: bytes, name: str, translate: Translate, language: str | None = None) -> bytes:
    """Translate a document. `language` is the source language."""
    files = _unpack(data, name)
    parts = [file for file in files if TEXT_PARTS.fullmatch(file.filename)]
    if not any(file.filename.startswith("word/document") for file in parts):
        raise ValueError(f"{name} is not a Word document: it has no word/document.xml")
    if (size := sum(len(files[file]) for file in parts)) > MAX_XML:
        raise ValueError(f"{name} has {size:,} bytes of text and markup; the limit is {MAX_XML:,}: split it in two")
    xml_parts = [_XmlPart(files[file], f"{name}: {file.filename}") for file in parts]
    runs = [run for part in xml_parts for run in part.runs]
    styles = [run.style for run in runs]
    texts = iter(projection.translate([run.tokens for run in runs], translate, styles, language))
    for file, part in zip(parts, xml_parts, strict=True):
        files[file] = part.with_texts([next(texts) for _ in part.runs])
    return _pack(files)


@contextmanager
def _archive_errors(name: str) -> Iterator[None]:
    """Report any error of an archive as damage: each compression method raises its own exceptions."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} is not a Word document, or is damaged ({why})") from error


def _unpack(data: bytes, name: str) -> dict[zipfile.ZipInfo, bytes]:
    """The files of an archive, within limits that stop zip bombs."""
    with _archive_errors(name):
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
    if len(entries) > MAX_FILES:
        raise ValueError(f"{name} contains {len(entries):,} files; the limit is {MAX_FILES:,}")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError(f"{name} contains two files with the same name: it is damaged")
    found, left = {}, MAX_BYTES
    for entry in entries:
        if entry.flag_bits & 1:
            raise ValueError(f"{name} is locked with a password: save it without one")
        size = f"{name}: {entry.filename} would unpack to {entry.file_size:,} bytes, which is too large"
        if entry.file_size > max(SMALL_FILE, MAX_RATIO * max(1, entry.compress_size)):
            raise ValueError(
                f"{size}: over {MAX_RATIO} times its compressed size, as in a zip bomb; if the text is just "
                f"repetitive, split it into parts under {SMALL_FILE:,} bytes, or save it as .txt"
            )
        if entry.file_size > left:
            raise ValueError(
                f"{size}: the limit for all files together is {MAX_BYTES:,}; split it in two, or remove pictures"
            )
        with _archive_errors(name), archive.open(entry) as file:
            found[entry] = file.read(entry.file_size + 1)  # the stated size may be wrong
        if len(found[entry]) != entry.file_size:
            raise ValueError(f"{name}: {entry.filename} does not have its declared size: it is damaged")
        left -= entry.file_size
    return found


def _pack(files: dict[zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for entry, content in files.items():
            archive.writestr(entry, content, entry.compress_type)
    return out.getvalue()


class XmlEvent(NamedTuple):
    """A part of an XML file: "open", "close", "empty", "text" or "other". `name` is empty outside Word's namespaces."""

    kind: str
    name: str
    start: int
    end: int
    text: str = ""


class DocxRun(NamedTuple):
    """A run of text with inline marks, from one byte to another."""

    start: int
    end: int
    tokens: list[InlineToken]
    style: Style


class _XmlPart:
    """One XML file of a document, and the texts in it."""

    def __init__(self, content: bytes, name: str):
        self.content, self.name = content, name
        self.events = _parse(content, name)
        self.ends = _element_ends(self.events)
        self.plain = Style(escape=_escaped, collapse_spaces=False)
        self.runs = list(self._find_runs())

    def with_texts(self, texts: Sequence[str]) -> bytes:
        """The file with a text for each run."""
        parts, position = [], 0
        for run, text in zip(self.runs, texts, strict=True):
            old = self._raw(run.start, run.end)
            new = old if text == old else _TEXT_TAG.sub(r'<\1t xml:space="preserve"', text)
            parts += [self.content[position : run.start], new.encode()]
            position = run.end
        return b"".join([*parts, self.content[position:]])

    def _raw(self, start: int, end: int) -> str:
        return self.content[start:end].decode()

    def _find_runs(self) -> Iterator[DocxRun]:
        """The texts of all paragraphs, in order."""
        group: list[tuple[int, int, list[InlineToken]]] = []
        position = 0
        while position < len(self.events):
            found = self._inline_tokens(position)
            if found is None:
                yield from self._merge(group)
                group = []
                event, before = self.events[position], self.events[max(0, position - 1)]
                if event.kind == "text" and (before.kind, before.name) == ("open", "t"):
                    token = InlineToken("text", self._raw(event.start, event.end), event.text)
                    yield DocxRun(event.start, event.end, [token], self.plain)
                position += 1
                continue
            last, tokens = found
            group.append((self.events[position].start, self.events[last].end, tokens))
            position = last + 1
        yield from self._merge(group)

    def _inline_tokens(self, position: int) -> tuple[int, list[InlineToken]] | None:
        """The last event and the tokens of what begins here; None if it cannot be within a sentence."""
        event, last = self.events[position], self.ends.get(position, position)
        raw = self._raw(event.start, self.events[last].end)
        if event.name == "r" and event.kind == "open":
            return self._run_tokens(position, last, raw)
        if event.name in WRAPPERS and event.kind in ("open", "close"):
            return position, [InlineToken(event.kind, self._raw(event.start, event.end), name=event.name)]
        if event.name in POINTS and event.kind in ("open", "empty"):
            return last, [InlineToken("point", raw)]
        for kind in RANGES:
            if event.kind == "empty" and event.name in (f"{kind}Start", f"{kind}End"):
                id_match = re.search(r'\bid="([^"]*)"', raw)
                token_kind = "open" if event.name.endswith("Start") else "close"
                return position, [InlineToken(token_kind, raw, name=f"{kind} {id_match[1] if id_match else ''}")]
        return None

    def _run_tokens(self, position: int, last: int, raw: str) -> tuple[int, list[InlineToken]] | None:
        """A run (w:r) that has one text and nothing else, or only inline objects."""
        children = self._children(position, last)
        if [name for name, *_ in children if name != "rPr"] == ["t"]:
            _, begin, end = children[-1]
            if self.events[begin].kind == "empty":
                return last, [InlineToken("point", raw)]
            text = "".join(event.text for event in self.events[begin : end + 1])
            start, stop = self.events[begin].end, self.events[end].start
            return last, [
                InlineToken("open", self._raw(self.events[position].start, start), name="run"),
                InlineToken("text", self._raw(start, stop), text),
                InlineToken("close", self._raw(stop, self.events[last].end), name="run"),
            ]
        has_paragraph = any(event.name == "p" for event in self.events[position:last])
        only_objects = {name for name, *_ in children} <= {"rPr", *INLINE_OBJECTS}
        return (last, [InlineToken("point", raw)]) if children and only_objects and not has_paragraph else None

    def _children(self, position: int, last: int) -> list[tuple[str, int, int]]:
        """The name, first and last event of each child of an element."""
        found, i = [], position + 1
        while i < last:
            end = self.ends.get(i, i)
            if self.events[i].kind in ("open", "empty"):
                found.append((self.events[i].name or "?", i, end))
            i = end + 1
        return found

    def _merge(self, group: list[tuple[int, int, list[InlineToken]]]) -> Iterator[DocxRun]:
        """Adjacent inline parts as one run, in which unformatted text gets the formatting of the longest text."""
        tokens = [token for *_, part in group for token in part]
        if not any(token.kind == "text" and has_words(token.text) for token in tokens):
            return
        longest = max((part for *_, part in group if len(part) == 3), key=lambda part: len(part[1].text))
        opens, _, closes = (token.raw for token in longest)
        style = Style(_escaped, wrap=lambda text: f"{opens}{text}{closes}", container="run", collapse_spaces=False)
        yield DocxRun(group[0][0], group[-1][1], tokens, style)


def _escaped(text: str) -> str:
    return escape(_NOT_XML.sub("", text))


def _element_ends(events: Sequence[XmlEvent]) -> dict[int, int]:
    opened, found = [], {}
    for position, event in enumerate(events):
        if event.kind == "open":
            opened.append(position)
        elif event.kind == "close":
            found[opened.pop()] = position
    return found


def _parse(content: bytes, name: str) -> list[XmlEvent]:
    """The parts of an XML file, in order and without gaps."""
    found: list[tuple[str, str, int, str]] = []
    depth = 0
    parser = expat.ParserCreate(namespace_separator=" ")

    def record(kind: str, qualified: str = "", text: str = "") -> None:
        namespace, _, local = qualified.rpartition(" ")
        found.append((kind, local if namespace in NAMESPACES else "", parser.CurrentByteIndex, text))

    def refuse_dtd(*_) -> None:
        raise ValueError(f"{name} has a document type declaration (DTD), which Word documents do not use: refused")

    def check_encoding(version: str, encoding: str | None, standalone: int) -> None:
        if (encoding or "utf-8").lower() not in ("utf-8", "utf8"):  # translations are written as UTF-8
            raise ValueError(f"{name} is written in {encoding}; heed reads what Word writes, UTF-8")
        record("other")

    def open_element(qualified: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"{name} has more than {MAX_DEPTH} nested elements, which no Word document has")
        record("open", qualified)

    def close_element(qualified: str) -> None:
        nonlocal depth
        depth -= 1
        record("close", qualified)

    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.CharacterDataHandler = lambda text: record("text", text=text)
    parser.DefaultHandler = lambda text: record("other")
    parser.StartDoctypeDeclHandler, parser.XmlDeclHandler = refuse_dtd, check_encoding
    if content[:2] in (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<"):
        raise ValueError(f"{name} is written in UTF-16; heed reads what Word writes, UTF-8")
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError) as error:
        raise ValueError(f"{name} is damaged ({error})") from error
    ends = [*(start for _, _, start, _ in found[1:]), len(content)]
    parts = zip(found, ends, strict=True)
    return _normalized(content, [XmlEvent(kind, local, start, end, text) for (kind, local, start, text), end in parts])


def _normalized(content: bytes, events: Sequence[XmlEvent]) -> list[XmlEvent]:
    """Merge self-closing tags into one "empty" event, and adjacent texts into one event."""
    found: list[XmlEvent] = []
    opened: list[bool] = []  # whether a closing tag follows
    for kind, group in groupby(events, key=lambda event: event.kind):
        if kind == "text":
            texts = list(group)
            found.append(texts[0]._replace(end=texts[-1].end, text="".join(event.text for event in texts)))
            continue
        for event in group:
            if kind == "open":
                opened.append(not content[event.start : event.end].endswith(b"/>"))
                found.append(event if opened[-1] else event._replace(kind="empty"))
            elif kind != "close" or opened.pop():
                found.append(event)
    return found
