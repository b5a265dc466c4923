"""Read lines and pairs from UTF-8 text files, plain, .gz or .xz. The encoding is checked."""

import gzip
import lzma
import zlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from heed.files import check_file

OPENERS = {".gz": gzip.open, ".xz": lzma.open}


class Line(NamedTuple):
    """A pair of texts, and its origin as file:line; `corpus` is the number of its corpus, if there are several."""

    source: str
    target: str
    location: str
    corpus: int = 0


def lines(path: Path) -> Iterator[str]:
    """The lines of a file without line breaks. Only a line feed ends a line."""
    check_file(path)
    number = 0
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as file:
            for number, raw in enumerate(file, 1):
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number} is not UTF-8 (byte {error.object[error.start]:#04x} at {error.start}): "
            "convert the file first, for example with iconv -t UTF-8"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path} is damaged after line {number} ({error}): copy it again") from error
    if number == 0:
        raise ValueError(f"{path} is empty")


def pairs(sources: Sequence[Path], targets: Sequence[Path]) -> Iterator[Line]:
    """The pairs of parallel files, line by line."""
    if len(sources) != len(targets):
        raise ValueError(f"{len(sources)} source files and {len(targets)} target files: there must be as many of both")
    for source, target in zip(sources, targets, strict=True):
        both = zip_longest(lines(source), lines(target))
        for number, (source_line, target_line) in enumerate(both, 1):
            if source_line is None or target_line is None:
                rest = 1 + sum(1 for _ in both)
                short, long = (source, target) if source_line is None else (target, source)
                raise ValueError(
                    f"{short} has {number - 1:,} lines and {long} has {number - 1 + rest:,}: each line must be the "
                    "translation of the same line in the other"
                )
            yield Line(source_line, target_line, f"{source.name}:{number}")


def texts(paths: Sequence[Path]) -> Iterator[Line]:
    """Monolingual text, one text per line: both sides of each pair are the same."""
    for path in paths:
        for number, line in enumerate(lines(path), 1):
            yield Line(line, line, f"{path.name}:{number}")
