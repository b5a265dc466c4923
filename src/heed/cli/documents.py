"""heed translate --file: a document into another, in the same format."""

import argparse
import os
import sys
from pathlib import Path

LINES = "text", "input", "nbest", "sample", "prefix", "scores", "token_scores", "align"  # not for documents


def run(args: argparse.Namespace, chosen: dict, glossary) -> int:
    from heed.cli.common import open_product
    from heed.files import write_bytes
    from heed.products.translator.documents import translate_document

    source, out = Path(args.file), _out(args)
    try:
        data = source.read_bytes()
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror}") from None
    _check(args, data)
    translator = open_product(args, "translate")
    with _Bar() as bar:
        done, missing = translate_document(
            translator, data, str(source), kind=args.format, column=args.column, glossary=glossary, progress=bar,
            too_long=args.too_long, batch_tokens=args.batch_tokens, **chosen,
        )  # fmt: skip
    write_bytes(out, done)
    tell_missing(missing)
    return 0


def _out(args: argparse.Namespace) -> Path:
    if given := [f"--{name.replace('_', '-')}" for name in LINES if getattr(args, name)]:
        raise ValueError(
            f"--file translates a document, and {given[0].replace('--text', 'a sentence')} is for lines: leave it out"
        )
    if args.out is None:
        raise ValueError("--file needs --out: the name of the file that is to be written")
    out = Path(args.out)
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; it must be the name of a file")
    if out.exists() and Path(args.file).exists() and os.path.samefile(out, args.file):
        raise ValueError(f"--out is the document itself, {out}: give it another name")
    if out.exists() and not args.force:
        raise ValueError(f"--out {out} is there already: give another name, or --force to write over it")
    _check_place(out)
    _check_kind(args, out)
    return out


def _check_place(out: Path) -> None:
    """What cannot be written in the end is told at the beginning."""
    folder = next(folder for folder in out.absolute().parents if folder.exists())
    if not folder.is_dir():
        raise ValueError(f"--out {out} cannot be written: {folder} is a file, not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"--out {out} cannot be written: there is no permission to write in {folder}")


def _check_kind(args: argparse.Namespace, out: Path) -> None:
    from heed.text.documents import KINDS, kind_of

    kind, other = args.format or kind_of(args.file), KINDS.get(out.suffix.lower())
    if other not in (None, kind) and args.format is None:
        raise ValueError(
            f"--out ends in {out.suffix}, and {args.file} in {Path(args.file).suffix}: a document keeps its format"
        )


def _check(args: argparse.Namespace, data: bytes) -> None:
    """Read the document once without translating it: what is wrong with it is told before a model is loaded."""
    from heed.text.documents import texts_of

    texts_of(data, str(args.file), column=args.column, kind=args.format)


def tell_missing(missing) -> None:
    """What was to be said and is not goes to standard error, a line a term."""
    for term in dict.fromkeys(missing):
        often = missing.count(term)
        times = f", {often} times" if often > 1 else ""
        print(
            f"heed: {term.target!r} (for {term.source!r}) is missing{times}: there was no room for it", file=sys.stderr
        )


class _Bar:
    """How far it is, on standard error; nothing where that is no terminal."""

    def __init__(self):
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from heed.cli.common import errors

        console = errors()
        columns = [BarColumn(), TextColumn("{task.completed:,} of {task.total:,} sentences"), TimeRemainingColumn()]
        self.bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = None

    def __enter__(self) -> "_Bar":
        self.bar.start()
        return self

    def __exit__(self, *_) -> None:
        self.bar.stop()

    def __call__(self, done: int, total: int) -> None:
        self.task = self.bar.add_task("", total=total) if self.task is None else self.task
        self.bar.update(self.task, completed=done, total=total)
