"""The text files that a teacher writes, line by line, and continues where it stopped."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from heed.data.readers import Line


def whole_blocks(paths: Sequence[Path], total: int, block: int) -> int:
    """The number of lines that all of these files have, in whole blocks; the rest is cut off."""
    counts = {path: count_lines(path) for path in paths}
    for path, count in counts.items():
        if count > total:
            raise ValueError(
                f"{path} has {count:,} lines, but there are {total:,} to translate: the text has changed since; put it "
                "back, or start again with another --out"
            )
    done = min(counts.values())
    if done < total:
        done -= done % block
    for path in paths:
        path.touch()
        with open(path, "rb") as file:
            size = sum(len(line) for line in islice(file, done))
        os.truncate(path, size)
    return done


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
                    f"{path}, line {number} is not {line.location}: the text has changed since it was translated; put it back, "
                    "or start again with another --out"
                )


def append(path: Path, texts: Iterable[str]) -> None:
    """Append texts, and wait until they are on the disk."""
    with open(path, "ab") as file:
        file.write("".join(f"{text}\n" for text in texts).encode())
        file.flush()
        os.fsync(file.fileno())
