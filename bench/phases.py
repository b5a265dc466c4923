"""Where the time of a small `heed train` goes: `python -m bench.phases [RECIPE] [--set NAME=VALUE …]`.

Processor seconds of each phase, without those of the phases inside it; those of a busy machine are nearly those of an idle one. With
`--device cuda`, seconds on the clock, since the processor waits for the GPU; then capturing shapes and waiting for batches are phases too.
The corpus is prepared in a new cache, so that preparing counts, unless `--cache` names a folder. With `--time`, also the seconds on the
clock by which the command is late. With `--searches`, each validation also runs with the plain search, and both are compared; `--valid` is the
number of validation sentences, from the phrasebook.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench.searches import Row, watch_searches

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
ON_GPU = (
    ("heed.training.accelerated.cuda_graph_step", "CudaGraphStep", "_capture", "capturing shapes"),
    ("heed.training.accelerated.captured_passes", "CapturedPasses", "_capture", "capturing shapes"),
    ("heed.runs.execution_plan", "ExecutionPlan", "passes", "building the step"),
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

    def watch_items(self, owner: Any, function: str, name: str) -> None:
        """As `watch`, of a generator: the seconds until each item is there."""
        plain = getattr(owner, function)

        def timed(*of, **options):
            with closing(plain(*of, **options)) as items:
                while True:
                    with self.phase(name):
                        item = next(items, None)
                    if item is None:
                        return
                    yield item

        setattr(owner, function, timed)


def watch_all(phases: Phases, device: str = "cpu") -> None:
    from importlib import import_module

    for module, kind, function, name in PARTS + (ON_GPU if device != "cpu" else ()):
        owner = import_module(module)
        phases.watch(getattr(owner, kind) if kind else owner, function, name)
    if device != "cpu":
        phases.watch_items(import_module("heed.runs.run"), "in_thread", "waiting for batches")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.phases", description=__doc__)
    top.add_argument("recipe", nargs="?", default="recipes/phrasebook.toml")
    top.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the recipe")
    top.add_argument("--time", help="the time budget of heed train")
    top.add_argument("--cache", type=Path, metavar="FOLDER", help="of prepared corpora (default: a new one)")
    top.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    top.add_argument("--searches", action="store_true", help="validate with both searches, and compare them")
    top.add_argument("--valid", type=int, metavar="N", help="validate on N pairs of the phrasebook")
    top.add_argument("--json", type=Path, metavar="FILE", help="write the seconds")
    return top


def train(args: argparse.Namespace, folder: Path) -> tuple[Phases, float, list[Row]]:
    """The phases of one run of the command, its seconds on the clock, and its validations if both searches are compared."""
    on_clock, rows = args.device != "cpu", []
    phases = Phases(time.perf_counter if on_clock else time.process_time)
    with phases.phase("other"):
        with phases.phase("imports"):
            from heed.cli import train as verb  # noqa: F401
            from heed.cli.main import main as command

            watch_all(phases, args.device)
            if args.searches:
                rows = watch_searches(phases.phase)
        words = ["train", args.recipe, "--out", str(folder / "run"), "--device", args.device, "--quiet"]
        words += valid_words(folder / "valid", args.valid) if args.valid else []
        words += ["--time", args.time] if args.time else []
        words += ["--set", "training.valid_engine=cuda"] if args.searches else []
        if code := command([*words, *(word for setting in args.set for word in ("--set", setting))]):
            raise SystemExit(code)
    phases.seconds["imports"] += 0 if on_clock else STARTED[0]
    return phases, time.perf_counter() - STARTED[1], rows


def valid_words(folder: Path, number: int) -> list[str]:
    """The options that validate on this many pairs, of one to three sentences each."""
    from heed.data.synthetic import phrasebook

    folder.mkdir()
    made = phrasebook.write(folder, train=0, valid=number, test=0, join=3)
    return [
        word
        for side, name in (("source", "valid.ko"), ("target", "valid.en"))
        for word in (f"--valid-{side}", str(made[name]))
    ]


def main(words: Sequence[str]) -> int:
    args = parser().parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["HEED_CACHE"] = str(args.cache or folder / "cache")
        phases, wall, rows = train(args, folder)
    total = sum(phases.seconds.values())
    for name, seconds in phases.seconds.items():
        print(f"{name:24}{seconds:8.2f} s{phases.calls[name]:4}")
    outside = total - phases.seconds.get("steps", 0.0)
    print(f"{'together':24}{total:8.2f} s, without steps {outside:.2f} s; on the clock {wall:.2f} s")
    if args.time:
        from heed.training.duration import seconds_of

        print(f"late by {wall - seconds_of(args.time):.2f} s on the clock")
    if args.json:
        found = {
            "command": list(words),
            "seconds": phases.seconds,
            "calls": phases.calls,
            "wall": wall,
            "validations": rows,
        }
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
