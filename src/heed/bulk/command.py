"""Shared by verbs that read lines and write one result per line: to standard output, or to a resumable file."""

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from heed.bulk.recorded import RecordedFile, begun_chunk
from heed.data.staged import AHEAD, Chunk, Stages, run
from heed.files import atomic_file

Settings = Callable[[], Mapping[str, Any]]


class Noted(NamedTuple):
    """What a last stage may return in place of bytes: bytes, and what is to be remembered of the chunk, which JSON can hold."""

    data: bytes
    note: Any


def add_resume(parser: argparse.ArgumentParser, inputs: str = "--input") -> None:
    line = f"continue an interrupted run; needs {inputs} and --out"
    parser.add_argument("--resume", action="store_true", help=line)


def check_resume(args: argparse.Namespace, given: bool, inputs: str = "--input FILE") -> None:
    """Refuse --resume without files."""
    if args.resume and not (given and args.out):
        raise ValueError(f"--resume continues an output file: it needs {inputs} and --out FILE")


def chunk_size(args: argparse.Namespace, usual: int, given: Sequence[str] | str | None) -> int:
    """The items of a chunk: `usual`, unless a file is resumed that was begun with others, by an earlier version or on another device;
    one line of a terminal. `given` are the texts or the name of the file; standard input without them.
    """
    if typed(given):
        return 1
    return (begun_chunk(Path(args.out)) if args.resume and args.out else None) or usual


def typed(given: Sequence[str] | str | None) -> bool:
    """Whether lines come from a terminal, where each is answered before the next. Those of a pipe are not: what shares a batch with a
    line, and with it the last digits, would depend on the speed of the program that writes them.
    """
    try:
        return (not given or given == "-") and sys.stdin.isatty()
    except (AttributeError, ValueError):  # no file of the system, or a closed one
        return False


def read_ahead(path: str | None) -> int:
    """How many chunks to read ahead: none of a terminal or a pipe, where each chunk is answered before more is read."""
    if path not in (None, "-"):
        return AHEAD
    try:
        return AHEAD if stat.S_ISREG(os.fstat(sys.stdin.buffer.fileno()).st_mode) else 0
    except (AttributeError, OSError, ValueError):  # no file of the system
        return 0


def as_bytes(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def settings_of(product: Any, **options: Any) -> dict[str, Any]:
    """What a resumable file depends on: the weights and the options."""
    from heed.models.weight_hash import hash_weights

    models = getattr(product, "models", None) or [product.model]
    return {"weights": [hash_weights(model) for model in models], **options}


def process(
    source: Iterator[Chunk],
    stages: Stages,
    args: argparse.Namespace,
    settings: Settings,
    inputs: Sequence[str] = (),
    *,
    head: bytes = b"",
) -> list[Any]:
    """Run chunks through the stages to `args.out` or standard output; returns the notes (`Noted`) of all chunks in their order.

    `inputs` are the files that `source` reads, none for standard input and arguments. From files to a file there is a journal,
    for `args.resume`; notes of an interrupted run are in it. The output begins with `head`.
    """
    for path in inputs:
        check_other_file(path, args.out)
    file = recorded(args.out, settings, head) if inputs else None
    if file is not None:
        to_recorded(source, stages, file, args.resume)
        return file.notes
    notes, begin = [], [head]
    with _output(args.out) as write:

        def write_noted(chunk: Chunk, found: bytes | Noted) -> None:
            data, note = _noted(found)
            write(begin.pop() + data if begin else data)
            notes.append(note)

        run(source, stages, write_noted, min(read_ahead(path) for path in inputs or [None]))
        if begin and head:
            write(head)
    return notes


def check_other_file(path: str, out: str | None) -> None:
    """Refuse to overwrite an input."""
    if out and os.path.exists(out) and os.path.exists(path) and os.path.samefile(path, out):
        raise ValueError(f"--out is the input file itself, {path}: choose another, or the text would be lost")


def _noted(found: bytes | Noted) -> Noted:
    return found if isinstance(found, Noted) else Noted(found, None)


def to_recorded(source: Iterator[Chunk], stages: Stages, file: RecordedFile, resume: bool) -> None:
    """To a file with a journal. Without `resume` it begins anew. If something is wrong with a later line, what was
    finished before is kept.
    """
    if resume and not file.begun and file.out.exists():
        raise ValueError(f"{file.out} already exists and is complete: choose another --out, or leave out --resume")
    source = chain(list(islice(source, 1)), source)  # an input that cannot be read leaves no file
    with file:
        if resume and file.begun:
            file.resume(source)
        else:
            file.remove()
        try:
            run(source, stages, lambda chunk, found: file.append(chunk, *_noted(found)))
        except KeyboardInterrupt:
            if file.begun:
                print(f"heed: finished lines are kept in {file.part}; continue with --resume", file=sys.stderr)
            raise
        except ValueError as error:
            if not file.begun:
                raise
            kept = f"finished lines are kept in {file.part}; continue with --resume"
            raise ValueError(f"{error} ({kept})") from error
        file.finish()


def recorded(out: str | Path | None, settings: Settings, head: bytes = b"") -> RecordedFile | None:
    """A file with a journal for the results of a file; None for standard output, a pipe or a device."""
    if out is None or (Path(out).exists() and not Path(out).is_file() and not Path(out).is_dir()):
        return None
    if Path(out).is_dir():
        raise ValueError(f"--out {out} is a folder: give the name of a file")
    return RecordedFile(Path(out), settings(), head, lambda sentence: print(f"heed: {sentence}", file=sys.stderr))


@contextmanager
def _output(out: str | Path | None) -> Iterator[Callable[[bytes], None]]:
    """Writes bytes; the file is created with the first of them, so errors in the first chunk leave no file."""
    if out is None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        yield _to_stdout
        return
    path, opened = Path(out), []
    if path.is_dir():
        raise ValueError(f"--out {out} is a folder: give the name of a file")
    with ExitStack() as stack:

        def file():
            if not opened:
                other = path.exists() and not path.is_file()  # a pipe or a device cannot be replaced by a file
                part = path if other else stack.enter_context(atomic_file(path))
                opened.append(stack.enter_context(open(part, "wb")))
            return opened[0]

        def write(data: bytes) -> None:
            file().write(data)
            file().flush()

        yield write
        file()  # also where nothing was written


def _to_stdout(data: bytes) -> None:
    sys.stdout.write(data.decode())
    sys.stdout.flush()
