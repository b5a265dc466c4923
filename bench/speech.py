"""A Speech-Transformer beside transformers' Speech2Text: `python -m bench.speech --device cuda`.

Both have the same layers, drawn weights and features. "heed, with CTC" is Heed's own default instead: convolutions of time and frequency,
and CTC beside attention in the loss and in the search. They get the same made-up recordings of mixed lengths and take turns in one process; the median counts. Training is measured in frames a second without padding,
decoding by the real-time factor: seconds of computing for each second of sound.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from bench import machine
from bench.speech_systems import (
    CTC,
    Recordings,
    Shape,
    batches,
    our_decoding,
    our_model,
    our_training,
    recordings,
    same_model,
    their_decoding,
    their_model,
    their_training,
)  # fmt: skip
from bench.worker import CLOCKS
from heed.device import choose_device
from heed.files import write_json

ROWS = {"train": 0, "greedy": 1, "beam-5": 5}  # and how many beams
SYSTEMS = ("heed", "heed, with CTC", "transformers", "transformers, sorted", "heed, compiled", "transformers, compiled")
QUICK = Shape(40, 16, 16, 2, 24, 2, 1)
Work = Callable[[], float]  # what is done in a round; returns the frames, or the seconds of sound


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.speech", description=__doc__)
    option = top.add_argument
    option("--device", choices=["cpu", "cuda"], default="cpu")
    option("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), help="some alone")
    option(
        "--systems", nargs="+", choices=SYSTEMS, help="some alone; the compiled ones are trained on a GPU by default"
    )
    option("--rounds", type=int, default=5, help="how often each has its turn (default: 5)")
    option("--steps", type=int, help="of training in a round; 20 by default, 1 on the CPU")
    option("--frames", type=int, help="of a batch of training, with padding; 60,000 by default, 6,000 on the CPU")
    option("--recordings", type=int, help="to decode; 512 by default, 16 on the CPU")
    option("--median", type=float, default=8.0, help="seconds of a recording, the median (default: 8)")
    option("--precision", choices=["float32", "bfloat16"], default="float32", help="of decoding (default: float32)")
    option("--threads", type=int, default=2, help="on the CPU (default: 2)")
    option("--clock", choices=[*CLOCKS], default="wall", help="process: CPU seconds of this process, for a busy machine with --threads 1")  # fmt: skip
    option("--quick", action="store_true", help="toy sizes: shows that all runs, says nothing about speed")
    option("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def sizes(args: argparse.Namespace) -> dict[str, int]:
    """Steps and frames of training, recordings to decode."""
    usual = {"steps": 20, "frames": 60_000, "recordings": 512}
    if args.device == "cpu":
        usual = {"steps": 1, "frames": 6000, "recordings": 16}
    if args.quick:
        usual = {"steps": 1, "frames": 600, "recordings": 6}
    return {name: getattr(args, name) or value for name, value in usual.items()}


def training(args: argparse.Namespace, shape: Shape, device: torch.device) -> dict[str, Callable[[], Work]]:
    """What builds each system that trains."""
    own = sizes(args)
    made = batches(
        recordings(own["frames"] // 100, shape, args.median, min(30.0, own["frames"] / 100)), own["frames"], device
    )
    built = {
        "heed": lambda: our_training(same_model(shape), made, device, 0.0, False),
        "heed, with CTC": lambda: our_training(our_model(shape), made, device, CTC, False),
        "transformers": partial(their_training, shape, made, device, False),
        "heed, compiled": lambda: our_training(same_model(shape), made, device, 0.0, True),
        "transformers, compiled": partial(their_training, shape, made, device, True),
    }
    wanted = args.systems or [name for name in built if device.type == "cuda" or "compiled" not in name]
    return {name: lambda build=build: partial(build(), own["steps"]) for name, build in built.items() if name in wanted}


def decoding(args: argparse.Namespace, shape: Shape, device: torch.device, beams: int) -> dict[str, Callable[[], Work]]:
    """What builds each system that decodes."""
    own = recordings(sizes(args)["recordings"], shape, args.median, 30.0)
    dtype = getattr(torch, args.precision)

    def build(model: Callable, make: Callable, *options: Any) -> Work:
        made = make(model(shape).to(device, dtype).eval(), own, device, beams, *options)
        return partial(decoded, made, own)

    built = {
        "heed": partial(build, same_model, our_decoding, 0.0),
        "heed, with CTC": partial(build, our_model, our_decoding, CTC),
        "transformers": partial(build, their_model, their_decoding, False),
        "transformers, sorted": partial(build, their_model, their_decoding, True),
    }
    return {name: make for name, make in built.items() if not args.systems or name in args.systems}


def decoded(run: Callable[[], list[list[int]]], own: Recordings) -> float:
    """Decode all; a text of another length than asked for is an error, since the work would not be the same."""
    lengths = [len(text) for text in run()]
    if lengths != own.outputs:
        raise ValueError(f"it wrote {sum(lengths)} tokens where {sum(own.outputs)} were asked for")
    return own.seconds


def measure(
    built: Mapping[str, Callable[[], Work]], rounds: int, device: torch.device, clock: str = "wall"
) -> dict[str, dict[str, Any]]:
    """The rate of each system in each round, in turns; of one that fails, why."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    now = CLOCKS[clock]
    found: dict[str, dict[str, Any]] = {name: {"rates": []} for name in built}
    at_work: dict[str, Work] = {}

    def turn(name: str) -> None:
        try:
            if name not in at_work:
                at_work[name] = built[name]()
                at_work[name]()  # warm
                wait()
                return
            began = now()
            amount = at_work[name]()
            wait()
            found[name]["rates"].append(amount / (now() - began))
        except Exception as error:  # the others go on without it
            said = str(error).strip().split("\n")[0]
            found[name] = {"error": f"{type(error).__name__}: {said}"}

    for number in range(rounds + 1):
        names = [name for name in built if "error" not in found[name]]
        first = number % max(1, len(names))
        for name in names[first:] + names[:first]:
            turn(name)
    for own in found.values():
        if "rates" in own:
            own["rate"] = statistics.median(own["rates"])
    return found


