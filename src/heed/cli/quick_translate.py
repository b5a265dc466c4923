"""heed translate for a few sentences or a short file on the CPU, without importing torch
(`heed.products.translator.quick`). Where there is a GPU, this is for a few sentences: starting it takes longer.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from heed.products.translator.quick import Searched

GPUS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd")  # where a GPU is that torch may know
MAX_CHARACTERS = 256 * 1024  # of a short file
GPU_LINES, GPU_CHARACTERS = 16, 4096  # the same where there is a GPU
# Options that need torch when they are given. Search settings that need it are known to `QuickTranslator`.
NEED_TORCH = ("file", "column", "format", "force", "resume", "glossary", "keep", "prefix", "sentences", "align")
NEED_TORCH += ("token_scores", "from_language", "to_language")
SLOW = ("sample", "rerank")  # searches that a GPU does even if it must be started for them
USUAL = {"too_long": "split", "batch_tokens": 4096}  # options that need torch unless they have these values


class Attempt(NamedTuple):
    """The result of an attempt without torch: translations, or what is left to the usual way."""

    translations: list | None = None
    lines: Iterable[str] | None = None  # of standard input, including those that were read
    searched: "Searched | None" = None  # a search that found faults, which only the usual way can avoid
    device: str | None = None  # where the usual way should run, if not where the options say


def folder(args: argparse.Namespace) -> Path | None:
    """The model folder of a plain request that may run on the CPU; None for any other."""
    from heed.products.translator.quick import model_folder

    plain = len(args.folder) == 1 and not any(getattr(args, name) for name in NEED_TORCH)
    usual = args.engine != "torch" and all(getattr(args, name) == value for name, value in USUAL.items())
    if not (plain and usual and args.device in ("auto", "cpu")) or (args.text and args.input):
        return None
    return model_folder(args.folder[0])


def _on_cpu(device: str) -> bool:
    """Whether the model would run on the CPU, as far as can be known without torch."""
    known = sys.platform == "darwin" or (sys.platform == "linux" and not any(map(os.path.exists, GPUS)))
    return device == "cpu" or (device == "auto" and known)


def translate(model: Path, args: argparse.Namespace, chosen: dict, chunk: int) -> Attempt:
    """The translations of the sentences, or of the lines of a short input, with less than a chunk of lines."""
    from heed.bulk.command import check_other_file, typed
    from heed.products.translator import quick

    gpu = not _on_cpu(args.device)
    if (
        typed(args.text or args.input)
        or _interrupted(args.out)
        or not (any(quick.records(model)) or (gpu and quick.convertible(model)))
    ):
        return Attempt()
    if args.input:
        check_other_file(args.input, args.out)
    most = (GPU_LINES + 1, GPU_CHARACTERS) if gpu else (chunk, MAX_CHARACTERS)
    texts, lines = _short(args.input, *most) if not args.text else (args.text, None)
    if texts is None or (gpu and not _few(texts)):
        return Attempt(lines=lines)
    device, found = "cpu" if gpu else None, quick.find(model, args.threads or _threads())
    if found is None:
        return Attempt(lines=lines, device=None if any(map(chosen.get, SLOW)) else device)
    decoding = dict(chosen)
    if "nbest" in decoding:
        decoding.setdefault("beam", max(decoding["nbest"], found.decoding.beam))
    searched = found.search(texts, decoding)
    if searched is None:
        return Attempt(lines=lines)
    if found.faulty(searched):
        return Attempt(lines=lines, searched=searched, device=device)
    return Attempt(found.finish(searched))


def _few(texts: list[str]) -> bool:
    return len(texts) <= GPU_LINES and sum(map(len, texts)) <= GPU_CHARACTERS


def _interrupted(out: str | None) -> bool:
    """Whether another process writes this file, or was interrupted: `heed.bulk` says what to do."""
    from heed.bulk.recorded import unfinished

    return out is not None and any(path.exists() for path in unfinished(Path(out)))


def _short(path: str | None, lines_below: int, characters: int) -> tuple[list[str] | None, Iterable[str] | None]:
    """The lines of a short input, or None; and all lines of standard input, which cannot be read again."""
    from heed.cli.common import input_lines

    stdin = path in (None, "-")
    if not stdin and not Path(path).is_file():
        return None, None
    lines, read, size = input_lines(path), [], 0
    for line in islice(lines, lines_below):
        read.append(line)
        size += len(line)
        if size > characters:
            break
    short = len(read) < lines_below and size <= characters
    return read if short else None, chain(read, lines) if stdin else None


def _threads() -> int:
    """The number of threads torch would use."""
    stated = os.environ.get("OMP_NUM_THREADS", "")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(stated) if stated.isdecimal() and int(stated) else usable


@contextmanager
def remembered(model: Path | None) -> Iterator[Callable]:
    """A callback for the translator of a folder after its first translation, so that the next one needs no torch."""
    from heed.products.translator import quick

    before = quick.stamp(model) if model else None
    yield lambda translator: quick.remember(model, before, translator) if model else None
