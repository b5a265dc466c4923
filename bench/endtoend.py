"""The whole way, from the command to the last line, beside transformers and CTranslate2: `python -m bench endtoend`.

All have one Transformer with random weights. A translation has a fixed number of tokens, so that all do the same work. Each run is a
process of its own; the systems take turns, and the median counts. Seconds are those of the clock; "busy" is the processor time.
The row `train` is a training from two text files to a model, with `--steps` steps and a translated validation set at the end.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench import machine, turns
from bench.rows import Shape, TranslateRow, packed
from heed.data.synthetic import phrasebook

SHAPES = {
    "base": Shape(8192, 512, 8, 2048, 6, 0.1),
    "small": Shape(8192, 128, 2, 512, 2, 0.1),
    "toy": Shape(512, 32, 2, 64, 1, 0.1),
}
GUARDS = ("--allow-loops", "--allow-overlong", "--allow-copies")  # drawn weights loop, and would be searched again


NAMES = ("import torch", "heed translate", "heed translate, with torch", "heed translate, before", "heed, Python")
NAMES += ("heed translate, on the GPU", "heed train", "heed train, before", "transformers, training")
NAMES += (
    "heed, Python, before",
    "heed, Python, without overlap",
    "heed, the search alone",
    "ctranslate2",
    "transformers",
)


class Run(NamedTuple):
    """One process: seconds on the clock and of the processor, the most memory in MB, and the seconds of its bulk if it says so."""

    wall: float
    busy: float
    memory: float
    bulk: float | None


class Asked(NamedTuple):
    """What a process is asked to translate, and how."""

    folder: Path
    source: Path
    beam: int
    length: int
    threads: int
    device: str = "cpu"
    root: Path = turns.ROOT


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench endtoend", description=__doc__)
    top.add_argument("--shape", choices=list(SHAPES), default="base", help="the size of the model (default: base)")
    top.add_argument(
        "--lines", type=int, default=256, help="of the file (default: 256); heed also translates four times as many"
    )
    top.add_argument("--beam", type=int, default=5)
    top.add_argument("--length", type=int, default=25, help="tokens of a translation (default: 25)")
    top.add_argument("--rounds", type=int, default=3, help="how often each has its turn (default: 3)")
    top.add_argument("--count-first", action="store_true", help="no run of each before the rounds that does not count")
    top.add_argument("--threads", type=int, default=2, help="of each process (default: 2)")
    top.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    top.add_argument("--rows", nargs="+", choices=["one", "bulk", "memory", "train"], default=["one", "bulk", "memory"])
    top.add_argument("--steps", type=int, default=1200, help="of a training (default: 1200)")
    top.add_argument("--pairs", type=int, default=29_000, help="to train on (default: 29000)")
    top.add_argument("--tokens", type=int, default=18_432, help="of a batch in training (default: 18432)")
    top.add_argument("--systems", nargs="+", metavar="NAME", help="only these, by the names in the tables")
    top.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout of heed, measured as heed, before")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def measure(command: Sequence[str], threads: int, root: Path, cache: Path) -> Run:
    """Run a command to its end; RuntimeError with its last words if it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        settings = turns.environment(threads, root) | {"HEED_CACHE": str(cache)}
        settings.pop("PYTHONDONTWRITEBYTECODE", None)  # the first run compiles
        start = time.perf_counter()
        process = subprocess.Popen(list(command), cwd=root, env=settings, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command[:6])} … ended with {process.returncode}: {err.read()[-2000:]}")
        last = out.read().strip().splitlines()[-1:] or [""]
    scale = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes there
    bulk = json.loads(last[0])["seconds"] if last[0].startswith('{"seconds"') else None
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * scale / 1e6, bulk)


def library(name: str, asked: Asked) -> Callable[[], Run]:
    """A system of bench/endtoend_systems.py."""
    numbers = [str(own) for own in (asked.beam, asked.length, asked.threads)]
    numbers += [asked.device] if asked.device != "cpu" else []  # which an older checkout does not know
    command = [sys.executable, "-m", "bench.endtoend_systems", name, str(asked.folder), str(asked.source), os.devnull]
    return lambda: measure([*command, *numbers], asked.threads, asked.root, asked.folder / "cache")


