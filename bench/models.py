"""Trained models beside each other on real text: `python -m bench.models A B --source FILE`, model folders or runs.

They take turns, each as `heed.load` gives it: on the CPU with weights of eight bits and the shortlist that it has. What counts
is target tokens per second, of the texts as they are; all after the first are compared with the first, round by round.
"""

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

import heed
from bench.arithmetic import ratio
from bench.machine import cpu
from heed.data.readers import lines
from heed.evaluation.translation import score


class Found(NamedTuple):
    """Of one model and one size of beam: tokens a second of each round, and what it said."""

    speeds: list[float]
    said: list[str]


def measure(models: Mapping[str, Any], texts: Sequence[str], beam: int, rounds: int) -> dict[str, Found]:
    """A round that does not count, then so many in which each has its turn, every round beginning with another."""
    found = {name: Found([], []) for name in models}
    for number in range(rounds + 1):
        names = list(models)[number % len(models) :] + list(models)[: number % len(models)]
        for name in names:
            began = time.perf_counter()
            said = models[name].translate(texts, beam=beam)
            speed = sum(len(one.tokens) for one in said) / (time.perf_counter() - began)
            if number:
                found[name].speeds.append(speed)
            else:
                found[name].said.extend(one.text for one in said)
    return found


def row(name: str, found: Mapping[str, Found], references: Sequence[str] | None, beam: int) -> dict[str, Any]:
    first, own = next(iter(found.values())), found[name]
    bleu = score(own.said, [references], lowercase=True).bleu.value if references else None
    return {
        "model": name,
        "beam": beam,
        "tokens_per_second": statistics.median(own.speeds),
        "rounds": own.speeds,
        "ratio": ratio(own.speeds, first.speeds),
        "bleu": bleu,
    }


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    shown = Table()
    shown.add_column("model")
    for name in ("beam", "tokens/s", "rounds", "to the first", "BLEU, lower-cased"):
        shown.add_column(name, justify="right")
    for one in rows:
        low, high = min(one["rounds"]), max(one["rounds"])
        bleu = "" if one["bleu"] is None else f"{one['bleu']:.2f}"
        speed = f"{one['tokens_per_second']:,.0f}"
        shown.add_row(one["model"], str(one["beam"]), speed, f"{low:,.0f}-{high:,.0f}", f"{one['ratio']:.2f}", bleu)
    return shown


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.models", description=__doc__)
    parser.add_argument("models", nargs="+", help="model folders or runs; the others are compared with the first")
    parser.add_argument("--source", required=True, type=Path, help="texts, a line each (.gz and .xz too)")
    parser.add_argument("--reference", type=Path, help="their translations, for BLEU")
    parser.add_argument("--beam", type=int, nargs="+", default=[5, 1], help="beam sizes (default: 5 1)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of measurement (default: 3)")
    parser.add_argument("--lines", type=int, help="how many of the texts (default: all)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: 2)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--engine", default="auto", help="torch: float32, and the whole vocabulary (default: auto)")
    parser.add_argument("--json", type=Path, help="where the numbers are written")
    asked = parser.parse_args(words)
    torch.set_num_threads(asked.threads)
    try:
        texts = list(lines(asked.source))[: asked.lines]
        references = list(lines(asked.reference))[: asked.lines] if asked.reference else None
        models = {name: heed.load(name, asked.device, asked.engine) for name in asked.models}
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if not any(text.strip() for text in texts):
        parser.error(f"{asked.source} has no text: name a file with a sentence a line")
    if references is not None and len(references) != len(texts):
        parser.error(f"{asked.reference} has {len(references):,} lines, {asked.source} has {len(texts):,}")
    console, every = Console(), []
    for beam in asked.beam:
        found = measure(models, texts, beam, asked.rounds)
        every += [row(name, found, references, beam) for name in models]
    where = cpu() if asked.device == "cpu" else torch.cuda.get_device_name()
    console.print(
        f"{len(texts):,} texts of {asked.source.name}; {where}; {asked.threads} threads; engine {asked.engine}"
    )
    console.print(table(every))
    if asked.json:
        asked.json.write_text(json.dumps({"device": where, "threads": asked.threads, "rows": every}, indent=2) + "\n")


if __name__ == "__main__":
    main()
