"""heed translate --file: translate a document into the same format."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LINE_OPTIONS = (
    "text",
    "input",
    "nbest",
    "sample",
    "prefix",
    "scores",
    "token_scores",
    "align",
    "sentences",
)  # not for documents


def run(args: argparse.Namespace, chosen: dict, glossary) -> int:
    from heed.cli.common import open_product
    from heed.files import write_bytes
    from heed.products.translator.documents import translate_document
    from heed.text.documents import texts_of

    source, out = Path(args.file), _output_path(args)
    try:
        data = source.read_bytes()
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror}") from None
    # what is wrong with the document is reported before a model is loaded
    texts_of(data, str(source), column=args.column, kind=args.format)
    translator = open_product(args, "translate")
    with _progress() as progress:
        result, missing = translate_document(
            translator, data, str(source), kind=args.format, column=args.column, glossary=glossary, progress=progress,
            too_long=args.too_long, batch_tokens=args.batch_tokens, **chosen,
        )  # fmt: skip
    write_bytes(out, result)
    report_missing(missing)
    return 0


def _output_path(args: argparse.Namespace) -> Path:
    if given := [f"--{name.replace('_', '-')}" for name in LINE_OPTIONS if getattr(args, name)]:
        raise ValueError(
            f"--file translates a document, and {given[0].replace('--text', 'a sentence')} is for lines: leave it out"
        )
    if args.out is None:
        raise ValueError("--file needs --out: the name of the file to write")
    out = Path(args.out)
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; it must be the name of a file")
    if out.exists() and Path(args.file).exists() and os.path.samefile(out, args.file):
        raise ValueError(f"--out is the input document itself, {out}: give it another name")
    if out.exists() and not args.force:
        raise ValueError(f"--out {out} already exists: choose another name, or use --force to overwrite it")
    _check_writable(out)
    _check_format(args, out)
    return out


def _check_writable(out: Path) -> None:
    """Refuse early what could not be written at the end."""
    folder = next(folder for folder in out.absolute().parents if folder.exists())
    if not folder.is_dir():
        raise ValueError(f"--out {out} cannot be written: {folder} is a file, not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"--out {out} cannot be written: there is no permission to write in {folder}")


def _check_format(args: argparse.Namespace, out: Path) -> None:
    from heed.text.documents import KINDS, kind_of

    kind, other = args.format or kind_of(args.file), KINDS.get(out.suffix.lower())
    if other not in (None, kind) and args.format is None:
        raise ValueError(
            f"--out ends in {out.suffix}, and {args.file} in {Path(args.file).suffix}: the format cannot change"
        )


def report_missing(missing) -> None:
    """Print glossary terms that are missing from translations to standard error, one per line."""
    for term in dict.fromkeys(missing):
        times = f", {count} times" if (count := missing.count(term)) > 1 else ""
        sentence = f"{term.target!r} (for {term.source!r}) is missing{times}: it could not be placed"
        print(f"heed: {sentence}", file=sys.stderr)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, if that is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from heed.cli.common import errors

    console = errors()
    columns = [BarColumn(), TextColumn("{task.completed:,} of {task.total:,} sentences"), TimeRemainingColumn()]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:

        def tell(done: int, total: int) -> None:
            task = bar.task_ids[0] if bar.task_ids else bar.add_task("", total=total)
            bar.update(task, completed=done, total=total)

        yield tell
