"""heed translate for a few sentences on the CPU, without importing torch (`heed.products.translator.quick`)."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

GPUS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd")  # where a GPU is that torch may know
OTHER = ("input", "file", "column", "format", "force", "glossary", "keep", "prefix", "sentences", "align")
OTHER += ("token_scores", "from_language", "to_language")


def folder(args: argparse.Namespace) -> Path | None:
    """The model folder of a plain request for sentences on the command line, on the CPU; None for any other."""
    from heed.products.translator.quick import model_folder

    plain = len(args.folder) == 1 and args.text and not any(getattr(args, name) for name in OTHER)
    usual = args.engine != "torch" and args.too_long == "split" and args.batch_tokens == 4096
    return model_folder(args.folder[0]) if plain and usual and _on_cpu(args.device) else None


def _on_cpu(device: str) -> bool:
    """Whether the model would run on the CPU, as far as can be known without torch."""
    known = sys.platform == "darwin" or (sys.platform == "linux" and not any(map(os.path.exists, GPUS)))
    return device == "cpu" or (device == "auto" and known)


def translate(model: Path, args: argparse.Namespace, chosen: dict) -> list | None:
    """The translations of the sentences; None if torch is needed."""
    from heed.products.translator import quick

    found = quick.find(model, args.threads or _threads())
    if found is None:
        return None
    decoding = dict(chosen)
    if "nbest" in decoding:
        decoding.setdefault("beam", max(decoding["nbest"], found.decoding.beam))
    return found.translate(args.text, decoding)


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