def table(row: str, found: Mapping[str, Mapping[str, Any]]) -> Table:
    trains = row == "train"
    title = "training, frames a second" if trains else f"{row}: real-time factor"
    shown = Table(title=f"Speech-Transformer, {title}", title_justify="left")
    for name in ("system", "median", "of all rounds", "heed is faster by"):
        shown.add_column(name, justify="left" if name == "system" else "right")
    ours = found.get("heed", {}).get("rate")
    for name, own in found.items():
        if "error" in own:
            shown.add_row(name, own["error"], "", "")
            continue
        cells = [f"{rate:,.0f}" if trains else f"{1 / rate:.5f}" for rate in (own["rate"], *own["rates"])]
        ordered = sorted(cells[1:], key=lambda cell: float(cell.replace(",", "")))
        ratio = f"{ours / own['rate']:.2f}" if ours else ""
        shown.add_row(name, cells[0], f"{ordered[0]} to {ordered[-1]}", ratio)
    return shown


def main(words: Sequence[str] | None = None) -> int:
    args, console = parser().parse_args(words), Console(width=None if sys.stdout.isatty() else 120)
    device = choose_device(args.device)
    torch.set_num_threads(args.threads)
    shape = QUICK if args.quick else Shape()
    weights = {
        name: sum(own.numel() for own in make(shape).parameters())
        for name, make in (("heed", same_model), ("heed, with CTC", our_model), ("transformers", their_model))
    }
    facts: dict[str, Any] = {
        "device": machine.cpu() if device.type == "cpu" else torch.cuda.get_device_name(device),
        "threads": args.threads, "clock": args.clock, "torch": torch.__version__, "transformers": version("transformers"), **sizes(args),
        "median_seconds": args.median, "precision": args.precision, "weights": weights,
    }  # fmt: skip
    console.print(json.dumps(facts), highlight=False, soft_wrap=True)
    for row in args.rows:
        beams = ROWS[row]
        built = decoding(args, shape, device, beams) if beams else training(args, shape, device)
        facts[row] = measure(built, args.rounds, device, args.clock)
        console.print(table(row, facts[row]))
        if args.json:
            write_json(args.json, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
