"""Recommenders beside others: `python -m bench.recommend` (training SASRec, and finding the best items of many users).

Training: epochs a second of the same SASRec on the same log, beside RecTools where it is installed (`pip install
'rectools[torch]'`) and a plain padded loop of torch. Search: users a second. All take turns in one process; the median counts.
"""

import argparse
import json
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from bench import machine, recommend_search, recommend_train
from bench.worker import CLOCKS
from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.log import core, open_log
from heed.device import choose_device
from heed.files import write_json
from heed.vocabularies.ragged import RaggedRows

BEAUTY = (22_363, 12_101)  # users and items of Amazon's Beauty
PACKAGES = ("torch", "rectools", "pytorch-lightning", "faiss-cpu")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.recommend", description=__doc__)
    top.add_argument("what", nargs="*", choices=[[], "train", "search"], help="one of them alone")
    top.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    top.add_argument("--interactions", type=Path, metavar="FILE", help="a log to train on; else one is made up")
    top.add_argument("--users", type=int, help=f"of the log that is made up (default: {BEAUTY[0]:,})")
    top.add_argument("--items", type=int, help=f"of that log (default: {BEAUTY[1]:,})")
    top.add_argument("--objectives", nargs="+", choices=["bce", "cross-entropy"], default=["bce", "cross-entropy"])
    top.add_argument("--batch", type=int, default=128, help="users in a batch of training (default: 128)")
    top.add_argument("--search-items", type=int, nargs="+", help="items to search (default: 12,000 and 1,000,000)")
    top.add_argument("--search-users", type=int, help="users of a round of search (default: 64; 4,096 on a GPU)")
    top.add_argument("--systems", nargs="+", help="some alone, by the names of the tables")
    top.add_argument("--rounds", type=int, default=3, help="how often each has its turn (default: 3)")
    top.add_argument("--threads", type=int, default=2, help="on the CPU (default: 2)")
    top.add_argument("--clock", choices=[*CLOCKS], default="wall", help="process: CPU seconds of this process, for a busy machine with --threads 1")  # fmt: skip
    top.add_argument("--quick", action="store_true", help="toy sizes: shows that all runs, says nothing about speed")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def in_turns(made: dict[str, Callable[[], Any]], rounds: int, clock: str) -> dict[str, list[float]]:
    """Seconds of each in each round, after one that does not count; each round begins with another."""
    seconds: dict[str, list[float]] = {name: [] for name in made}
    now = CLOCKS[clock]
    for run in made.values():
        run()
    names = list(made)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            began = now()
            made[name]()
            seconds[name].append(now() - began)
    return seconds


def read_log(path: Path) -> tuple[RaggedRows, int]:
    """The histories of a log, as heed reads it, with users and items of five interactions each."""
    with open_log(InteractionsConfig([str(path)])) as log:
        left = core(log, 5)
        kept = [block.items[left.inside(block)] for block in log.blocks()]
        names, items = np.unique(np.concatenate(kept), return_inverse=True)
        return RaggedRows(items.astype(np.int64), left.user_counts[left.user_counts > 0]), len(names)


def measure_training(args: argparse.Namespace, device: torch.device, console: Console) -> list[dict[str, Any]]:
    users, items = (60, 50) if args.quick else (args.users or BEAUTY[0], args.items or BEAUTY[1])
    if args.interactions is None:
        rows = recommend_train.made_up_log(users, items)
        items = int(rows.ids.max()) + 1  # a small log has fewer
    else:
        rows, items = read_log(args.interactions)
    found = []
    for objective in args.objectives:
        sizes = {"length": 10, "dim": 8, "users": 16} if args.quick else {"users": args.batch}
        task = recommend_train.Task(rows, items, objective=objective, **sizes)
        made, said = recommend_train.systems(task, device, args.systems)
        row = {
            "what": "train",
            "objective": objective,
            "users": len(rows),
            "items": items,
            "interactions": len(rows.ids),
        }
        row["model"] = {name: getattr(task, name) for name in ("length", "dim", "heads", "layers", "dropout")}
        row["batch"], row["not measured"], row["systems"] = task.users, said, {}
        for name, seconds in in_turns(made, args.rounds, args.clock).items():
            row["systems"][name] = {"rate": 1 / statistics.median(seconds), "rates": [1 / own for own in seconds]}
        found.append(row)
        show(f"training SASRec, {objective}: {len(rows):,} users, {items:,} items; epochs a second", row, console)
    return found


def measure_search(args: argparse.Namespace, device: torch.device, console: Console) -> list[dict[str, Any]]:
    users = args.search_users or (4096 if device.type == "cuda" else 64)
    sizes = args.search_items or [12_000, 1_000_000]
    dim, count = 64, 10
    if args.quick:
        users, sizes, dim, count = 4, [100, 3000], 8, 3
    found = []
    for items in sizes:
        made, said = recommend_search.systems(items, users, dim, count, device, args.threads)
        made = {name: run for name, run in made.items() if not args.systems or name in ("heed", *args.systems)}
        first = made["heed"]()
        same = {name: float(np.mean(first == run())) for name, run in made.items()}
        row = {"what": "search", "items": items, "users": users, "dim": dim, "k": count, "not measured": said}
        row["systems"] = {
            name: {"rate": users / statistics.median(own), "rates": [users / one for one in own], "as heed": same[name]}
            for name, own in in_turns(made, args.rounds, args.clock).items()
        }
        found.append(row)
        show(f"the best {count} of {items:,} items; users a second", row, console)
    return found


def show(title: str, row: dict[str, Any], console: Console) -> None:
    table = Table(title=title)
    for column in ("system", "median", "of all rounds", "heed is faster by"):
        table.add_column(column, justify="left" if column == "system" else "right")
    ours = row["systems"]["heed"]["rate"]
    for name, own in row["systems"].items():
        rates = f"{min(own['rates']):,.3g} to {max(own['rates']):,.3g}"
        table.add_row(name, f"{own['rate']:,.3g}", rates, f"{ours / own['rate']:.2f}")
    console.print(table)
    for sentence in row["not measured"]:
        console.print(sentence, highlight=False, markup=False)


def versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main(words: Sequence[str] | None = None) -> int:
    args, console = parser().parse_args(words), Console(width=None if sys.stdout.isatty() else 120)
    warnings.filterwarnings("ignore", module="(pytorch_)?lightning|rectools|implicit")
    device = choose_device(args.device)
    torch.set_num_threads(args.threads)
    facts: dict[str, Any] = {
        "device": machine.cpu() if device.type == "cpu" else torch.cuda.get_device_name(device),
        "threads": args.threads, "clock": args.clock, "rounds": args.rounds, "quick": args.quick, "versions": versions(), "rows": [],
    }  # fmt: skip
    console.print(json.dumps(facts), highlight=False)
    for what, measure in (("search", measure_search), ("train", measure_training)):
        if not args.what or what in args.what:
            facts["rows"] += measure(args, device, console)
            if args.json:
                write_json(args.json, facts)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
