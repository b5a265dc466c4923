"""Documents of Word (.docx): their text is translated where it stands, and every other byte of them stays.

The XML is not read and written again, which would lose what no one here knows: expat tells where text is, and it is cut out and
replaced. Nothing of an archive is ever written to a file; sizes are limited, and a document type (DTD) is refused.
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
from heed.text.inline import Piece, Style, Translate
from heed.text.layout import has_words

ENTRIES, WHOLE, RATIO, SMALL = (
    10_000,
    300 << 20,
    200,
    1 << 20,
)  # files, bytes, times that packing may save, bytes that may save more
TEXT, DEEPEST = 32 << 20, 200  # bytes of XML that is read, and elements within each other
PARTS = re.compile(r"word/(?:document\d*|header\d*|footer\d*|footnotes|endnotes)\.xml")
SPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
AROUND = ("hyperlink", "ins", "smartTag", "sdt", "sdtContent", "customXml", "fldSimple", "dir", "bdo", "moveTo")
PAIRED = ("bookmark", "commentRange", "perm")  # …Start and …End, with an id
THINGS = ("footnoteReference", "endnoteReference", "commentReference", "annotationRef", "drawing", "pict", "object",
          "lastRenderedPageBreak")  # fmt: skip
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_T = re.compile(r"<((?:\w+:)?)t(?=[\s>])(?![^>]*xml:space)")


def translate(data: bytes, name: str, translate: Translate, language: str | None = None) -> bytes:
    """A document in another language."""
    files = _unpacked(data, name)
    parts = [file for file in files if PARTS.fullmatch(file.filename)]
    if not any(file.filename.startswith("word/document") for file in parts):
        raise ValueError(f"{name} is not a document of Word: it has no word/document.xml")
    if (size := sum(len(files[file]) for file in parts)) > TEXT:
        raise ValueError(f"{name} has {size:,} bytes of text and marks; heed reads up to {TEXT:,}: cut it in two")
    pages = [_Page(files[file], f"{name}: {file.filename}") for file in parts]
    runs = [run for page in pages for run in page.runs]
    said = projection.translate([run.pieces for run in runs], translate, [run.style for run in runs], language)
    texts = iter(said)
    for file, page in zip(parts, pages, strict=True):
        files[file] = page.with_texts([next(texts) for _ in page.runs])
    return _packed(files)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Whatever goes wrong with an archive is damage to it: each way of packing has errors of its own."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} is not a document of Word, or is damaged ({why})") from error


def _unpacked(data: bytes, name: str) -> dict[zipfile.ZipInfo, bytes]:
    """What is in an archive, as long as it is not too much."""
    with _readable(name):
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
    if len(entries) > ENTRIES:
        raise ValueError(f"{name} holds {len(entries):,} files; heed opens up to {ENTRIES:,}")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError(f"{name} holds two files of one name: it is damaged")
    found, left = {}, WHOLE
    for entry in entries:
        if entry.flag_bits & 1:
            raise ValueError(f"{name} is locked with a password: save it without one")
        if entry.file_size > max(SMALL, RATIO * max(1, entry.compress_size)) or entry.file_size > left:
            raise ValueError(f"{name}: {entry.filename} would unpack to {entry.file_size:,} bytes, which is too much")
        with _readable(name), archive.open(entry) as file:
            found[entry] = file.read(entry.file_size + 1)  # what it promises may be a lie
        if len(found[entry]) != entry.file_size:
            raise ValueError(f"{name}: {entry.filename} is not as long as it promises to be: it is damaged")
        left -= entry.file_size
    return found


def _packed(files: dict[zipfile.ZipInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for entry, content in files.items():
            archive.writestr(entry, content, entry.compress_type)
    return out.getvalue()


class Event(NamedTuple):
    """A part of an XML file: a tag that opens or closes, text, or anything else. `name` is empty outside Word's own."""

    kind: str
    name: str
    start: int
    end: int
    text: str = ""


class TextRun(NamedTuple):
    """Text with marks, from one byte to another."""

    start: int
    end: int
    pieces: list[Piece]
    style: Style


