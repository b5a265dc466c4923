"""Time and memory of block-sparse attention beside full attention: `python -m bench.bigbird --device cuda`.

One attention layer and a whole BigBird of base size, random weights, read as many tokens in texts of each length. "gathered" are the blocks of
heed.nn.blocks, "flex" the same by FlexAttention (heed.kernels.flex_blocks), "full" is torch's attention over everything, by its flash
kernel on a GPU. "forward" is that of inference; "both" are the forward and backward pass of training. No dropout, bfloat16 on a GPU.
Memory is the most that a pass takes beside weights and inputs; on the CPU it is not measured. What was measured is written after each
length.
"""

import argparse
import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench import machine
from heed.device import choose_device
from heed.files import write_json, write_text
from heed.kernels.flex_blocks import attend_flex
from heed.lab import charts
from heed.models.bigbird import PRESETS, BigBird, BigBirdConfig
from heed.nn.attention import Attention
from heed.nn.sparse import BlockSparseAttention

SYSTEMS = ("full", "gathered", "flex")
PARTS = {"layer": "one attention layer", "model": "BigBird"}
PASSES = {"forward": "forward", "both": "forward and backward"}
QUICK = {"dim": 32, "heads": 2, "hidden": 64, "layers": 2, "block": 4, "random_blocks": 1}
VOCABULARY = 1000  # tokens: few, so that the layers are what is measured
GIB = 2**30


class Plan(NamedTuple):
    """What is measured: lengths with so many tokens in a batch, each pass `rounds` times after `warm` others."""

    device: torch.device
    sizes: dict[str, Any]
    lengths: Sequence[int]
    tokens: int
    rounds: int
    warm: int


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.bigbird", description=__doc__)
    top.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    top.add_argument("--lengths", type=int, nargs="+", help="of texts; by default 512 to 32,768, on the CPU to 4,096")
    top.add_argument("--tokens", type=int, help="of a batch (default: the longest length)")
    top.add_argument("--layers", type=int, help="of the BigBird (default: 12)")
    top.add_argument("--rounds", type=int, default=7, help="how often a pass is timed; the median counts (default: 7)")
    top.add_argument("--systems", nargs="+", choices=SYSTEMS, help="some alone; on the CPU all but flex by default")
    top.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS), help="some alone")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    top.add_argument("--markdown", type=Path, metavar="FILE", help="write the table of docs/results.md")
    top.add_argument("--out", type=Path, metavar="FILE", help="draw it, as .png")
    top.add_argument("--quick", action="store_true", help="toy sizes: shows that all runs, says nothing about speed")
    return top


def plan(args: argparse.Namespace) -> Plan:
    device, sizes = choose_device(args.device), QUICK if args.quick else PRESETS["base"]
    longest = 128 if args.quick else 32768 if device.type == "cuda" else 4096
    shortest = 16 if args.quick else 512
    lengths = sorted(args.lengths or (2**n for n in range(int(math.log2(shortest)), int(math.log2(longest)) + 1)))
    sizes = sizes | ({"layers": args.layers} if args.layers else {})
    return Plan(device, sizes, lengths, args.tokens or lengths[-1], args.rounds, 1 if args.quick else 3)


def full_length(own: Plan) -> int:
    """Up to this length every system has full attention."""
    return build("layer", "gathered", own).pattern.full


def build(part: str, system: str, own: Plan) -> nn.Module:
    """A layer of attention, or the model, without dropout; the weights are the same in each system."""
    config = BigBirdConfig(
        vocab_size=VOCABULARY, max_length=own.lengths[-1], sparse=system != "full", dropout=0.0, attention_dropout=0.0,
        head="none", **own.sizes,
    )  # fmt: skip
    torch.manual_seed(0)
    model = BigBird(config)
    model = model.stack.layers[0].attention.body if part == "layer" else model
    if system == "flex":
        for module in model.modules():
            if isinstance(module, BlockSparseAttention):
                module.kernel = attend_flex
    return model.to(own.device)


