"""Features of recordings that are stored in one array, plain or .xz. They are mapped into memory, not read: an .xz file
is unpacked into a temporary file first.
"""

import io
import lzma
import math
import re
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from jaxtyping import Float

SCALE = re.compile(r"_x(\d+)\.")  # stored as whole numbers of this many parts
HEAD = 1 << 16  # bytes that contain the header of an array; numpy refuses one of more than 10,000
BLOCK = 1 << 20


@dataclass(frozen=True)
class StoredFeatures:
    """The stored values (frames, values), and what they are divided by."""

    values: np.ndarray
    scale: float

    @property
    def size(self) -> int:
        return self.values.shape[1]

    def __len__(self) -> int:
        return len(self.values)

    def frames(self, first: int, count: int) -> Float[np.ndarray, "frames dim"]:
        return np.asarray(self.values[first : first + count], np.float32) / np.float32(self.scale)


def open_features(path: Path) -> StoredFeatures:
    """The features of a file, as scaled integers if its name says so. The last file stays open until it changes."""
    try:
        own = path.stat()
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror})") from error
    return opened(path, own.st_size, (own.st_ino, own.st_mtime_ns))


@lru_cache(maxsize=1)
def opened(path: Path, size: int, version: tuple[int, int]) -> StoredFeatures:
    """The features of a file of `size` bytes, in this version of it."""
    try:
        with open(path, "rb") as file:
            values = _unpacked(file) if path.suffix == ".xz" else _mapped(file, size)
    except OSError as error:
        more = f"; {tempfile.gettempdir()} may be full: set TMPDIR to another folder" if path.suffix == ".xz" else ""
        raise ValueError(f"{path} cannot be read ({error.strerror}){more}") from error
    except Exception as error:  # of numpy's reader, which raises errors of many kinds
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is damaged, or not a NumPy array ({why}): copy it again") from None
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise ValueError(f"{path} has the shape {values.shape}; features must be a table of numbers")
    scale = SCALE.search(path.name)
    return StoredFeatures(values.T if values.shape[0] < values.shape[1] else values, float(scale[1]) if scale else 1.0)


class _Header(NamedTuple):
    """What a .npy file declares, and where its values begin."""

    shape: tuple[int, ...]
    by_column: bool
    kind: np.dtype
    start: int

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.kind.itemsize


def _header(head: bytes) -> _Header:
    start = io.BytesIO(head)  # a file would allocate whatever size of header it declares
    major, minor = np.lib.format.read_magic(start)
    if major not in (1, 2, 3):
        raise ValueError(f"its format has version {major}.{minor}, and 1 to 3 are known")
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, by_column, kind = read(start)
    if kind.hasobject or not kind.itemsize or any(size < 0 for size in shape):
        raise ValueError(f"it has values of type {kind} in the shape {shape}")
    return _Header(shape, by_column, kind, start.tell())


def _mapped(file: BinaryIO, size: int) -> np.ndarray:
    """The array in a .npy file of `size` bytes."""
    header = _header(file.read(HEAD))
    _check_size(header, size - header.start)
    return _map(file, header, header.start)


def _map(file: BinaryIO, header: _Header, start: int) -> np.ndarray:
    if not header.bytes:
        return np.zeros(header.shape, header.kind)
    order = "F" if header.by_column else "C"
    return np.memmap(file, header.kind, "r", start, header.shape, order)


def _check_size(header: _Header, size: int) -> None:
    if size != header.bytes:
        found = "more" if size > header.bytes else f"{size // header.kind.itemsize:,}"
        raise ValueError(f"it declares {math.prod(header.shape):,} values and has {found}")


def _unpacked(packed: BinaryIO) -> np.ndarray:
    """The array in a .npy.xz file. No more than it declares is unpacked."""
    with lzma.open(packed) as file, tempfile.TemporaryFile() as out:
        head = file.read(HEAD)
        header = _header(head)
        size, block = 0, head[header.start :]
        while block and size <= header.bytes:
            size += out.write(block)
            block = file.read(BLOCK)
        _check_size(header, size)
        out.flush()
        return _map(out, header, 0)
