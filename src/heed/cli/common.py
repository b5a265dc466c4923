"""What several verbs share."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, help="how many threads to use on the CPU")


def add_engine(parser: argparse.ArgumentParser, default: str, why: str) -> None:
    parser.add_argument("--engine", choices=["auto", "torch", "ctranslate2"], default=default, help=why)


def open_translator(args: argparse.Namespace):
    """The translator of the folders that were named."""
    import torch

    from heed.serving.load import load

    if args.threads:
        torch.set_num_threads(args.threads)
    return load(args.folder, args.device, getattr(args, "engine", "auto"))


def read_lines(path: str | None) -> list[str]:
    """The lines of a file, or of standard input."""
    if path is None or path == "-":
        return [_decode(raw, number) for number, raw in enumerate(sys.stdin.buffer, 1)]
    from heed.data.readers import lines

    return list(lines(Path(path)))


def _decode(raw: bytes, number: int) -> str:
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(
            f"standard input, line {number} is not UTF-8: convert it first, for example with iconv"
        ) from None


def write_lines(lines: Iterable[str], out: str | None) -> None:
    """To a file, written aside and renamed, or to standard output as they come."""
    if out is None:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        return
    aside = Path(f"{out}.part")
    aside.parent.mkdir(parents=True, exist_ok=True)
    with open(aside, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    aside.replace(out)


def errors():
    """A console for what is not the result."""
    from rich.console import Console

    return Console(stderr=True)