def prepared(model: nn.Module, name: str, length: int, own: Plan) -> Callable[[], None]:
    """The forward pass of inference, or the forward and backward pass of training, on random numbers."""
    batch, cuda = max(1, own.tokens // length), own.device.type == "cuda"
    torch.manual_seed(1)
    x = torch.randn(batch, length, own.sizes["dim"], device=own.device)
    gradient = torch.randn_like(x)
    tokens = torch.randint(5, VOCABULARY, (batch, length), device=own.device)
    training = name == "both"
    model.train(training).requires_grad_(training)
    x.requires_grad_(training)
    run = partial(model, x) if isinstance(model, Attention) else partial(model.encode_text, tokens)

    def work() -> None:
        with torch.set_grad_enabled(training), torch.autocast("cuda", torch.bfloat16) if cuda else nullcontext():
            y = run()
        if training:
            y.backward(gradient.to(y.dtype))
            model.zero_grad(set_to_none=True)
            x.grad = None

    return work


def kernels(system: str, device: torch.device) -> AbstractContextManager[None]:
    """Full attention on a GPU is flash, or an error."""
    flash = system == "full" and device.type == "cuda"
    return sdpa_kernel([SDPBackend.FLASH_ATTENTION]) if flash else nullcontext()


def timed(work: Callable[[], Any], own: Plan) -> dict[str, Any]:
    """Seconds of each round, their median, and the most memory that was taken; or why there is none."""
    cuda = own.device.type == "cuda"
    wait = torch.cuda.synchronize if cuda else lambda: None
    seconds, before = [], torch.cuda.memory_allocated() if cuda else 0
    for number in range(own.warm + own.rounds):
        if number == own.warm and cuda:
            torch.cuda.reset_peak_memory_stats()
        wait()
        began = time.perf_counter()
        work()
        wait()
        seconds.append(time.perf_counter() - began)
    memory = torch.cuda.max_memory_allocated() - before if cuda else None
    own_rounds = seconds[own.warm :]
    return {"seconds": statistics.median(own_rounds), "rounds": own_rounds, "memory": memory}


def attempt(part: str, system: str, length: int, own: Plan) -> dict[str, dict[str, Any]]:
    """Both passes of a system at a length. What fails is a row that says why."""
    found: dict[str, dict[str, Any]] = {}
    for name in PASSES:
        if system == "flex":
            torch.compiler.reset()  # so that it is compiled for this very length
        try:
            with kernels(system, own.device):
                found[name] = timed(prepared(build(part, system, own), name, length, own), own)
        except Exception as error:
            found[name] = {"error": reason(error)}
        gc.collect()  # what an error held on to
        if own.device.type == "cuda":
            torch.cuda.empty_cache()
    return found


def reason(error: Exception) -> str:
    said = str(error).strip().split("\n")[0]
    if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in said:
        return "out of memory"
    return f"{type(error).__name__}: {said}"


def crossing(rows: Sequence[dict[str, Any]], part: str, name: str, system: str) -> float | None:
    """The length from which on a system is faster than full attention, between two measured ones by a line in logarithms.

    None where it is not at the longest; where full attention fails, it is faster. Shorter texts than blocks are for do not count.
    """
    found = None
    for row in reversed([row for row in rows if row["sparse"]]):
        ours, full = (row["systems"].get(one, {}).get(part, {}).get(name, {}) for one in (system, "full"))
        if "seconds" not in ours or ("seconds" not in full and "error" not in full):
            break
        gap = math.log(ours["seconds"] / full["seconds"]) if "seconds" in full else -math.inf
        if gap >= 0:
            if found is None:
                return None
            share = gap / (gap - found[1]) if math.isfinite(found[1]) else 1.0
            return math.exp(math.log(row["length"]) + share * math.log(found[0] / row["length"]))
        found = row["length"], gap
    return None if found is None else float(found[0])


def crossings(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, float | None]]]:
    return {
        part: {name: {one: crossing(rows, part, name, one) for one in SYSTEMS[1:]} for name in PASSES} for part in PARTS
    }


def shown(own: dict[str, Any]) -> str:
    if "error" in own:
        return own["error"]
    memory = "" if own["memory"] is None else f" · {own['memory'] / GIB:.2f} GiB"
    return f"{1000 * own['seconds']:,.2f} ms{memory}"


