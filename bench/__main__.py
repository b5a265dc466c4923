"""Heed and its peers side by side: `python -m bench train|translate|loader|all`; language models: `python -m bench gpt2`; encoders: `python -m bench encode`; from the command to the last line: `python -m bench endtoend`."""

import argparse
import dataclasses
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

from rich.console import Console

from bench import arithmetic, encode, endtoend, gpt2, machine, report, turns
from bench.arithmetic import Peaks
from bench.rows import CUDA_ONLY, ROWS, Row, System, packed, quick, systems, train_rows
from bench.turns import Plan, Turns, Worker
from bench.worker import CLOCKS
from heed.device import choose_device

LOADER_QUICK = ["--tokens", "60000", "--seconds", "0.1", "--pairs", "20000", "--workers", "1"]


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    top.add_argument("what", choices=["train", "translate", "loader", "all"])
    top.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    top.add_argument(
        "--rows", nargs="+", help=f"some alone: {', '.join(r.name for rows in ROWS.values() for r in rows)}"
    )
    top.add_argument(
        "--length", type=int, nargs="+", metavar="N", help="training: rows base-N and big-N of texts of up to N tokens"
    )
    top.add_argument("--systems", nargs="+", help="some alone: heed, marian, torch-compiled, ctranslate2-int8, ...")
    top.add_argument("--rounds", type=int, help="how often each has its turn; 5 by default")
    top.add_argument("--steps", type=int, help="of training in a round; 30 by default, 1 on the CPU")
    top.add_argument(
        "--warmup",
        type=int,
        help="steps, or calls, before the first round; 10 steps or 2 calls by default, 1 or 0 on the CPU",
    )
    top.add_argument("--seconds", type=float, default=2.0, help="a round of translating takes at least; 2 by default")
    top.add_argument("--slots", type=int, help="tokens a batch on each side; 25,600 by default, 1,024 on the CPU")
    top.add_argument("--threads", type=int, default=2, help="of each process; 2 by default")
    top.add_argument(
        "--clock",
        choices=[*CLOCKS],
        default="wall",
        help="process: CPU seconds of each system, for a busy machine with --threads 1",
    )
    top.add_argument(
        "--peak", nargs="+", default=[], metavar="FORMAT=N", help="TFLOP/s, as bfloat16=990; measured by default"
    )
    top.add_argument("--bandwidth", type=float, help="GB/s; measured by default")
    top.add_argument("--joeynmt", metavar="PYTHON", help="the python of a virtual environment with JoeyNMT")
    top.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout of heed, measured as heed-before")
    top.add_argument(
        "--patience", type=float, default=900.0, help="seconds until a system that does not answer is ended"
    )
    top.add_argument("--quick", action="store_true", help="toy sizes: shows that all runs, says nothing about speed")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def check(args: argparse.Namespace) -> None:
    """Refuse rows, systems, a device and a python that are not there."""
    if args.length and (args.what != "train" or min(args.length) < 2):
        parser().error("--length is for train, and at least 2")
    known = {
        "rows": {row.name for rows in all_rows(args).values() for row in rows},
        "systems": {system.name for kind in ROWS for system in systems(kind, args.device)},
    }
    for option, names in known.items():
        if unknown := sorted(set(getattr(args, option) or ()) - names):
            parser().error(f"--{option} has {', '.join(unknown)}; there are {', '.join(sorted(names))}")
    try:
        choose_device(args.device)
    except ValueError as error:
        parser().error(str(error))
    if args.joeynmt and not which(args.joeynmt):
        parser().error(f"--joeynmt is {args.joeynmt}, and no such program is there: name the python of its environment")


def plan(args: argparse.Namespace, kind: str) -> Plan:
    cuda, training = args.device == "cuda", kind == "train"
    rounds = args.rounds or (1 if args.quick else 5)
    large = cuda and not args.quick
    usual = (10 if large else 1) if training else (2 if large else 0)  # and one more, which tells how long one takes
    warm = usual if args.warmup is None else args.warmup
    before = (2 if training else 1) if cuda else 0
    amount = (args.steps or (30 if large else 1)) if training else None
    return Plan(rounds, warm, before, amount, 0.0 if args.quick else args.seconds, args.patience, args.clock)


def all_rows(args: argparse.Namespace) -> dict[str, list[Row]]:
    return {**ROWS, "train": train_rows(args.length)} if args.length else ROWS


def chosen_rows(args: argparse.Namespace, kind: str) -> list[Row]:
    """The rows asked for; training on the CPU has smaller batches unless asked for others."""
    rows = [row for row in all_rows(args)[kind] if args.device == "cuda" or row.name not in CUDA_ONLY]
    if args.rows:
        rows = [row for row in rows if row.name in args.rows]
    slots = args.slots or (None if args.device == "cuda" else 1024)
    if kind == "train" and slots:
        rows = [dataclasses.replace(row, slots=slots) for row in rows]
    return [quick(row) for row in rows] if args.quick else rows


