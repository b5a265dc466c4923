"""The layout of a word vector file, detected from its content, not its name."""

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

from heed.files import check_file

SAMPLE = 1 << 16  # bytes
SAMPLE_LINES = 10
MOST = 1 << 20  # numbers of a vector: a thousand times those of any
SUPPORTED = "heed reads word2vec (text or binary), GloVe and fastText .vec, plain, gzipped or xz"
COMPRESSED = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}  # by magic number
UNSUPPORTED = {
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"\xba\x16\x4f\x2f": "a fastText model, which contains subwords: use the .vec file that comes with it",
    b"BZh": "compressed with bzip2: decompress it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstandard: decompress it first",
}
BOM = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"\s*(\d{1,18})[ \t]+(\d{1,18})\s*")
FRACTION = re.compile(rb"[+-]?\d*\.\d{3,}(?:[eE][+-]?\d+)?")  # a number of a vector, hardly a word
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


class Layout(NamedTuple):
    """`count` is the number of words according to the header; None without a header."""

    binary: bool
    dim: int
    count: int | None

    @property
    def name(self) -> str:
        if self.binary:
            return "word2vec, binary"
        return "text without a header (GloVe)" if self.count is None else "text with a header (word2vec, fastText)"


def detect_layout(path: Path) -> Layout:
    with open_unpacked(path) as file:
        sample = file.read(SAMPLE).removeprefix(BOM)
    if not sample.strip():
        raise ValueError(f"{path} is empty")
    lines = sample.split(b"\n")
    if len(sample) >= SAMPLE - len(BOM) and len(lines) > 1:
        lines.pop()  # it is incomplete
    header = _HEADER.fullmatch(lines[0])
    lines = [line for line in (lines[1:] if header else lines) if line.strip()][:SAMPLE_LINES]
    lengths = Counter(count for count in map(_count_numbers, lines) if count)
    common = lengths.most_common(1)[0][0] if lengths else None
    if header is None:
        if common is None or b"\0" in sample:
            raise ValueError(f"{path} does not start with a word followed by numbers: {SUPPORTED}")
        return Layout(False, common, None)
    count, dim = int(header[1]), int(header[2])
    if not 0 < dim <= MOST:
        raise ValueError(f"{path} declares vectors of {dim} numbers in its header: {SUPPORTED}")
    if common != dim and _is_binary(sample, count, dim):
        return Layout(True, dim, count)
    if common not in (dim, None) and 2 * sum(split_line(line, dim)[1] is None for line in lines) > len(lines):
        raise ValueError(f"{path} declares {dim} numbers per word in its header, but the next line has {common}")
    return Layout(False, dim, count)


@contextmanager
def open_unpacked(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file for reading bytes, decompressing if necessary."""
    check_file(path)
    with open(path, "rb") as file:
        magic = file.read(6)
    for prefix, what in UNSUPPORTED.items():
        if magic.startswith(prefix):
            raise ValueError(f"{path} is {what}; {SUPPORTED}")
    opener = next((opener for prefix, opener in COMPRESSED.items() if magic.startswith(prefix)), open)
    try:
        with opener(path, "rb") as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path} is damaged or truncated ({error}): copy it again") from error


def split_line(line: bytes, dim: int) -> tuple[bytes, bytes | None]:
    """The word, which may contain spaces, and its numbers; None if there are too few or too many."""
    if line.count(b" ") == dim and b"\t" not in line:
        name, _, numbers = line.partition(b" ")
        return name, numbers
    parts = line.rsplit(None, dim)
    if len(parts) == dim and line[:1].isspace():
        return b"", b" ".join(parts)
    if len(parts) <= dim or any(FRACTION.fullmatch(token) for token in parts[0].split()[1:]):
        return b"", None
    return parts[0].strip(), b" ".join(parts[1:])


def _count_numbers(line: bytes) -> int:
    """How many numbers are at the end of a line, after at least one word."""
    tokens = line.split()
    return next((i for i, token in enumerate(reversed(tokens[1:])) if not _is_number(token)), max(0, len(tokens) - 1))


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _is_binary(sample: bytes, count: int, dim: int) -> bool:
    """Binary floats are hardly ever UTF-8, or contain control characters; a small file can be parsed to its end."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)  # the sample may end within a character
    except UnicodeDecodeError:
        return True
    if _CONTROL.search(sample):
        return True
    if b"\n" not in sample:
        return False
    position = sample.index(b"\n") + 1
    for _ in range(count):
        space = sample.find(b" ", position)
        position = space + 1 + 4 * dim
        if space < 0 or position > len(sample):
            return False
    return count > 0 and not sample[position:].strip()
