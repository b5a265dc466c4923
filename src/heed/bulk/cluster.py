"""Command-line arguments shared by the Ray and Spark entry points."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from heed import config
from heed.bulk.blocks import VERBS, Task


def parse(module: str, words: Sequence[str] | None) -> tuple[Task, argparse.Namespace]:
    """Parse the arguments; exits with code 2 and one sentence if they are invalid."""
    top = argparse.ArgumentParser(
        prog=f"python -m {module}", description="Translate, score, embed or back-translate a corpus."
    )
    top.add_argument("verb", choices=VERBS)
    top.add_argument("model", help="a run, a model folder or a name on the hub, which every worker can read")
    top.add_argument(
        "--input", required=True, metavar="PATH", help="text files, one row per line; a folder or a glob pattern"
    )
    top.add_argument("--output", required=True, metavar="FOLDER", help="output folder of Parquet files")
    top.add_argument("--parquet", action="store_true", help="--input is Parquet files; their columns are kept")
    top.add_argument("--text", default="text", metavar="COLUMN", help="the text column (default: text)")
    top.add_argument(
        "--target", default="target", metavar="COLUMN", help="for score: the translation column (default: target)"
    )
    top.add_argument(
        "--workers", type=int, default=1, help="number of parallel workers, each with its own model (default: 1)"
    )
    top.add_argument("--gpus", type=float, default=0, help="GPUs per worker, on Ray (default: 0)")
    top.add_argument("--tag", default="", help="for backtranslate: a tag to put before each translation, such as <bt>")
    top.add_argument("--device", default="auto", help="auto, cpu or cuda")
    top.add_argument("--engine", choices=["auto", "torch", "ctranslate2"], default="auto")
    top.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the verb in Python, such as beam=4",
    )
    args = top.parse_args(words)
    try:
        if args.workers < 1:
            raise ValueError(f"--workers is {args.workers}; it must be at least 1")
        if "://" not in args.output and os.path.isdir(args.output) and os.listdir(args.output):
            raise ValueError(
                f"--output {args.output} has files already, and rows would be doubled: choose another folder"
            )
        options = dict(config.assignment(own) for own in args.set)
        names = {name: getattr(args, name) for name in ("verb", "model", "text", "target", "device", "engine", "tag")}
        return Task(**names, options=options), args
    except ValueError as error:
        top.error(str(error))


def in_one_sentence(run: Callable[[], int]) -> int:
    """The exit status; an error is one sentence."""
    try:
        return run()
    except ValueError as error:
        print(f"heed: {error}", file=sys.stderr)
        return 1