def chosen_systems(args: argparse.Namespace, kind: str) -> tuple[list[System], list[str]]:
    """Who takes part, and a sentence about each who does not."""
    there, without = [], []
    for system in systems(kind, args.device):
        if args.systems and system.name not in args.systems:
            continue
        why = missing(system, args)
        if why:
            without.append(f"{system.name} is left out: {why}")
        else:
            there.append(system)
    return there, without


def missing(system: System, args: argparse.Namespace) -> str | None:
    """Why a system cannot take part, or None."""
    if system.needs == "joeynmt":
        return (
            None if args.joeynmt else "it needs an environment of its own, --joeynmt PYTHON (docs/internals/bench.md)"
        )
    if system.needs == "before":
        return None if args.before else "it needs another checkout of heed, --before FOLDER"
    if system.needs and find_spec(system.needs) is None:
        return f"{system.needs} is not installed"
    if args.device == "cpu" and system.number == "bfloat16" and not machine.has_bf16():
        return "this CPU has no bfloat16"
    if args.quick and system.how == "compiled" and not args.systems:
        return "with --quick nothing is compiled unless --systems names it"
    return None


def peaks(args: argparse.Namespace) -> tuple[Peaks, dict[str, Any]]:
    """The machine's, measured where they are not given; and what it is."""
    words = [args.device, str(args.threads), *(["quick"] if args.quick else [])]
    measured = json.loads(turns.run_module("bench.machine", words, args.threads).splitlines()[-1])
    given = {}
    for each in args.peak:
        name, _, value = each.partition("=")
        if name not in arithmetic.BYTES or not value:
            raise ValueError(f"--peak is {each!r}; it is {', '.join(arithmetic.BYTES)}, =, and TFLOP/s: bfloat16=990")
        given[name] = float(value) * 1e12
    operations = arithmetic.widened({**measured["operations"], **given})
    bandwidth = args.bandwidth * 1e9 if args.bandwidth else measured["bandwidth"]
    return Peaks({**operations, **given}, bandwidth), measured


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("heed", "torch", "transformers", "ctranslate2", "numpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def facts(args: argparse.Namespace, measured: dict[str, Any]) -> dict[str, Any]:
    """Machine, versions and date."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=turns.ROOT, capture_output=True, text=True)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": measured["device"],
        "cpu": machine.cpu(),
        "cores": os.cpu_count(),
        "threads": args.threads,
        "clock": args.clock,
        "system": platform.platform(),
        "versions": versions(),
        "commit": asked.stdout.strip() or None,
        "command": ["python", "-m", "bench", *args.words],
        "measured": measured,
    }


def compare(args: argparse.Namespace, kind: str, best: Peaks, console: Console, result: dict[str, Any]) -> None:
    """All rows of one kind; each is shown, and written, as soon as it is there."""
    rows, (there, without) = chosen_rows(args, kind), chosen_systems(args, kind)
    result[kind] = {"rows": [], "left_out": without}

    def say(sentence: str) -> None:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    for sentence in without:
        say(sentence)

    def start(system: System) -> Worker:
        python = args.joeynmt if system.needs == "joeynmt" else sys.executable
        root = args.before.resolve() if system.needs == "before" else turns.ROOT
        return Worker(system, args.device, args.threads, python, args.patience, root)

    at_work = Turns(there, start, say)
    with tempfile.TemporaryDirectory() as folder:
        if kind == "translate" and rows and there:
            formats = sorted({system.needs for system in there if system.needs} - {"before"})
            turns.run_module("bench.shared", [folder, json.dumps(packed(rows[0])), *formats], args.threads)
            if any(system.needs == "before" for system in there):  # each version reads the folder that it wrote
                words = [f"{folder}/before", json.dumps(packed(rows[0]))]
                turns.run_module("bench.shared", words, args.threads, args.before.resolve())
        try:
            for row in rows if there else []:
                measured = at_work.measure(row, plan(args, kind), Path(folder))
                found = report.summary(row, there, measured, best)
                console.print(report.table(found, kind))
                result[kind]["rows"].append(found)
                write(args, result)
        finally:
            at_work.close()


def write(args: argparse.Namespace, result: dict[str, Any]) -> None:
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


def main(words: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if words is None else words)
    if given[:1] == ["gpt2"]:
        return gpt2.main(given[1:])
    if given[:1] == ["encode"]:
        return encode.main(given[1:])
    if given[:1] == ["endtoend"]:
        return endtoend.main(given[1:])
    args = parser().parse_args(words)
    args.words = list(sys.argv[1:] if words is None else words)
    console = Console(width=None if sys.stdout.isatty() else 120)
    check(args)
    best, measured = peaks(args)
    result: dict[str, Any] = facts(args, measured)
    result["peaks"] = {"operations": dict(best.operations), "bandwidth": best.bandwidth}
    report.machine(result, best, console)
    for kind in ("train", "translate"):
        if args.what in (kind, "all"):
            compare(args, kind, best, console, result)
    if args.what in ("loader", "all"):
        said = turns.run_module("bench.loader", LOADER_QUICK if args.quick else [], args.threads)
        console.print(said.rstrip(), markup=False, highlight=False)
        result["loader"] = said.splitlines()
    write(args, result)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that workers and folders go too
    sys.exit(main())