def command_line(asked: Asked, one: bool, *options: str) -> Callable[[], Run]:
    """`heed translate`, of a sentence or of a file. Where there is a GPU, it chooses the device of a sentence itself."""
    search = ["--beam", asked.beam, "--min-length", asked.length, "--max-length", asked.length, *GUARDS, *options]
    texts = [asked.source.read_text("utf-8").splitlines()[0]] if one else ["--input", asked.source]
    texts += [] if one else ["--out", asked.folder / "out.txt"]
    device = "auto" if one and asked.device != "cpu" else asked.device
    words = ["translate", asked.folder / "heed", *texts, "--device", device, *search, "--threads", asked.threads]
    cache = asked.folder / ("cache" if asked.root == turns.ROOT else "cache-before")
    return lambda: measure([sys.executable, "-m", "heed", *map(str, words)], asked.threads, asked.root, cache)


def peers(names: Sequence[str], asked: Asked) -> dict[str, Callable[[], Run]]:
    return {name: library(name, asked) for name in names if find_spec(name) is not None}


def one_sentence(asked: Asked, before: Path | None) -> dict[str, Callable[[], Run]]:
    """The systems of the first row. The first run of heed converts the model; it is made before the rounds."""
    found = {"import torch": library("import torch", asked), "heed translate": command_line(asked, True)}
    found["heed translate, with torch"] = command_line(asked, True, "--engine", "torch")
    if asked.device != "cpu":
        found["heed translate, on the GPU"] = command_line(asked, True, "--device", asked.device)
    if before:
        found["heed translate, before"] = command_line(asked._replace(root=before.resolve()), True)
    return found | peers(["ctranslate2", "transformers"], asked)


def bulk(asked: Asked, before: Path | None) -> dict[str, Callable[[], Run]]:
    found = {"heed translate": command_line(asked, False)}
    if before:
        found["heed translate, before"] = command_line(asked._replace(root=before.resolve()), False)
        found["heed, Python, before"] = library("heed, Python", asked._replace(root=before.resolve()))
    own = ("heed, Python", "heed, Python, without overlap", "heed, the search alone")
    found |= {name: library(name, asked) for name in own}
    return found | peers(["ctranslate2", "transformers"], asked)


class Training(NamedTuple):
    """A training of a model of this shape on the texts in a folder."""

    folder: Path
    shape: Shape
    steps: int
    tokens: int
    threads: int
    device: str = "cpu"


def training(job: Training, before: Path | None) -> dict[str, Callable[[], Run]]:
    """Each run begins without a vocabulary and without a prepared corpus."""
    found = {"heed train": heed_training(job, turns.ROOT)}
    if before:
        found["heed train, before"] = heed_training(job, before.resolve())
    if find_spec("transformers") is not None:
        found["transformers, training"] = lambda: _trained(job, turns.ROOT, _marian)
    return found


def heed_training(job: Training, root: Path) -> Callable[[], Run]:
    return lambda: _trained(job, root, _heed)


def _trained(job: Training, root: Path, command: Callable[[Training, Path], list[str]]) -> Run:
    with tempfile.TemporaryDirectory(dir=job.folder) as new:
        return measure([sys.executable, "-m", *command(job, Path(new) / "run")], job.threads, root, Path(new) / "cache")


def _marian(job: Training, out: Path) -> list[str]:
    stated = job._asdict() | {"out": str(out), "folder": str(job.folder), "shape": dataclasses.astuple(job.shape)}
    return ["bench.endtoend_training", json.dumps(stated)]


