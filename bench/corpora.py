"""Parallel text files out of a table: `python -m bench.corpora FILE.tsv --columns 0 1 --names en de --out FOLDER`.

Writes a file for each column, with a sentence on each line: FOLDER/FILE.en.xz and FOLDER/FILE.de.xz. With `--held-out SHARE` there are three parts,
train, valid and test (train.en.xz, ...): the hash of the first column says to which part a row belongs, so rows with the same sentence stay together,
and the parts are the same on each machine.
"""

import argparse
import hashlib
import lzma
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from heed.data.readers import lines

BUCKETS = 1_000_000


def part(sentence: str, share: float) -> str:
    """The part of a row: `share` of all sentences are for validation, and as many for the test."""
    bucket = int(hashlib.sha256(sentence.encode()).hexdigest(), 16) % BUCKETS
    return "valid" if bucket < share * BUCKETS else "test" if bucket < 2 * share * BUCKETS else "train"


def write(table: Path, columns: Sequence[int], names: Sequence[str], out: Path, share: float | None) -> dict[str, int]:
    """How many rows each part has."""
    out.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {}
    with ExitStack() as files:
        opened = {}
        for number, line in enumerate(lines(table), 1):
            cells = line.split("\t")
            if max(columns) >= len(cells):
                raise ValueError(f"{table}:{number} has {len(cells)} columns; there is no column {max(columns)}")
            row = [cells[column] for column in columns]
            own = table.name.partition(".")[0] if share is None else part(row[0], share)
            for name, text in zip(names, row, strict=True):
                if (own, name) not in opened:
                    path = out / f"{own}.{name}.xz"
                    opened[own, name] = files.enter_context(lzma.open(path, "wt", encoding="utf-8", newline="\n"))
                opened[own, name].write(f"{text}\n")
            counts[own] = counts.get(own, 0) + 1
    return counts


def main(words: Sequence[str] | None = None) -> int:
    top = argparse.ArgumentParser(
        prog="python -m bench.corpora", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("table", type=Path, help="columns are separated by tabs; plain, .gz or .xz")
    top.add_argument("--columns", type=int, nargs="+", required=True, metavar="N", help="from 0")
    top.add_argument(
        "--names", nargs="+", required=True, metavar="NAME", help="of the columns, as in file names: en de"
    )
    top.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    top.add_argument(
        "--held-out", type=float, metavar="SHARE", help="of sentences for validation, and as many for the test"
    )
    args = top.parse_args(words)
    if len(args.columns) != len(args.names):
        top.error(f"{len(args.columns)} columns have {len(args.names)} names")
    if args.held_out is not None and not 0 < args.held_out < 0.5:
        top.error(f"--held-out is {args.held_out}; it must be above 0 and below 0.5")
    try:
        counts = write(args.table, args.columns, args.names, args.out, args.held_out)
    except (ValueError, OSError) as error:
        raise SystemExit(f"error: {error}") from None
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
