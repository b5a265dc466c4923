"""Where the time of a small `heed train` goes: `python -m bench.phases [RECIPE] [--set NAME=VALUE …]`.

Processor seconds of each phase, without those of the phases inside it; those of a busy machine are nearly those of an idle one.
The corpus is prepared in a new cache, so that preparing counts, unless `--cache` names a folder. With `--time`, also the seconds on the
clock by which the command is late.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STARTED = time.process_time(), time.perf_counter()
PARTS = (  # module, class or "", function, phase
    ("heed.runs.train", "", "complete", "choosing settings"),
    ("heed.tasks.translation", "Translation", "prepare", "preparing the corpus"),
    ("heed.runs.run", "Run", "__init__", "building the model"),
    ("heed.training.loop", "", "train", "steps"),
    ("heed.runs.run", "Run", "_check", "validations"),
    ("heed.runs.run", "Run", "_save", "checkpoints"),
    ("heed.runs.run", "", "finish", "final validation"),
    ("heed.runs.run_folder", "RunFolder", "write_model", "writing the model"),
    ("heed.tasks.translation", "TranslationValidation", "facts", "alignment heads"),
    ("heed.tasks.translation", "Translation", "final_search", "length penalty"),
    ("heed.tasks.translation", "Translation", "final_files", "shortlist"),
    ("heed.cli.train", "", "_report", "report"),
)


class Phases:
    """Seconds by phase; `clock` is that of the processor."""

    def __init__(self, clock: Callable[[], float] = time.process_time):
        self.clock, self.seconds, self.calls = clock, {}, {}
        self.open: list[list[Any]] = []  # phase, when it went on

    @contextmanager
    def phase(self, name: str):
        self._close()
        self.open.append([name, self.clock()])
        self.calls[name] = self.calls.get(name, 0) + 1
        try:
            yield
        finally:
            self._close()
            self.open.pop()
            if self.open:
                self.open[-1][1] = self.clock()

    def _close(self) -> None:
        if self.open:
            name, since = self.open[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + self.clock() - since

    def watch(self, owner: Any, function: str, name: str) -> None:
        plain = getattr(owner, function)

        def timed(*of, **options):
            with self.phase(name):
                return plain(*of, **options)

        setattr(owner, function, timed)


def watch_all(phases: Phases) -> None:
    from importlib import import_module

    for module, kind, function, name in PARTS:
        owner = import_module(module)
        phases.watch(getattr(owner, kind) if kind else owner, function, name)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.phases", description=__doc__)
    top.add_argument("recipe", nargs="?", default="recipes/phrasebook.toml")
    top.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the recipe")
    top.add_argument("--time", help="the time budget of heed train")
    top.add_argument("--cache", type=Path, metavar="FOLDER", help="of prepared corpora (default: a new one)")
    top.add_argument("--json", type=Path, metavar="FILE", help="write the seconds")
    return top


def train(args: argparse.Namespace, folder: Path) -> tuple[Phases, float]:
    """The phases of one run of the command, and its seconds on the clock."""
    phases = Phases()
    with phases.phase("other"):
        with phases.phase("imports"):
            from heed.cli import train as verb  # noqa: F401
            from heed.cli.main import main as command

            watch_all(phases)
        words = ["train", args.recipe, "--out", str(folder / "run"), "--device", "cpu", "--quiet"]
        words += ["--time", args.time] if args.time else []
        if code := command([*words, *(word for setting in args.set for word in ("--set", setting))]):
            raise SystemExit(code)
    phases.seconds["imports"] += STARTED[0]
    return phases, time.perf_counter() - STARTED[1]


def main(words: Sequence[str]) -> int:
    args = parser().parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["HEED_CACHE"] = str(args.cache or folder / "cache")
        phases, wall = train(args, folder)
    total = sum(phases.seconds.values())
    for name, seconds in phases.seconds.items():
        print(f"{name:24}{seconds:8.2f} s{phases.calls[name]:4}")
    outside = total - phases.seconds.get("steps", 0.0)
    print(f"{'together':24}{total:8.2f} s, without steps {outside:.2f} s; on the clock {wall:.2f} s")
    if args.time:
        from heed.training.duration import seconds_of

        print(f"late by {wall - seconds_of(args.time):.2f} s on the clock")
    if args.json:
        found = {"command": list(words), "seconds": phases.seconds, "calls": phases.calls, "wall": wall}
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