class _Page:
    """One XML file of a document, and the texts in it."""

    def __init__(self, content: bytes, name: str):
        self.content, self.name = content, name
        self.events = _events(content, name)
        self.ends = _ends(self.events)
        self.plain = Style(escape=_escaped, joins=False)
        self.runs = list(self._paragraphs())

    def with_texts(self, texts: Sequence[str]) -> bytes:
        parts, place = [], 0
        for run, text in zip(self.runs, texts, strict=True):
            old = self._raw(run.start, run.end)
            new = old if text == old else _T.sub(r'<\1t xml:space="preserve"', text)
            parts += [self.content[place : run.start], new.encode()]
            place = run.end
        return b"".join([*parts, self.content[place:]])

    def _raw(self, start: int, end: int) -> str:
        return self.content[start:end].decode()

    def _paragraphs(self) -> Iterator[TextRun]:
        """The texts of all paragraphs, in order."""
        group: list[tuple[int, int, list[Piece]]] = []
        place = 0
        while place < len(self.events):
            found = self._part(place)
            if found is None:
                yield from self._group(group)
                group = []
                event, before = self.events[place], self.events[max(0, place - 1)]
                if event.kind == "text" and (before.kind, before.name) == ("open", "t"):
                    yield TextRun(
                        event.start,
                        event.end,
                        [Piece("text", self._raw(event.start, event.end), event.text)],
                        self.plain,
                    )
                place += 1
                continue
            last, pieces = found
            group.append((self.events[place].start, self.events[last].end, pieces))
            place = last + 1
        yield from self._group(group)

    def _part(self, place: int) -> tuple[int, list[Piece]] | None:
        """What begins here, if it can be within a sentence: where it ends, and its pieces."""
        event, last = self.events[place], self.ends.get(place, place)
        raw = self._raw(event.start, self.events[last].end)
        if event.name == "r" and event.kind == "open":
            return self._run(place, last, raw)
        if event.name in ("del", "moveFrom") and event.kind in ("open", "empty"):
            return last, [Piece("point", raw)]
        if event.name in AROUND and event.kind in ("open", "close"):
            return place, [Piece(event.kind, self._raw(event.start, event.end), name=event.name)]
        if event.name in ("sdtPr", "sdtEndPr", "proofErr", "smartTagPr") and event.kind in ("open", "empty"):
            return last, [Piece("point", raw)]
        for kind in PAIRED:
            if event.kind == "empty" and event.name in (f"{kind}Start", f"{kind}End"):
                number = re.search(r'\bid="([^"]*)"', raw)
                which = "open" if event.name.endswith("Start") else "close"
                return place, [Piece(which, raw, name=f"{kind} {number[1] if number else ''}")]
        return None

    def _run(self, place: int, last: int, raw: str) -> tuple[int, list[Piece]] | None:
        """A run with one text and nothing else, or with a thing that stands in the text like a word."""
        names = self._children(place, last)
        if [name for name, *_ in names if name != "rPr"] == ["t"]:
            _, begin, end = names[-1]
            if self.events[begin].kind == "empty":
                return last, [Piece("point", raw)]
            text = "".join(event.text for event in self.events[begin : end + 1])
            start, stop = self.events[begin].end, self.events[end].start
            return last, [
                Piece("open", self._raw(self.events[place].start, start), name="run"),
                Piece("text", self._raw(start, stop), text),
                Piece("close", self._raw(stop, self.events[last].end), name="run"),
            ]
        within = any(event.name == "p" for event in self.events[place:last])
        things = {name for name, *_ in names} <= {"rPr", *THINGS}
        return (last, [Piece("point", raw)]) if names and things and not within else None

    def _children(self, place: int, last: int) -> list[tuple[str, int, int]]:
        found, i = [], place + 1
        while i < last:
            end = self.ends.get(i, i)
            if self.events[i].kind in ("open", "empty"):
                found.append((self.events[i].name or "?", i, end))
            i = end + 1
        return found

    def _group(self, group: list[tuple[int, int, list[Piece]]]) -> Iterator[TextRun]:
        """What stands together, as one text."""
        pieces = [piece for *_, own in group for piece in own]
        if not any(piece.kind == "text" and has_words(piece.text) for piece in pieces):
            return
        longest = max((own for *_, own in group if len(own) == 3), key=lambda own: len(own[1].text))
        opens, _, closes = (piece.raw for piece in longest)
        style = Style(escape=_escaped, loose=lambda text: f"{opens}{text}{closes}", holds="run", joins=False)
        yield TextRun(group[0][0], group[-1][1], pieces, style)


def _escaped(text: str) -> str:
    return escape(_NO_XML.sub("", text))


def _ends(events: Sequence[Event]) -> dict[int, int]:
    opened, found = [], {}
    for place, event in enumerate(events):
        if event.kind == "open":
            opened.append(place)
        elif event.kind == "close":
            found[opened.pop()] = place
    return found


def _events(content: bytes, name: str) -> list[Event]:
    """The parts of an XML file, in order and without a gap."""
    found: list[tuple[str, str, int, str]] = []
    depth = 0
    parser = expat.ParserCreate(namespace_separator=" ")

    def note(kind: str, full: str = "", text: str = "") -> None:
        space, _, local = full.rpartition(" ")
        found.append((kind, local if space in SPACES else "", parser.CurrentByteIndex, text))

    def refuse(*_) -> None:
        raise ValueError(f"{name} has a document type (DTD), which no document of Word needs: it is refused")

    def declared(version: str, encoding: str | None, standalone: int) -> None:
        if (encoding or "utf-8").lower() not in ("utf-8", "utf8"):  # what is written into it would be in another
            raise ValueError(f"{name} is written in {encoding}; heed reads what Word writes, UTF-8")
        note("other")

    def opens(full: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"{name} has more than {DEEPEST} elements within each other: no document of Word has")
        note("open", full)

    def closes(full: str) -> None:
        nonlocal depth
        depth -= 1
        note("close", full)

    parser.StartElementHandler, parser.EndElementHandler = opens, closes
    parser.CharacterDataHandler = lambda text: note("text", text=text)
    parser.DefaultHandler = lambda text: note("other")
    parser.StartDoctypeDeclHandler, parser.XmlDeclHandler = refuse, declared
    if content[:2] in (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<"):
        raise ValueError(f"{name} is written in UTF-16; heed reads what Word writes, UTF-8")
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError) as error:
        raise ValueError(f"{name} is damaged ({error})") from error
    ends = [*(place for _, _, place, _ in found[1:]), len(content)]
    events = [Event(kind, local, place, end, text) for (kind, local, place, text), end in zip(found, ends, strict=True)]
    return _joined(content, events)


def _joined(content: bytes, events: Sequence[Event]) -> list[Event]:
    """A tag that opens and closes at once is "empty"; texts in a row are one."""
    found: list[Event] = []
    opened: list[bool] = []  # whether there is another tag to close it
    for kind, group in groupby(events, key=lambda event: event.kind):
        if kind == "text":
            own = list(group)
            found.append(own[0]._replace(end=own[-1].end, text="".join(event.text for event in own)))
            continue
        for event in group:
            if kind == "open":
                opened.append(not content[event.start : event.end].endswith(b"/>"))
                found.append(event if opened[-1] else event._replace(kind="empty"))
            elif kind != "close" or opened.pop():
                found.append(event)
    return found