def _heed(job: Training, out: Path) -> list[str]:
    s = job.shape
    settings = {
        "subwords.size": s.vocab, "subwords.sampling": 0, "model.dim": s.dim, "model.heads": s.heads, "model.hidden": s.hidden,
        "model.encoder_layers": s.layers, "model.decoder_layers": s.layers, "model.dropout": s.dropout, "task.r_drop": 0,
        "task.tune_length_penalty": 0, "training.steps": job.steps, "training.valid_every": job.steps,
        "training.batch_tokens": job.tokens, "training.rate": 0.001, "training.warmup": min(400, max(1, job.steps // 3)),
    }  # fmt: skip
    names = (("source", "train.source"), ("target", "train.target"))
    names += (("valid-source", "valid.source"), ("valid-target", "valid.target"))
    files = [word for option, name in names for word in (f"--{option}", str(job.folder / name))]
    chosen = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    options = ["--out", str(out), "--no-report", "--quiet", "--device", job.device, "--threads", str(job.threads)]
    return ["heed", "train", *files, *options, *chosen]


def write_pairs(folder: Path, count: int) -> None:
    """Parallel texts of the phrasebook to train and to validate on."""
    for part, name, own in (("train", "train", count), ("valid", "valid", min(1000, count))):
        pairs = list(phrasebook.pairs(part, own))
        for side in ("source", "target"):
            text = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8", newline="\n")


def in_turns(systems: dict[str, Callable[[], Run]], rounds: int, count_first: bool = False) -> dict[str, list[Run]]:
    """Each system once a round, in an order that turns; before, unless the first counts, a run that does not count."""
    found: dict[str, list[Run]] = {name: [] for name in systems}
    for run in () if count_first else systems.values():
        run()
    for number in range(rounds):
        names = list(systems)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            found[name].append(systems[name]())
    return found


def medians(runs: Sequence[Run]) -> Run:
    bulk = [run.bulk for run in runs if run.bulk is not None]
    each = (statistics.median(getattr(run, name) for run in runs) for name in ("wall", "busy", "memory"))
    return Run(*each, statistics.median(bulk) if bulk else None)


def table(title: str, found: dict[str, list[Run]], lines: int = 0) -> Table:
    shown = Table(title=title, title_justify="left")
    for name in ("", "seconds", "busy", "MB", *(("lines/s, whole", "lines/s, warm") if lines else ())):
        shown.add_column(name, justify="left" if not name else "right")
    for name, runs in found.items():
        own = medians(runs)
        cells = [f"{own.wall:.2f}", f"{own.busy:.2f}", f"{own.memory:,.0f}"]
        if lines:
            cells += [f"{lines / own.wall:,.1f}", f"{lines / own.bulk:,.1f}" if own.bulk else ""]
        shown.add_row(name, *cells)
    return shown


def write_models(folder: Path, shape: Shape, threads: int) -> None:
    formats = [name for name in ("transformers", "ctranslate2") if find_spec(name) is not None]
    row = packed(TranslateRow("endtoend", shape, 1, 1))
    turns.run_module("bench.shared", [str(folder), json.dumps(row), *formats], threads)


def write_texts(folder: Path, lines: int) -> dict[str, Path]:
    """Files of one line, of `lines`, and of four times as many."""
    texts = [pair.target for pair in phrasebook.pairs("train", 4 * lines)]
    found = {"one": texts[:1], "bulk": texts[:lines], "memory": texts}
    for name, own in found.items():
        (folder / f"{name}.txt").write_text("".join(f"{text}\n" for text in own), encoding="utf-8", newline="\n")
    return {name: folder / f"{name}.txt" for name in found}


def main(words: Sequence[str]) -> int:
    args = parser().parse_args(words)
    if unknown := {*(args.systems or ())} - {*NAMES}:
        parser().error(f"no system is called {', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    console, result = Console(width=None if sys.stdout.isatty() else 120), {}
    result |= {"cpu": machine.cpu(), "cores": os.cpu_count(), "load": os.getloadavg(), "command": ["endtoend", *words]}
    console.print(f"{result['cpu']}, {result['cores']} cores, load {result['load'][0]:.1f}", highlight=False)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_models(folder, SHAPES[args.shape], args.threads)
        files = write_texts(folder, args.lines)
        asked = Asked(folder, files["one"], args.beam, args.length, args.threads, args.device)
        if "one" in args.rows:
            start = command_line(asked, True)()
            console.print(f"heed translate of one sentence, the first time: {start.wall:.2f} s", highlight=False)
            _row("one sentence", one_sentence(asked, args.before), args, console, result)
        if "bulk" in args.rows:
            own = bulk(asked._replace(source=files["bulk"]), args.before)
            _row(f"{args.lines:,} lines", own, args, console, result, args.lines)
        if "memory" in args.rows:
            own = {"heed translate": command_line(asked._replace(source=files["memory"]), False)}
            _row(f"{4 * args.lines:,} lines", own, args, console, result, 4 * args.lines)
        if "train" in args.rows:
            write_pairs(folder, args.pairs)
            job = Training(folder, SHAPES[args.shape], args.steps, args.tokens, args.threads, args.device)
            _row(f"training, {args.steps:,} steps", training(job, args.before), args, console, result)
    return 0


def _row(
    title: str, systems: dict[str, Callable[[], Run]], args: argparse.Namespace, console: Console, result: dict[str, Any],
    lines: int = 0,
) -> None:  # fmt: skip
    if args.systems:
        systems = {name: run for name, run in systems.items() if name in args.systems}
    found = in_turns(systems, args.rounds, args.count_first)
    console.print(table(title, found, lines))
    result[title] = {name: [run._asdict() for run in runs] for name, runs in found.items()}
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8", newline="\n")
