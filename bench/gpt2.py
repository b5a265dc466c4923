"""GPT-2 124M at a context of 1,024, heed and its peers taking turns: `python -m bench gpt2`.

Training: tokens a second, the share of the GPU's peak (MFU) and memory. Generation: tokens a second of one text and of 64.
"""

import argparse
import dataclasses
import datetime
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import arithmetic, machine
from bench.rows import TEXT_ROWS, System, TextRow, packed, quick, text_systems
from bench.turns import Measured, Plan, Turns, Worker
from bench.worker import CLOCKS

GIB = 2**30
H200_PEAK = 989.0  # TFLOP/s in bfloat16, dense, by its data sheet
USUAL_ROWS = {"cpu": ["1-greedy"], "cuda": ["train", "1-greedy", "64-greedy"]}


class WarmedTogether(Turns):
    """Turns before which all warm up at the same time: to compile takes cores, and not the GPU."""

    def _warm(self, at_work: dict[str, Worker], plan: Plan, found: Measured) -> None:
        def once(own: Worker) -> None:
            found.one[own.system.name] = own.ask("run", before=0, amount=1, clock=plan.clock)["seconds"]

        began = time.perf_counter()
        for own in at_work.values():
            own.send("run", before=plan.warm, amount=1)
        for name in list(at_work):
            self._try(at_work, name, found, Worker.answer)
            found.set_up[name] = time.perf_counter() - began
        for name in list(at_work):
            self._try(at_work, name, found, once)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench gpt2", description=__doc__)
    top.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    names = ", ".join(row.name for row in TEXT_ROWS)
    top.add_argument("--rows", nargs="+", help=f"of {names}; by default all but the last, on the CPU 1-greedy")
    top.add_argument(
        "--systems", nargs="+", help="some alone: heed, transformers, transformers-compiled, torch-compiled, ..."
    )
    top.add_argument("--rounds", type=int, default=3, help="how often each has its turn (default: 3)")
    top.add_argument("--steps", type=int, default=10, help="of training in a round (default: 10)")
    top.add_argument("--seconds", type=float, default=1.0, help="a round of generating takes at least (default: 1)")
    top.add_argument(
        "--length",
        type=int,
        nargs="+",
        metavar="N",
        help="training: windows of N tokens, as many as fill the same batch",
    )
    top.add_argument("--batch", type=int, help="windows in a batch of training (default: 32)")
    top.add_argument("--dropout", type=float, default=0.0, help="of all, while training (default: 0)")
    top.add_argument("--threads", type=int, default=1, help="of each process (default: 1)")
    top.add_argument(
        "--clock",
        choices=[*CLOCKS],
        default="wall",
        help="process: CPU seconds of each system, for a busy machine with --threads 1",
    )
    top.add_argument(
        "--peak", type=float, default=H200_PEAK, help="TFLOP/s that MFU is a share of (default: 989, an H200)"
    )
    top.add_argument(
        "--patience", type=float, default=240.0, help="seconds until a system that does not answer is ended"
    )
    top.add_argument("--quick", action="store_true", help="toy sizes: shows that all runs, says nothing about speed")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def chosen_rows(args: argparse.Namespace) -> list[TextRow]:
    wanted = args.rows or USUAL_ROWS[args.device]
    if unknown := sorted(set(wanted) - {row.name for row in TEXT_ROWS}):
        parser().error(f"--rows has {', '.join(unknown)}; there are {', '.join(row.name for row in TEXT_ROWS)}")
    rows = [row for row in TEXT_ROWS if row.name in wanted]
    rows = [dataclasses.replace(row, batch=args.batch or row.batch) if row.training else row for row in rows]
    rows = [quick(row) for row in rows] if args.quick else rows
    rows = [own for row in rows for own in lengthened(row, args.length or ())]
    return [dataclasses.replace(row, shape=dataclasses.replace(row.shape, dropout=args.dropout)) for row in rows]