def show(facts: dict[str, Any], console: Console) -> None:
    rows = facts["rows"]
    for part in facts["parts"]:
        for name, title in PASSES.items():
            table = Table("length", "texts", *facts["systems"], title=f"{PARTS[part]}, {title}")
            for row in rows:
                cells = [shown(row["systems"][one][part][name]) for one in facts["systems"]]
                table.add_row(f"{row['length']:,}", str(row["texts"]), *cells)
            console.print(table)
            for one, at in facts["crossings"][part][name].items():
                if one in facts["systems"] and "full" in facts["systems"]:
                    said = "not faster at the longest" if at is None else f"faster from about {at:,.0f} tokens on"
                    console.print(f"{one}: {said}", highlight=False)


def table(facts: dict[str, Any]) -> list[str]:
    """All that was measured as one table in Markdown: time, and on a GPU memory, of each system."""
    kinds = [(part, name) for part in facts["parts"] for name in PASSES]
    cells = [f"{PARTS[part]}, {PASSES[name]}: {one}" for part, name in kinds for one in facts["systems"]]
    lines = [f"| length | {' | '.join(cells)} |", "|--:|" + "---|" * len(cells)]
    for row in facts["rows"]:
        found = [shown(row["systems"][one][part][name]) for part, name in kinds for one in facts["systems"]]
        lines.append(f"| {row['length']:,} | {' | '.join(found)} |")
    return lines


def draw(facts: dict[str, Any], path: Path) -> None:
    """Time and memory of a forward and backward pass, by length."""
    caption = f"Forward and backward pass of training, {facts['tokens']:,} tokens in texts of each length; {facts['device']}, {facts['precision']}, torch {facts['torch']}. Where a line ends, the system failed."
    figure = charts.new_figure("Block-sparse attention beside full attention", caption)
    what = [("seconds", "milliseconds", 1000.0)] + [("memory", "GiB", 1 / GIB)] * (facts["memory"])
    panels = figure.subplots(len(what), len(facts["parts"]), squeeze=False)
    for (key, unit, times), line in zip(what, panels, strict=True):
        for part, panel in zip(facts["parts"], line, strict=True):
            charts.style_axes(panel, f"{PARTS[part]}", "tokens of a text", unit, log=True)
            panel.set_xscale("log", base=2)
            named = []
            for number, system in enumerate(facts["systems"]):
                found = [(row["length"], row["systems"][system][part]["both"].get(key)) for row in facts["rows"]]
                points = [(length, times * value) for length, value in found if value is not None]
                if points:
                    charts.line(panel, *map(list, zip(*points, strict=True)), charts.SERIES[number], marker="o")
                    named.append(system)
            if named:
                charts.label_line_ends(panel, named)
    charts.save(figure, path)


def main(words: Sequence[str] | None = None) -> int:
    args, console = parser().parse_args(words), Console(width=None if sys.stdout.isatty() else 140)
    own = plan(args)
    cuda = own.device.type == "cuda"
    systems = args.systems or [one for one in SYSTEMS if cuda or one != "flex"]
    facts: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if cuda else machine.cpu(), "torch": torch.__version__,
        "precision": "bfloat16" if cuda else "float32", "memory": cuda, "threads": torch.get_num_threads(),
        "sizes": own.sizes, "tokens": own.tokens, "systems": systems, "parts": args.parts, "rows": [],
    }  # fmt: skip
    for length in own.lengths:
        row: dict[str, Any] = {
            "length": length, "texts": max(1, own.tokens // length), "sparse": length > full_length(own), "systems": {},
        }  # fmt: skip
        for one in systems:
            row["systems"][one] = {part: attempt(part, one, length, own) for part in args.parts}
            for part, found in row["systems"][one].items():
                said = ", ".join(f"{name} {shown(each)}" for name, each in found.items())
                console.print(f"{length:,} {one} {part}: {said}", highlight=False)
        facts["rows"].append(row)
        facts["crossings"] = crossings(facts["rows"])
        if args.json:
            write_json(args.json, facts)
    show(facts, console)
    if args.markdown:
        write_text(args.markdown, "\n".join(table(facts)) + "\n")
    if args.out:
        draw(facts, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
