"""Shared by heed classify and heed evaluate for classifiers: texts from lines and tables, and their scores."""

import argparse
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


def _examples(args: argparse.Namespace, product: Any) -> tuple[list[str], list[str]]:
    """Texts and their reference labels."""
    from heed.cli.common import read_lines
    from heed.vocabularies.labels import Labels

    if args.tsv:
        wanted = columns(args, product, labelled=True)
        lines = list(product.table()(Path(args.tsv), wanted))
        return [line.source for line in lines], [Labels([]).clean(line.target) for line in lines]
    texts = [product.joined(line) for line in read_lines(args.source)]
    right = [Labels([]).clean(line) for line in read_lines(args.reference[0])]
    if len(texts) != len(right):
        raise ValueError(
            f"{args.source} has {len(texts):,} lines and {args.reference[0]} {len(right):,}: they must correspond line "
            "by line"
        )
    return texts, right


def evaluate(args: argparse.Namespace) -> int:
    from heed.cli.common import errors, open_product, write_lines
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
    texts, right = _examples(args, models[0])
    seen = show_seen_texts(names, texts)
    read = [model.read(texts, too_long="cut") for model in models]
    for model, own in zip(models, read, strict=True):
        if own.cut:
            line = f"{own.cut:,} of {len(texts):,} texts are longer than the model reads, {model.most:,} subwords with special tokens, and were truncated."
            errors().print(f"[dim]{line}[/]", highlight=False, soft_wrap=True)
    outputs = [model.outputs_of(own) for model, own in zip(models, read, strict=True)]
    found = [model.predictions(own) for model, own in zip(models, outputs, strict=True)]
    expected = models[0].expected(right)
    if any(model.labels != models[0].labels for model in models[1:]):
        raise ValueError(f"{' and '.join(names)} have different labels: they cannot be compared")
    show_scores(args, models[0].measure, found, expected, f"{len(texts):,} texts", {"trained_on": seen})
    if args.out:
        told = (models[0].label(text, row).label for text, row in zip(texts, outputs[0], strict=True))
        write_lines(told, args.out)
    return 0
