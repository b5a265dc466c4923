"""Parallel text files out of a table: `python -m bench.corpora FILE.tsv --columns 0 1 --names en de --out FOLDER`.

Writes a file for each column, with a sentence on each line: FOLDER/FILE.en.xz and FOLDER/FILE.de.xz. With `--held-out SHARE` there are three parts,
train, valid and test (train.en.xz, ...): the hash of the first column says to which part a row belongs, so rows with the same sentence stay together,
and the parts are the same on each machine.

`python -m bench.corpora ko-en FOLDER --out ko-en` writes all files of recipes/ko-en.toml from the tables in a folder (docs/datasets.md).
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


def groups(rows: Sequence[Sequence[str]]) -> list[str]:
    """A name for each row; rows that share a text, or are connected by rows that do, have the same one."""
    above: dict[str, str] = {}

    def top(text: str) -> str:
        while (upper := above.setdefault(text, text)) != text:
            above[text] = above[upper]
            text = upper
        return text

    for row in rows:
        first, *others = sorted({top(text) for text in row})  # the top of a group is its smallest text
        above.update(dict.fromkeys(others, first))
    return [top(row[0]) for row in rows]


Pairs = dict[str, list[tuple[str, str]]]  # English and Korean, by part


def ko_en(data: Path) -> dict[str, Pairs]:
    """The corpora of recipes/ko-en.toml by name, each in its parts. No page, chapter or sentence is in two of them; nor is
    a sentence of STS-B and one that it is compared with.
    """
    docs = {
        own: _columns(data / f"ko-en-docs/{name}.tsv.xz", 1, 2)
        for name, own in (("train", "train"), ("dev", "valid"), ("test", "test"))
    }
    tatoeba = _columns(data / "tatoeba/kor-eng.tsv.xz", 0, 1)
    verses = _columns(data / "ko-en-bible/bible.tsv.xz", 0, 1, 2)
    chapters = [place.rpartition(".")[0] for place, *_ in verses]
    compared = [row for name in ("train", "dev") for row in _compared(data, name)]
    sides = [pair for row in compared for pair in (row[:2], row[2:])]
    each = [name for name in groups(compared) for _ in range(2)]
    return {
        "docs": {own: list(map(tuple, rows)) for own, rows in docs.items()},
        "tatoeba": _split(tatoeba, groups(tatoeba), 0.1),
        "bible": _split([row[1:] for row in verses], chapters, 0.025),
        "sts": _split(sides, each, 0.085),
    }


def _columns(table: Path, *columns: int) -> list[list[str]]:
    rows = [line.split("\t") for line in lines(table)]
    for number, row in enumerate(rows, 1):
        if len(row) <= max(columns):
            raise ValueError(f"{table}:{number} has {len(row)} columns; there is no column {max(columns)}")
    return [[row[column] for column in columns] for row in rows]


def _compared(data: Path, name: str) -> list[list[str]]:
    """The rows of STS-B with their Korean: two sentences in English and in Korean, first the first."""
    english = _columns(data / f"glue/STS-B/{name}.tsv.xz", 1, 2, 3, 7, 8)[1:]  # without the header
    korean = _columns(data / f"kor-nlu/KorSTS-sts-{name}.tsv.xz", 0, 1, 2, 5, 6)[1:]
    if [row[:3] for row in english] != [row[:3] for row in korean]:
        raise ValueError(f"{data}: the {name} rows of STS-B and KorSTS do not match: copy both again")
    return [[own[3], other[3], own[4], other[4]] for own, other in zip(english, korean, strict=True)]


def _split(pairs: Sequence[Sequence[str]], names: Sequence[str], share: float) -> Pairs:
    """Pairs by part; those whose rows have the same name stay together."""
    found: Pairs = {"train": [], "valid": [], "test": []}
    for (english, korean), name in zip(pairs, names, strict=True):
        found[part(name, share)].append((english, korean))
    return found


def write_ko_en(data: Path, out: Path) -> dict[str, int]:
    """How many pairs each part of each corpus has."""
    corpora = ko_en(data)  # all are read before one is written
    out.mkdir(parents=True, exist_ok=True)
    counts = {}
    for corpus, parts in corpora.items():
        for own, pairs in parts.items():
            for side, name in enumerate(("en", "ko")):
                with lzma.open(out / f"{corpus}.{own}.{name}.xz", "wt", encoding="utf-8", newline="\n") as file:
                    file.writelines(f"{pair[side]}\n" for pair in pairs)
            counts[f"{corpus}.{own}"] = len(pairs)
    return counts


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
    top.add_argument("table", type=Path, help="columns are separated by tabs; plain, .gz or .xz; or ko-en")
    top.add_argument("data", type=Path, nargs="?", metavar="FOLDER", help="of the tables, for ko-en")
    top.add_argument("--columns", type=int, nargs="+", default=[], metavar="N", help="from 0")
    top.add_argument("--names", nargs="+", default=[], metavar="NAME", help="of the columns, as in file names: en de")
    top.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    top.add_argument(
        "--held-out", type=float, metavar="SHARE", help="of sentences for validation, and as many for the test"
    )
    args = top.parse_args(words)
    all_four = args.data is not None
    if all_four and (str(args.table) != "ko-en" or args.columns or args.names or args.held_out is not None):
        top.error("a folder is for ko-en, which has no other option than --out")
    if not all_four and not args.columns:
        top.error("--columns is missing" if str(args.table) != "ko-en" else "ko-en needs the folder of its tables")
    if len(args.columns) != len(args.names):
        top.error(f"{len(args.columns)} columns have {len(args.names)} names")
    if args.held_out is not None and not 0 < args.held_out < 0.5:
        top.error(f"--held-out is {args.held_out}; it must be above 0 and below 0.5")
    try:
        if all_four:
            counts = write_ko_en(args.data, args.out)
        else:
            counts = write(args.table, args.columns, args.names, args.out, args.held_out)
    except (ValueError, OSError) as error:
        raise SystemExit(f"error: {error}") from None
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