def lengthened(row: TextRow, lengths: Sequence[int]) -> list[TextRow]:
    """A row of training with windows of each of these lengths, and about as many tokens in a batch; another row as it is."""
    if not row.training or not lengths:
        return [row]
    tokens = row.batch * row.length
    return [dataclasses.replace(row, name=f"{row.name}-{n}", length=n, batch=max(1, tokens // n)) for n in lengths]


def chosen_systems(row: TextRow, args: argparse.Namespace) -> tuple[list[System], list[str]]:
    """Who takes part, and a sentence about each who does not."""
    every = [own for own in text_systems(row, args.device) if not args.systems or own.name in args.systems]
    there = [own for own in every if own.needs is None or find_spec(own.needs) is not None]
    return there, [f"{own.name} is left out: {own.needs} is not installed" for own in every if own not in there]


def operations(row: TextRow) -> float:
    """Of matrix products, for each token of training: three times those of the forward pass, half of attention masked."""
    s = row.shape
    return 6.0 * (s.layers * (4 * s.dim**2 + 2 * s.dim * s.hidden + s.dim * row.length) + s.vocab * s.dim)


def summary(row: TextRow, systems: Sequence[System], found: Measured, peak: float) -> dict[str, Any]:
    """Of each system its median, its ratio to the best peer, MFU and memory."""
    speeds = {name: arithmetic.speeds(rounds) for name, rounds in found.rounds.items()}
    best = arithmetic.best(speeds, [system.name for system in systems if system.peer])
    ours, every = found.said.get("heed") or [], []
    for name, own in speeds.items():
        median, said = statistics.median(own), found.said.get(name) or []
        every.append(
            {
                "name": name,
                "tokens_per_second": median,
                "rounds": own,
                "ratio": arithmetic.ratio(own, speeds[best]) if best else None,
                "mfu": median * operations(row) / (peak * 1e12) if row.training else None,
                "memory_gib": max(one["memory"] for one in found.rounds[name]) / GIB,
                "set_up_seconds": found.set_up[name],
                "same": sum(map(list.__eq__, ours, said)) / len(ours) if ours and said and not row.sampled else None,
            }
        )
    return {"row": packed(row), "best_peer": best, "systems": every, "failed": found.failed, "versions": found.versions}


def table(found: Mapping[str, Any]) -> Table:
    shown = Table(title=f"GPT-2 {found['row']['name']}", title_justify="left")
    shown.add_column("system")
    for name in ("tokens/s", "rounds", "to best peer", "MFU", "GiB", "warm-up s", "as heed"):
        shown.add_column(name, justify="right")
    for own in found["systems"]:
        shares = ["" if own[name] is None else f"{100 * own[name]:.1f} %" for name in ("mfu", "same")]
        shown.add_row(
            own["name"] + (" *" if own["name"] == found["best_peer"] else ""),
            f"{own['tokens_per_second']:,.0f}",
            f"{min(own['rounds']):,.0f}-{max(own['rounds']):,.0f}",
            "" if own["ratio"] is None else f"{own['ratio']:.2f}",
            shares[0],
            f"{own['memory_gib']:.2f}",
            f"{own['set_up_seconds']:.1f}",
            shares[1],
        )
    return shown


def main(words: Sequence[str] | None = None) -> int:
    args = parser().parse_args(words)
    console = Console(width=None if sys.stdout.isatty() else 120)
    result: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": machine.cpu(), "threads": args.threads, "clock": args.clock, "peak_tflops": args.peak, "rows": [],
        "command": ["python", "-m", "bench", "gpt2", *(sys.argv[2:] if words is None else words)],
    }  # fmt: skip

    def say(sentence: str) -> None:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    at_work: Turns | None = None
    try:
        for row in chosen_rows(args):
            systems, without = chosen_systems(row, args)
            if at_work is None or systems != at_work.systems:  # else they have been imported already
                for sentence in without:
                    say(sentence)
                if at_work is not None:
                    at_work.close()
                at_work = WarmedTogether(
                    systems, lambda own: Worker(own, args.device, args.threads, sys.executable, args.patience), say
                )
            amount, warm = (args.steps, 3) if row.training else (None, 1)
            plan = Plan(args.rounds, warm, 1, amount, 0.0 if args.quick else args.seconds, args.patience, args.clock)
            found = summary(row, systems, at_work.measure(row, plan), args.peak)
            console.print(table(found))
            result["rows"].append(found)
            if args.json:
                args.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    finally:
        if at_work is not None:
            at_work.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
