"""Word vectors out of files: word2vec's two formats, GloVe's and fastText's `.vec`.

A file is read once, from its beginning to its end; what it takes in memory is the words that were asked for.
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

from heed.data.vectors.layout import BOM, READS, Layout, cut, layout, opened

CHUNK = 1 << 20  # bytes that are read at once
ROWS = 4096


class Vectors(NamedTuple):
    """Words and a row for each. `notes` are sentences: what was odd in the file."""

    words: list[str]
    matrix: Float32[np.ndarray, "words dim"]
    notes: tuple[str, ...] = ()


class Entry(NamedTuple):
    """A word as it stands in a file: in which line, or as which of its words, and with its numbers not read yet."""

    word: str
    place: int
    numbers: bytes


@dataclass
class Tally:
    """What was met in a file, counted while it is read."""

    read: int = 0
    repeated: int = 0
    nameless: int = 0
    odd: int = 0
    longer: bool = False

    def notes(self, path: Path, known: Layout) -> tuple[str, ...]:
        said = []
        if known.count not in (None, self.read):
            said.append(f"{path} promises {known.count:,} words in its first line and has {self.read:,}.")
        if self.longer:
            said.append(
                f"{path} goes on after the {known.count:,} words that its first line promises: that is not read."
            )
        if self.repeated:
            said.append(f"{path} has {self.repeated:,} vectors of words that had one already: the first counts.")
        if self.nameless:
            said.append(f"{path} has {self.nameless:,} vectors without a word: they are left out.")
        if self.odd:
            said.append(f"{path} has {self.odd:,} words that are not UTF-8: their bytes stand as \\xNN.")
        return tuple(said)


def read(path: Path, wanted: Container[str] | None = None) -> Vectors:
    """The vectors of the words that are in `wanted` (a set, say) and in the file, in its order; None: of all words."""
    tally, known = Tally(), layout(path)
    found = list(blocks(path, wanted, tally))
    words = [word for block in found for word in block.words]
    matrix, place = np.empty((len(words), known.dim), np.float32), len(words)
    while found:  # from behind, so that hardly a vector is held twice
        block = found.pop().matrix
        place -= len(block)
        matrix[place : place + len(block)] = block
    return Vectors(words, matrix, tally.notes(path, known))


def blocks(
    path: Path, wanted: Container[str] | None = None, tally: Tally | None = None, rows: int = ROWS
) -> Iterator[Vectors]:
    """What `read` reads, some rows at a time."""
    known, tally = layout(path), tally or Tally()
    row = _binary_row if known.binary else _text_row
    entries = _wanted(_entries(path, known, tally), wanted, tally)
    while some := list(islice(entries, rows)):
        yield Vectors([entry.word for entry in some], np.stack([row(path, entry, known.dim) for entry in some]))
    if not tally.read:
        raise ValueError(f"{path} holds no words: {READS}")


def words(path: Path, tally: Tally | None = None) -> Iterator[str]:
    """The words alone, which is quicker by far: no number is read."""
    tally = tally or Tally()
    yield from (entry.word for entry in _wanted(_entries(path, layout(path), tally), None, tally))


def _entries(path: Path, known: Layout, tally: Tally) -> Iterator[Entry]:
    with opened(path) as file:
        yield from (_binary if known.binary else _text)(file, path, known, tally)


def _wanted(entries: Iterator[Entry], wanted: Container[str] | None, tally: Tally) -> Iterator[Entry]:
    """Of each word that is wanted the first."""
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


def _text(file: BufferedIOBase, path: Path, known: Layout, tally: Tally) -> Iterator[Entry]:
    for number, raw in enumerate(file, 1):
        line = (raw.removeprefix(BOM) if number == 1 else raw).rstrip()
        if not line or (number == 1 and known.count is not None):
            continue
        name, numbers = cut(line, known.dim)
        if numbers is None:
            raise ValueError(_broken(path, number, line, known.dim))
        yield Entry(_word(name, tally), number, numbers)


def _text_row(path: Path, entry: Entry, dim: int) -> Float32[np.ndarray, " dim"]:
    try:
        row = np.array(entry.numbers.split(), dtype=np.float32)
    except ValueError:
        row = np.empty(0, np.float32)
    if len(row) != dim or not np.isfinite(row).all():
        raise ValueError(_broken(path, entry.place, entry.word.encode() + b" " + entry.numbers, dim))
    return row


def _broken(path: Path, number: int, line: bytes, dim: int) -> str:
    shown = line[:40].decode("utf-8", "replace") + "…" * (len(line) > 40)
    return f"{path}, line {number:,} is broken: {shown!r} is not a word with {dim} numbers after it"


def _binary(file: BufferedIOBase, path: Path, known: Layout, tally: Tally) -> Iterator[Entry]:
    file.readline()
    size, buffer, place = 4 * known.dim, b"", 0
    for number in range(1, known.count + 1):
        while (space := buffer.find(b" ", place)) < 0 or len(buffer) <= space + size:
            more = file.read(CHUNK)
            if not more or (space < 0 and len(buffer) - place > CHUNK):
                raise ValueError(
                    f"{path} is cut short or damaged: it promises {known.count:,} words of {known.dim} numbers in its "
                    f"first line, and number {number:,} is not whole: copy it again"
                )
            buffer, place = buffer[place:] + more, 0
        name, begin, place = buffer[place:space].lstrip(b"\r\n"), space + 1, space + 1 + size
        yield Entry(_word(name, tally), number, buffer[begin:place])
    tally.longer = bool((buffer[place:] + file.read(CHUNK)).strip())


def _binary_row(path: Path, entry: Entry, dim: int) -> Float32[np.ndarray, " dim"]:
    row = np.frombuffer(entry.numbers, "<f4").astype(np.float32)
    if not np.isfinite(row).all():
        raise ValueError(
            f"{path} is damaged: the vector of word {entry.place:,}, {entry.word!r}, has what is no number"
        )
    return row


def _word(name: bytes, tally: Tally) -> str:
    try:
        return unicodedata.normalize("NFC", name.decode("utf-8"))  # as vocabularies write words
    except UnicodeDecodeError:
        tally.odd += 1
        return name.decode("utf-8", "backslashreplace")
