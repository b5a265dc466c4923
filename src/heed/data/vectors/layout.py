"""How a file of word vectors is written: known by what it holds, not by its name."""

import codecs
import gzip
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple

SAMPLE = 1 << 16  # bytes to know a file by
LOOKED = 10  # lines of them
READS = "heed reads word2vec (text or binary), GloVe and fastText .vec, plain, gzipped or xz"
PACKED = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}  # by how they begin
OTHERS = {
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"\xba\x16\x4f\x2f": "a model of fastText's, which holds pieces of words: take the .vec that comes with it",
    b"BZh": "packed by bzip2: unpack it first",
    b"\x28\xb5\x2f\xfd": "packed by zstandard: unpack it first",
}
BOM = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"\s*(\d+)[ \t]+(\d+)\s*")
FRACTION = re.compile(rb"[+-]?\d*\.\d{3,}(?:[eE][+-]?\d+)?")  # what is a number of a vector and no word
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


class Layout(NamedTuple):
    """`count` is what a file's first line promises; None where it has no such line."""

    binary: bool
    dim: int
    count: int | None

    @property
    def name(self) -> str:
        if self.binary:
            return "word2vec, binary"
        return "text without a header (GloVe)" if self.count is None else "text with a header (word2vec, fastText)"


def layout(path: Path) -> Layout:
    with opened(path) as file:
        sample = file.read(SAMPLE).removeprefix(BOM)
    if not sample.strip():
        raise ValueError(f"{path} is empty")
    lines = sample.split(b"\n")
    if len(sample) >= SAMPLE - len(BOM) and len(lines) > 1:
        lines.pop()  # it is cut
    header = _HEADER.fullmatch(lines[0])
    lines = [line for line in (lines[1:] if header else lines) if line.strip()][:LOOKED]
    lengths = Counter(count for count in map(_numbers, lines) if count)
    usual = lengths.most_common(1)[0][0] if lengths else None
    if header is None:
        if usual is None or b"\0" in sample:
            raise ValueError(f"{path} does not begin with a word and numbers after it: {READS}")
        return Layout(False, usual, None)
    count, dim = int(header[1]), int(header[2])
    if not dim:
        raise ValueError(f"{path} promises vectors of 0 numbers in its first line: {READS}")
    if usual != dim and _is_binary(sample, count, dim):
        return Layout(True, dim, count)
    if usual not in (dim, None) and 2 * sum(cut(line, dim)[1] is None for line in lines) > len(lines):
        raise ValueError(f"{path} promises {dim} numbers a word in its first line, but has {usual} in the next")
    return Layout(False, dim, count)


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a file, unpacked."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    with open(path, "rb") as file:
        magic = file.read(6)
    for begin, what in OTHERS.items():
        if magic.startswith(begin):
            raise ValueError(f"{path} is {what}; {READS}")
    opener = next((opener for begin, opener in PACKED.items() if magic.startswith(begin)), open)
    try:
        with opener(path, "rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path} is damaged or cut short ({error}): copy it again") from error


def cut(line: bytes, dim: int) -> tuple[bytes, bytes | None]:
    """The word, which may have spaces in it, and its numbers; None where there are too few or too many of them."""
    if line.count(b" ") == dim and b"\t" not in line:
        name, _, numbers = line.partition(b" ")
        return name, numbers
    parts = line.rsplit(None, dim)
    if len(parts) == dim and line[:1].isspace():
        return b"", b" ".join(parts)
    if len(parts) <= dim or any(FRACTION.fullmatch(token) for token in parts[0].split()[1:]):
        return b"", None
    return parts[0].strip(), b" ".join(parts[1:])


def _numbers(line: bytes) -> int:
    """How many numbers stand at the end of a line, after one word at least."""
    tokens = line.split()
    return next((i for i, token in enumerate(reversed(tokens[1:])) if not _is_number(token)), max(0, len(tokens) - 1))


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _is_binary(sample: bytes, count: int, dim: int) -> bool:
    """Numbers as bytes are hardly ever UTF-8, or hold what no text does; of a small file, all of it can be tried."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)  # its end may be cut
    except UnicodeDecodeError:
        return True
    if _CONTROL.search(sample):
        return True
    place = sample.index(b"\n") + 1
    for _ in range(count):
        space = sample.find(b" ", place)
        place = space + 1 + 4 * dim
        if space < 0 or place > len(sample):
            return False
    return count > 0 and not sample[place:].strip()
