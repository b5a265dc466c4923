"""Shared by the synthetic corpora: random draws, the split into train, valid and test, and files."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

from heed.files import atomic_file

SPLITS = ("train", "valid", "test")
MAX_MISSES = 100_000  # draws in a row without anything new, after which a split is exhausted


def pick(rng: Random, options: Sequence) -> Any:
    """One of the options, at random."""
    return options[int(rng.random() * len(options))]


def split_of_key(key: str) -> str:
    """The split by a hash of a text: 90% train, 5% valid, 5% test."""
    bucket = crc32(key.encode()) % 100
    return "train" if bucket < 90 else "valid" if bucket < 95 else "test"


def write_split(folder: Path, split: str, endings: Sequence[str], rows: Iterable[Sequence[str]]) -> dict[str, Path]:
    """Write one file per ending (train.ko, train.en), each with one cell of every row per line."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {f"{split}.{ending}": folder / f"{split}.{ending}" for ending in endings}
    with ExitStack() as stack:
        parts = [stack.enter_context(atomic_file(path)) for path in paths.values()]
        files = [stack.enter_context(part.open("w", encoding="utf-8", newline="\n")) for part in parts]
        for row in rows:
            for file, line in zip(files, row, strict=False):
                file.write(line + "\n")
    return paths
