"""The text files that a teacher writes block by block and continues after an interruption, with the hashes of its
blocks.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from heed.config import parse_json
from heed.data.readers import Line
from heed.files import sha256, write_text

Hashes = dict[str, list[str]]  # of the blocks of each file
MAX_LINES = 1_000_000  # of a block
LINES = "lines"  # beside the names of the files: how many lines a block has, where that is not the usual number


class Blocks:
    """The hashes of the written blocks, in a file next to them, of which each line adds to those before. Earlier
    versions had none: then all lines are accepted. Blocks have `usual` lines unless the file says otherwise.
    """

    def __init__(self, path: Path, usual: int, warn: Callable[[str], None] = lambda sentence: None):
        self.path, self.usual, self.warn = path, usual, warn
        self.known = path.is_file()
        self.hashes: Hashes = read_hashes(path) if self.known else {}
        self.size = _size(self.hashes.pop(LINES, [str(usual)]), path)

    def of_size(self, size: int) -> None:
        """Begin with blocks of so many lines; those that are written already stay as they are, and so does their size."""
        if not self.known:
            self.size = size

    def intact(self, paths: Sequence[Path], total: int) -> int:
        """How many lines all files have, in whole intact blocks; damaged ones are reported."""
        done = min(count_lines(path) for path in paths)
        done = done if done == total else done - done % self.size
        for path in paths:
            own = block_hashes(path, done, self.size)
            stated = self.hashes.get(path.name, []) if self.known else own
            right = next((n for n, pair in enumerate(zip(own, stated, strict=False)) if pair[0] != pair[1]), None)
            if right is not None:
                self.warn(f"{path} is damaged from line {right * self.size + 1:,} on: translating again from there.")
            whole = min(len(own), len(stated)) if right is None else right
            done = min(done, whole * self.size)
        return done

    def cut(self, paths: Sequence[Path], done: int) -> None:
        """Truncate the files to this many lines, and drop the hashes of the rest."""
        for path in paths:
            path.touch()
            with open(path, "rb") as file:
                size = sum(len(line) for line in islice(file, done))
            os.truncate(path, size)
            self.hashes[path.name] = block_hashes(path, done, self.size)
        self.write()

    def append(self, columns: Mapping[Path, Iterable[str]]) -> None:
        """Append a block to each file, and its hashes once all of them are on disk."""
        added: Hashes = {}
        for path, texts in columns.items():
            data = "".join(f"{text}\n" for text in texts).encode()
            append(path, data)
            added[path.name] = [hashlib.sha256(data).hexdigest()]
            self.hashes.setdefault(path.name, []).extend(added[path.name])
        append(self.path, _line(added).encode())
        self.known = True

    def add_whole(self, path: Path) -> None:
        """Also keep the hash of a file that is not written in blocks."""
        self.hashes[path.name] = [sha256(path)]

    def write(self) -> None:
        self.known = True
        lines = {LINES: [str(self.size)]} if self.size != self.usual else {}
        write_text(self.path, _line(lines | self.hashes))

    def damaged(self, folder: Path) -> list[str]:
        """The names of the damaged files."""
        return [name for name, stated in self.hashes.items() if not self._is_right(folder / name, stated)]

    def _is_right(self, path: Path, stated: list[str]) -> bool:
        if not path.is_file():
            return False
        return stated in ([sha256(path)], block_hashes(path, sys.maxsize, self.size))


def read_hashes(path: Path) -> Hashes:
    """The hashes of a file. An incomplete last line is ignored: its block was being written when the process was
    killed.
    """
    try:
        text = path.read_text("utf-8")
        try:
            parts = [parse_json(text)]  # earlier versions wrote one value in many lines
        except ValueError:
            parts = [parse_json(line) for line in text.split("\n")[:-1]]
        found: Hashes = {}
        for name, own in ((name, own) for part in parts for name, own in part.items()):
            found.setdefault(str(name), []).extend(map(str, own))
    except (ValueError, TypeError, AttributeError):
        parts = []
    if not parts:
        raise ValueError(f"{path} is damaged: restore it, or remove it if the files next to it are unchanged")
    return found


def _size(stated: list[str], path: Path) -> int:
    if len(stated) != 1 or not stated[0].isdecimal() or not 0 < int(stated[0]) <= MAX_LINES:
        raise ValueError(f"{path} is damaged: restore it, or remove it if the files next to it are unchanged")
    return int(stated[0])


def _line(hashes: Hashes) -> str:
    return json.dumps(hashes) + "\n"


def block_hashes(path: Path, lines: int, size: int) -> list[str]:
    """The hashes of the blocks formed by the first lines of a file; the last one may be shorter."""
    if not lines:
        return []
    with open(path, "rb") as file:
        rows = islice(file, lines)
        blocks = iter(lambda: b"".join(islice(rows, size)), b"")
        return [hashlib.sha256(block).hexdigest() for block in blocks]


def check_count(paths: Sequence[Path], total: int) -> None:
    """Refuse files with more lines than there are to translate."""
    for path in paths:
        if (count := count_lines(path)) > total:
            raise ValueError(
                f"{path} has {count:,} lines, but there are {total:,} to translate: the text has changed since; "
                "restore it, or start over with another --out"
            )


def count_lines(path: Path) -> int:
    """The number of complete lines."""
    if not path.is_file():
        return 0
    with open(path, "rb") as file:
        return sum(line.endswith(b"\n") for line in file)


def check_same(lines: Iterator[Line], path: Path, done: int) -> None:
    """Skip the translated lines, and check that they belong to this text."""
    with open(path, "rb") as file:
        for number, (raw, line) in enumerate(zip(file, islice(lines, done), strict=True), 1):
            if raw != f"{line.source}\n".encode():
                raise ValueError(
                    f"{path}, line {number} is not {line.location}: the text has changed since it was translated; "
                    "restore it, or start over with another --out"
                )


def append(path: Path, data: bytes) -> None:
    """Append to a file, and wait until it is on disk."""
    with open(path, "ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
