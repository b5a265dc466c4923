"""The text that the encoders of docs/results.md read in pre-training: `python -m bench.reading --prose prose.txt --out text/en.txt.xz`.

One text out of several, a sentence on each line and a blank line between documents. `--prose` files have this form already (`bench.prose` makes them);
`--wiki` files have a paragraph on each line, as WikiText has, with its tokens joined and sentences with unknown words left out; `--rows` and `--sentences`
are lines of a file, or a column of a table (FILE:2, counted from 0), which follow each other, or each stand alone. `--long FILE` puts long documents of
the prose into a file of their own, and not into the text. Sentences of `--without` files are left out, and so are documents of fewer than `--least`
characters.
"""

import argparse
import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from heed.data.readers import lines
from heed.text.sentences import split

PART = 64  # rows of a document where the file does not say where one ends
LONG, EVERY, MOST = 30_000, 3, 90  # characters of a long document; every third one is put aside, up to 90
HEADING = re.compile(r"\s*=( =)* [^=].* =\s*")
JOINED = re.compile(r" @([-,.])@ ")
BEFORE, AFTER = re.compile(r" (?=[,.;:!?)\]%]|'s\b|n't\b)"), re.compile(r"(?<=[(\[$]) ")

Document = list[str]


def prose(path: Path) -> Iterator[Document]:
    """Documents with a blank line between them."""
    found: Document = []
    for line in [*lines(path), ""]:
        if line.strip():
            found.append(line.strip())
        elif found:
            yield found
            found = []


def wiki(path: Path) -> Iterator[Document]:
    """The articles of WikiText, in sentences."""
    found: Document = []
    for line in lines(path):
        if HEADING.fullmatch(line):
            if "= =" not in line and found:  # the title of an article
                yield found
                found = []
        elif line.strip():
            found += [sentence for sentence in split(joined(line), "en") if "<unk>" not in sentence]
    if found:
        yield found


def joined(line: str) -> str:
    """A paragraph of WikiText with its tokens joined to words."""
    return AFTER.sub("", BEFORE.sub("", JOINED.sub(r"\1", line.strip()))).replace(' " ', ' "')


def cells(where: str) -> Iterator[str]:
    """The lines of a file, or a column of a table."""
    path, colon, column = where.rpartition(":")
    if not (colon and column.isdigit()):
        path, column = where, ""
    for number, line in enumerate(lines(Path(path)), 1):
        row = line.split("\t")
        if column and int(column) >= len(row):
            raise ValueError(f"{path}:{number} has {len(row)} columns; there is no column {column}")
        if text := (row[int(column)] if column else line).strip():
            yield text


def rows(where: str) -> Iterator[Document]:
    """Lines that follow each other, in documents of equal length."""
    every = list(cells(where))
    return (every[start : start + PART] for start in range(0, len(every), PART))


def sentences(where: str) -> Iterator[Document]:
    """Documents of a line each, without repetition."""
    return ([text] for text in dict.fromkeys(cells(where)))


def put_aside(documents: Iterable[Document], aside: list[Document]) -> Iterator[Document]:
    """All documents but those that are put aside: every third long one."""
    number = 0
    for document in documents:
        if sum(map(len, document)) >= LONG:
            number += 1
            if number % EVERY == 0 and len(aside) < MOST:
                aside.append(document)
                continue
        yield document


def write(path: Path, documents: Iterable[Document], without: set[str], least: int = 0) -> tuple[int, int, int]:
    """How many documents, sentences and characters were written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    counts = [0, 0, 0]
    with lzma.open(path, "wt", encoding="utf-8", newline="\n") as out:
        for document in documents:
            kept = [sentence for sentence in document if sentence not in without]
            if kept and sum(map(len, kept)) >= least:
                out.write("\n".join(kept) + "\n\n")
                for i, more in enumerate((1, len(kept), sum(map(len, kept)))):
                    counts[i] += more
    return counts[0], counts[1], counts[2]


def main(words: Sequence[str] | None = None) -> int:
    top = argparse.ArgumentParser(
        prog="python -m bench.reading", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    files: dict = {"nargs": "+", "default": [], "metavar": "FILE"}
    top.add_argument("--prose", **files, help="sentences, with blank lines between documents")
    top.add_argument("--wiki", **files, help="WikiText")
    top.add_argument("--rows", **files, help="lines, or FILE:COLUMN of a table, that follow each other")
    top.add_argument("--sentences", **files, help="lines, or FILE:COLUMN of a table, that each stand alone")
    top.add_argument("--without", **files, help="texts made by this command, whose sentences are left out")
    top.add_argument("--long", type=Path, metavar="FILE", help="for long documents of the prose")
    top.add_argument("--least", type=int, default=0, metavar="N", help="characters of a document (default: 0)")
    top.add_argument("--out", type=Path, required=True, metavar="FILE.xz")
    args = top.parse_args(words)
    try:
        without = {line.strip() for path in args.without for line in lines(Path(path)) if line.strip()}
        aside: list[Document] = []
        own = (document for path in args.prose for document in prose(Path(path)))
        parts = [put_aside(own, aside) if args.long else own]
        parts += [
            reader(where) for reader, given in ((rows, args.rows), (sentences, args.sentences)) for where in given
        ]
        parts += [wiki(Path(path)) for path in args.wiki]
        counts = write(args.out, (document for part in parts for document in part), without, args.least)
        shown = "{}: {:,} documents, {:,} sentences, {:,} characters"
        print(shown.format(args.out, *counts))
        if args.long:
            print(shown.format(args.long, *write(args.long, aside, without)))
    except (ValueError, OSError) as error:
        raise SystemExit(f"error: {error}") from None
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
