"""Images a second of heed's ViT in training and inference, beside transformers' ViT and a plain one of torch's parts: `python -m bench.images`.

All take turns in one process; the median counts. An Image Transformer draws with and without cached keys.
"""

import argparse
import dataclasses
import datetime
import statistics
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from bench import arithmetic, image_systems, machine
from bench.image_systems import Shape
from bench.worker import CLOCKS
from heed.device import choose_device
from heed.files import write_json
from heed.models.image_transformer import PRESETS, ImageTransformer, ImageTransformerConfig
from heed.products.image_generator import ImageGenerator
from heed.vocabularies.images import Images

SHAPES = {
    "cifar": Shape(32, 4, 384, 6, 1536, 9, 10, 512),  # recipes/vit-cifar10.toml
    "base": Shape(224, 16, 768, 12, 3072, 12, 1000, 256),  # ViT-base, 224 pixels, patches of 16
}
QUICK = Shape(8, 4, 16, 1, 32, 2, 5, 4)
CPU_BATCH = {"cifar": 32, "base": 4}
CLASSIFIED = {"cuda": {"cifar": 32_768, "base": 4096}, "cpu": {"cifar": 128, "base": 16}}
BARS = {"train": 1.0, "classify": 1.5}
ROWS = ["train-cifar", "classify-cifar", "train-base", "classify-base", "draw"]


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.images", description=__doc__)
    top.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    top.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, help="some alone")
    top.add_argument(
        "--systems",
        nargs="+",
        help="some alone: heed, transformers, torch, transformers-compiled, torch-compiled; on a GPU heed-captured and heed-bf16, on the CPU heed-float32. "
        "On the CPU nothing is compiled unless it is named here",
    )
    top.add_argument("--rounds", type=int, default=5, help="how often each has its turn (default: 5)")
    top.add_argument("--steps", type=int, help="of training in a round (default: 20 on a GPU, 1 on the CPU)")
    top.add_argument("--batch", type=int, help="images in a batch of training (default: 512 and 256; 32 and 4 on the CPU)")  # fmt: skip
    top.add_argument("--images", type=int, help="to classify in a round (default: 32,768 and 4,096; 128 and 16 on the CPU)")  # fmt: skip
    top.add_argument("--threads", type=int, default=2, help="on the CPU (default: 2)")
    top.add_argument("--clock", choices=[*CLOCKS], default="wall", help="process: CPU seconds of this process, for a busy machine with --threads 1")  # fmt: skip
    top.add_argument("--quick", action="store_true", help="toy sizes: shows that all runs, says nothing about speed")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def chosen(args: argparse.Namespace, training: bool) -> tuple[list[str], list[str]]:
    """The systems that take part, and a sentence about each who does not."""
    cuda = args.device == "cuda"
    own = {(True, True): ["heed-captured"], (True, False): ["heed-bf16"], (False, False): ["heed-float32"]}
    every = ["heed", *own.get((cuda, training), [])]
    every += [f"{name}{how}" for name in ("transformers", "torch") for how in ("", "-compiled")]
    names, without = [], []
    for name in every:
        if args.systems and name not in args.systems:
            continue
        if name.startswith("transformers") and find_spec("transformers") is None:
            without.append(f"{name} is left out: transformers is not installed")
        elif name.endswith("-compiled") and not args.systems and (args.quick or not cuda):
            without.append(f"{name} is left out: on the CPU and with --quick nothing is compiled unless --systems names it")  # fmt: skip
        else:
            names.append(name)
    return names, without


