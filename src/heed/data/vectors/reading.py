"""Read word vectors from files: word2vec's two formats, GloVe's and fastText's `.vec`.

A file is read in one pass; only the requested words are held in memory.
"""

import unicodedata
from collections.abc import Container, Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from heed.data.vectors.layout import BOM, SUPPORTED, Layout, detect_layout, open_unpacked, split_line

CHUNK = 1 << 20  # bytes read at once
ROWS = 4096


class Vectors(NamedTuple):
    """Words and their vectors, one row each. `notes` are sentences about irregularities of the file."""

    words: list[str]
    matrix: Float32[np.ndarray, "words dim"]
    notes: tuple[str, ...] = ()


class Entry(NamedTuple):
    """A word in a file, with its line number (word number in a binary file) and its vector, not yet parsed."""

    word: str
    number: int
    numbers: bytes


@dataclass
class Tally:
    """Counts of irregularities found while reading a file."""

    read: int = 0
    repeated: int = 0
    nameless: int = 0
    odd: int = 0
    longer: bool = False

    def notes(self, path: Path, layout: Layout) -> tuple[str, ...]:
        notes = []
        if layout.count not in (None, self.read):
            notes.append(f"{path} declares {layout.count:,} words in its header and has {self.read:,}.")
        if self.longer:
            notes.append(
                f"{path} continues after the {layout.count:,} words declared in its header: the rest is ignored."
            )
        if self.repeated:
            notes.append(f"{path} has {self.repeated:,} duplicate words: the first vector of each is used.")
        if self.nameless:
            notes.append(f"{path} has {self.nameless:,} vectors without a word: they are skipped.")
        if self.odd:
            notes.append(f"{path} has {self.odd:,} words that are not UTF-8: their bytes are shown as \\xNN.")
        return tuple(notes)


def read(path: Path, wanted: Container[str] | None = None) -> Vectors:
    """The vectors of the words in `wanted`, in file order; None: of all words."""
    tally, layout = Tally(), detect_layout(path)
    parts = list(blocks(path, wanted, tally))
    words = [word for block in parts for word in block.words]
    matrix, start = np.empty((len(words), layout.dim), np.float32), len(words)
    while parts:  # from the end, freeing each block, so that hardly a vector is held twice
        block = parts.pop().matrix
        start -= len(block)
        matrix[start : start + len(block)] = block
    return Vectors(words, matrix, tally.notes(path, layout))


def blocks(
    path: Path, wanted: Container[str] | None = None, tally: Tally | None = None, rows: int = ROWS
) -> Iterator[Vectors]:
    """The result of `read`, some rows at a time."""
    layout, tally = detect_layout(path), tally or Tally()
    parse = _binary_row if layout.binary else _text_row
    entries = _wanted(_entries(path, layout, tally), wanted, tally)
    while some := list(islice(entries, rows)):
        with np.errstate(over="ignore"):  # a number that is too large is found to be infinite
            matrix = np.stack([parse(path, entry, layout.dim) for entry in some])
        yield Vectors([entry.word for entry in some], matrix)
    if not tally.read:
        raise ValueError(f"{path} contains no words: {SUPPORTED}")


def words(path: Path, tally: Tally | None = None) -> Iterator[str]:
    """The words only, which is much faster: no vector is parsed."""
    tally = tally or Tally()
    yield from (entry.word for entry in _wanted(_entries(path, detect_layout(path), tally), None, tally))


def _entries(path: Path, layout: Layout, tally: Tally) -> Iterator[Entry]:
    with open_unpacked(path) as file:
        yield from (_binary if layout.binary else _text)(file, path, layout, tally)


def _wanted(entries: Iterator[Entry], wanted: Container[str] | None, tally: Tally) -> Iterator[Entry]:
    """The first entry of each wanted word."""
    seen: set[str] = set()
    for entry in entries:
        tally.read += 1
        if wanted is not None and entry.word not in wanted:
            continue
        tally.nameless += not entry.word
        tally.repeated += entry.word in seen
        if entry.word and entry.word not in seen:
            seen.add(entry.word)
            yield entry


def _text(file: BufferedIOBase, path: Path, layout: Layout, tally: Tally) -> Iterator[Entry]:
    for number, raw in enumerate(file, 1):
        line = (raw.removeprefix(BOM) if number == 1 else raw).rstrip()
        if not line or (number == 1 and layout.count is not None):
            continue
        name, numbers = split_line(line, layout.dim)
        if numbers is None:
            raise ValueError(_broken(path, number, line, layout.dim))
        yield Entry(_word(name, tally), number, numbers)


def _text_row(path: Path, entry: Entry, dim: int) -> Float32[np.ndarray, " dim"]:
    try:
        row = np.array(entry.numbers.split(), dtype=np.float32)
    except ValueError:
        row = np.empty(0, np.float32)
    if len(row) != dim or not np.isfinite(row).all():
        raise ValueError(_broken(path, entry.number, entry.word.encode() + b" " + entry.numbers, dim))
    return row


def _broken(path: Path, number: int, line: bytes, dim: int) -> str:
    shown = line[:40].decode("utf-8", "replace") + "…" * (len(line) > 40)
    return f"{path}, line {number:,} is broken: {shown!r} is not a word followed by {dim} numbers"


def _binary(file: BufferedIOBase, path: Path, layout: Layout, tally: Tally) -> Iterator[Entry]:
    file.readline()
    size, buffer, start = 4 * layout.dim, b"", 0
    for number in range(1, layout.count + 1):
        while (space := buffer.find(b" ", start)) < 0 or len(buffer) <= space + size:
            more = file.read(CHUNK)
            if not more or (space < 0 and len(buffer) - start > CHUNK):
                raise ValueError(
                    f"{path} is damaged or truncated: it declares {layout.count:,} words of {layout.dim} numbers in "
                    f"its header, but number {number:,} is incomplete: copy it again"
                )
            buffer, start = buffer[start:] + more, 0
        name, start = buffer[start:space].lstrip(b"\r\n"), space + 1 + size
        yield Entry(_word(name, tally), number, buffer[space + 1 : start])
    tally.longer = bool((buffer[start:] + file.read(CHUNK)).strip())


def _binary_row(path: Path, entry: Entry, dim: int) -> Float32[np.ndarray, " dim"]:
    row = np.frombuffer(entry.numbers, "<f4").astype(np.float32)
    if not np.isfinite(row).all():
        raise ValueError(
            f"{path} is damaged: the vector of word {entry.number:,}, {entry.word!r}, is not all finite numbers"
        )
    return row


def _word(name: bytes, tally: Tally) -> str:
    try:
        return unicodedata.normalize("NFC", name.decode("utf-8"))  # as vocabularies normalize words
    except UnicodeDecodeError:
        tally.odd += 1
        return name.decode("utf-8", "backslashreplace")
