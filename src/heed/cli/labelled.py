"""Shared by heed classify and heed evaluate for classifiers: texts from lines and tables, and their scores."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any


def add_table(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--tsv", metavar="FILE", help=f"{what} from a table: TSV, or JSON lines (.jsonl)")
    parser.add_argument(
        "--columns",
        nargs="+",
        metavar="COLUMN",
        help="its columns, by number or name: the texts and, for evaluate, the label (default: those used in training)",
    )


def add_too_long(parser: argparse.ArgumentParser, usual: str | None = "refuse", whose: str = "") -> None:
    line = f"{whose}how to handle texts too long for the model"
    shown = "" if usual else " (default: cut, and say how many)"
    parser.add_argument("--too-long", choices=["refuse", "cut"], default=usual, help=line + shown)


class Cut:
    """How many texts were read, and how many of them were truncated."""

    def __init__(self, total: int = 0, count: int = 0):
        self.total, self.count = total, count

    def add(self, texts: int, cut: int) -> None:
        self.total, self.count = self.total + texts, self.count + cut

    def add_notes(self, notes: Iterable[Sequence[int] | None]) -> None:
        """What the journal of a file records of its chunks; earlier versions recorded nothing."""
        for own in notes:
            self.add(*(own or (0, 0)))

    def say(self, room: int, name: str = "") -> None:
        """On standard error, if there are any; `room` is the most subwords that the model reads of a text."""
        from heed.cli.common import errors

        if self.count:
            which = f"{name}: " if name else ""
            line = f"{which}{self.count:,} of {self.total:,} texts were cut to {room:,} subwords, the most that the model reads."
            errors().print(line, markup=False, highlight=False, soft_wrap=True)


def columns(args: argparse.Namespace, product: Any, labelled: bool) -> list[int | str]:
    """The columns given, else those used in training; without the label if it is not needed."""
    if args.columns:
        return [int(name) if name.isdecimal() else name for name in args.columns]
    known = product.facts.get("columns")
    if not known:
        raise ValueError(f"{args.tsv}: the model was not trained on a table; give the columns with --columns")
    return known if labelled else known[:-1]


def table_texts(args: argparse.Namespace, product: Any) -> list[list[str]]:
    """The texts of a table, in parts."""
    from heed.data.tables import rows

    path = Path(args.tsv)
    found = rows(path, columns(args, product, labelled=False))
    return [product.parts(cells, f"{path}, line {number}") for number, cells in found]


def in_file(path: str, first: int = 1) -> Callable[[int], str]:
    """The beginning of an error about the line with this index; the file's first is line `first`."""
    return lambda index: f"{path}, line {index + first}: "


def _examples(args: argparse.Namespace, product: Any) -> tuple[list[str], list[str], Callable[[int], str]]:
    """Texts and their reference labels, and where each label is."""
    from heed.cli.common import read_lines
    from heed.vocabularies.labels import Labels

    if args.tsv:
        wanted = columns(args, product, labelled=True)
        lines = list(product.table()(Path(args.tsv), wanted))
        first = int(lines[0].location.rpartition(":")[2]) if lines else 1
        return (
            [line.source for line in lines],
            [Labels([]).clean(line.target) for line in lines],
            in_file(args.tsv, first),
        )
    texts = [product.joined(line) for line in read_lines(args.source)]
    right = [Labels([]).clean(line) for line in read_lines(args.reference[0])]
    if len(texts) != len(right):
        raise ValueError(
            f"{args.source} has {len(texts):,} lines and {args.reference[0]} {len(right):,}: they must correspond line "
            "by line"
        )
    return texts, right, in_file(args.reference[0])


def evaluate(args: argparse.Namespace) -> int:
    from heed.cli.common import open_product, write_lines
    from heed.cli.scores import show_scores
    from heed.cli.seen import show_seen_texts
    from heed.loading import product_of

    if not args.tsv and not (args.source and args.reference):
        raise ValueError(
            f"{args.system} is {product_of(args.system).noun}: give texts and labels with --tsv FILE, or with --source "
            "FILE and --reference FILE"
        )
    names = [name for name in (args.system, args.against) if name]
    models = [open_product(args, "classify", [name]) for name in names]
    texts, right, where = _examples(args, models[0])
    if any(model.labels != models[0].labels for model in models[1:]):
        raise ValueError(f"{' and '.join(names)} have different labels: they cannot be compared")
    expected = models[0].expected(right, where)
    seen = show_seen_texts(names, texts)
    read = [model.read(texts, too_long=args.too_long or "cut") for model in models]
    for name, model, own in zip(names, models, read, strict=True):
        Cut(len(texts), own.cut).say(model.room, name)
    outputs = [model.outputs_of(own) for model, own in zip(models, read, strict=True)]
    found = [model.predictions(own) for model, own in zip(models, outputs, strict=True)]
    more = {"trained_on": seen, "cut": {name: own.cut for name, own in zip(names, read, strict=True)}}
    show_scores(args, models[0].measure, found, expected, f"{len(texts):,} texts", more)
    if args.out:
        write_lines((one.label for one in models[0].labelling(texts, outputs[0])), args.out)
    return 0