def in_turns(
    made: dict[str, Callable[[], Any]], rounds: int, clock: str
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds of each in each round, and of its warm-up; each round begins with another."""
    seconds: dict[str, list[float]] = {name: [] for name in made}
    warm, now = {}, CLOCKS[clock]
    for name, run in made.items():
        began = now()
        run()
        run()
        warm[name] = now() - began
    names = list(made)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            began = now()
            made[name]()
            seconds[name].append(now() - began)
    return seconds, warm


def shape_of(args: argparse.Namespace, name: str) -> Shape:
    shape = QUICK if args.quick else SHAPES[name]
    batch = args.batch or (shape.batch if args.quick or args.device == "cuda" else CPU_BATCH[name])
    return dataclasses.replace(shape, batch=batch)


def training(args: argparse.Namespace, name: str, device: torch.device) -> dict[str, Any]:
    shape, (names, without) = shape_of(args, name), chosen(args, training=True)
    steps = args.steps or (20 if device.type == "cuda" and not args.quick else 1)
    made: dict[str, Callable[[], None]] = {}
    for one in names:
        peer = one.removesuffix("-compiled")
        if peer in image_systems.PEERS:
            make, logits = image_systems.PEERS[peer]
            how = (shape, device, steps, one != peer)
            made[one] = image_systems.peer_training(make(shape.model()), logits, *how)
        else:
            captured = one == "heed-captured"
            made[one] = image_systems.heed_training(shape.model(), shape, device, steps, captured)
    seconds, warm = in_turns(made, args.rounds, args.clock)
    rates = {one: [shape.batch * steps / each for each in own] for one, own in seconds.items()}
    return summary(f"train-{name}", rates, warm, without, batch=shape.batch, steps=steps)


def classifying(args: argparse.Namespace, name: str, device: torch.device) -> dict[str, Any]:
    shape, (names, without) = shape_of(args, name), chosen(args, training=False)
    pixels = shape.pixels(args.images or (8 if args.quick else CLASSIFIED[device.type][name]))
    product = image_systems.heed_classifier(shape, device)
    size = len(next(product.batches(pixels)))
    pixels = pixels[: max(1, len(pixels) // size) * size]  # whole batches: another shape would be compiled too
    made: dict[str, image_systems.Classify] = {}
    for one in names:
        peer = one.removesuffix("-compiled")
        if peer in image_systems.PEERS:
            make, logits = image_systems.PEERS[peer]
            made[one] = image_systems.peer_classifier(make(shape.model()), logits, size, device, one != peer)
        else:
            other = image_systems.heed_classifier(shape, device, "torch") if one != "heed" else product
            made[one] = other.probabilities
    results: dict[str, np.ndarray] = {}

    def once(one: str) -> Callable[[], None]:
        return lambda: results.update({one: made[one](pixels)})

    seconds, warm = in_turns({one: once(one) for one in made}, args.rounds, args.clock)
    rates = {one: [len(pixels) / each for each in own] for one, own in seconds.items()}
    found = summary(f"classify-{name}", rates, warm, without, batch=size, images=len(pixels))
    for own in found["systems"]:
        own["difference"] = float(np.abs(results[own["name"]] - next(iter(results.values()))).max())
    return found


def drawing(args: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """An Image Transformer with and without a cache: of CIFAR's size on a GPU, a small one on the CPU."""
    cuda = device.type == "cuda" and not args.quick
    sizes = PRESETS["base"] if cuda else PRESETS["tiny"]
    size, count = (32, 64) if cuda else (4 if args.quick else 12, 4)
    torch.manual_seed(0)
    config = ImageTransformerConfig(size=size, channels=3, query_block=size * size, **sizes)
    model = ImageTransformer(config).to(device).eval()
    generator = ImageGenerator(model, Images(size, 3, (0.5,) * 3, (0.5,) * 3))
    made = {
        "heed": lambda: generator.generate(count, seed=1),
        "heed without cache": lambda: image_systems.draw_without_cache(model, count, 1),
    }
    seconds, warm = in_turns(made, min(args.rounds, 3), args.clock)
    rates = {one: [count / each for each in own] for one, own in seconds.items()}
    return summary("draw", rates, warm, [], batch=count, size=size)


def summary(
    row: str, rates: dict[str, list[float]], warm: dict[str, float], without: Sequence[str], **facts: Any
) -> dict[str, Any]:
    """Of each system its median, and the ratio of heed to it and to the best peer."""
    others = [name for name in rates if not name.startswith("heed")]
    best, every = arithmetic.best(rates, others), []
    for name, own in rates.items():
        ratio = arithmetic.ratio(rates["heed"], own) if "heed" in rates else None
        every.append({"name": name, "rate": statistics.median(own), "rates": own, "heed_ratio": ratio, "warm": warm[name]})  # fmt: skip
    found = {"row": row, **facts, "best_peer": best, "systems": every, "left_out": list(without)}
    bar = BARS.get(row.split("-")[0])
    if bar and best and "heed" in rates:
        found |= {"ratio": arithmetic.ratio(rates["heed"], rates[best]), "bar": bar}
    return found


def show(found: dict[str, Any], console: Console) -> None:
    facts = ", ".join(f"{name} {found[name]:,}" for name in ("batch", "steps", "images", "size") if name in found)
    table = Table(title=f"{found['row']}: images a second ({facts})", title_justify="left")
    for column in ("system", "median", "of all rounds", "heed is faster by", "warm-up s", "largest difference"):
        table.add_column(column, justify="left" if column == "system" else "right")
    for own in found["systems"]:
        ratio = "" if own["heed_ratio"] is None else f"{own['heed_ratio']:.2f}"
        off = f"{own['difference']:.1e}" if "difference" in own else ""
        name = own["name"] + (" *" if own["name"] == found["best_peer"] else "")
        rates = f"{min(own['rates']):,.1f} to {max(own['rates']):,.1f}"
        table.add_row(name, f"{own['rate']:,.1f}", rates, ratio, f"{own['warm']:.1f}", off)
    console.print(table)
    if "bar" in found:
        reached = "reached" if found["ratio"] >= found["bar"] else "not reached"
        console.print(f"{found['ratio']:.2f} times the best peer; the bar is {found['bar']:g}: {reached}", highlight=False)  # fmt: skip
    for sentence in found["left_out"]:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def main(words: Sequence[str] | None = None) -> int:
    args, console = parser().parse_args(words), Console(width=None if sys.stdout.isatty() else 120)
    device = choose_device(args.device)
    torch.set_num_threads(args.threads)
    facts: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": machine.cpu() if device.type == "cpu" else torch.cuda.get_device_name(device),
        "threads": args.threads,
        "clock": args.clock,
        "torch": torch.__version__,
        "command": ["python", "-m", "bench.images", *(sys.argv[1:] if words is None else words)],
        "rows": [],
    }
    for row in [row for row in ROWS if row in args.rows]:
        kind, _, name = row.partition("-")
        found = drawing(args, device) if kind == "draw" else {"train": training, "classify": classifying}[kind](args, name, device)  # fmt: skip
        if args.quick:
            found.pop("bar", None)
        facts["rows"].append(found)
        show(found, console)
        if args.json:
            write_json(args.json, facts)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
