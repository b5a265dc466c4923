"""Would 8-bit floats make image classification on a Hopper GPU faster, and what do they cost? `python -m bench.fp8_images --device cuda`.

Microseconds of each part of a layer in bfloat16 and in e4m3; then images per second of the whole model with the
fastest of each, in turns with the present engine and with torch's layers, compiled; then what it changes in the
probabilities. A candidate that fails is reported and left out.
"""

import argparse
import copy
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from bench import arithmetic, image_systems
from bench.fp8_layers import How, Plan, use_fp8
from bench.images import QUICK, SHAPES
from heed.device import choose_device
from heed.files import write_json
from heed.products.cuda_images import FusedImageModel
from heed.products.image_classifier import ImageClassifier
from heed.products.text_batches import in_precision
from heed.vocabularies.images import MAX_PIXELS

BATCH = 2016  # images that the classifier runs at one time
TIME_LIMIT = 90  # seconds for the first run of all tiles
PEER = "torch, compiled"
TODAY = "bfloat16"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.fp8_images", description=__doc__)
    top.add_argument("--device", choices=["cpu", "cuda"], default="cuda", help="cpu: with TRITON_INTERPRET=1, to try it")  # fmt: skip
    top.add_argument("--rounds", type=int, default=5, help="of the whole model (default: 5; 0: without it)")
    top.add_argument("--quick", action="store_true", help="toy sizes: shows that all runs, says nothing about speed")
    top.add_argument("--run", metavar="FOLDER", help="a trained image classifier, for its accuracy")
    top.add_argument("--images", nargs="+", metavar="PATH", help="labelled images for --run, as for heed evaluate")
    top.add_argument("--no-peer", action="store_true", help="without torch's layers, which take a minute to compile")
    top.add_argument("--tile", type=int, metavar="NUMBER", help="only run this tile of a product in Triton once")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def microseconds(run: Callable[[], Any], device: torch.device) -> float:
    if device.type == "cuda":
        from triton.testing import do_bench

        return 1000 * do_bench(run, warmup=20, rep=60, return_mode="median")
    began = time.perf_counter()
    run()
    return 1e6 * (time.perf_counter() - began)


def last_line(text: str) -> str:
    return (text.strip().split("\n") or [""])[-1][:300]


def usable_tiles(args: argparse.Namespace) -> tuple[list[Any], dict[str, str]]:
    """Each tile first runs in a process of its own, all at the same time: an error in a kernel would end this one. And
    what those that failed said.
    """
    from bench.fp8_kernels import TILES

    if args.device == "cpu":
        return TILES[:1], {}
    command, made, failed = [sys.executable, "-m", "bench.fp8_images", "--device", args.device, "--tile"], [], {}
    for number, tile in enumerate(TILES):
        process = subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        made.append((tile, process))
    end = time.monotonic() + TIME_LIMIT
    for tile, process in made:
        try:
            said, _ = process.communicate(timeout=max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            said += f"\nnot finished after {TIME_LIMIT} s"
        if process.returncode:
            failed[str(tuple(tile))] = last_line(said)
    return [tile for tile in TILES if str(tuple(tile)) not in failed], failed


@torch.no_grad()
def run_tile(number: int, device: torch.device) -> None:
    from bench.fp8_candidates import LayerData
    from bench.fp8_kernels import TILES

    data = LayerData(SHAPES["cifar"], 64, device)
    for candidate in itertools.chain(*data.products([How(TILES[number])])):
        candidate.run()
        image_systems.wait(device)  # an error in a kernel is reported then


def prepared(parts: Sequence[Iterator[Any]]) -> Iterator[Any]:
    """All candidates of all parts; a part whose inputs cannot be made ends there."""
    for part in parts:
        try:
            yield from part
        except Exception as problem:
            print(f"   failed           {last_line(str(problem))}", flush=True)


@torch.no_grad()
def measure_layer(data: Any, tiles: Sequence[Any], device: torch.device) -> list[dict[str, Any]]:
    """Each candidate. The fastest launches become those of the whole model."""
    rows = []
    for candidate in prepared([data.launches(), *data.products([How(), How(fast=False), *map(How, tiles)])]):
        row: dict[str, Any] = {"part": candidate.part, "name": candidate.name, "how": candidate.how}
        try:
            candidate.prepare()
            row |= {"error": candidate.error(), "microseconds": microseconds(candidate.run, device)}
            print(f"{row['microseconds']:9.1f}  {row['error']:.1e}  {candidate.part}: {candidate.name}", flush=True)
        except Exception as problem:
            row["failed"] = last_line(str(problem))
            print(f"   failed           {candidate.part}: {candidate.name}: {row['failed']}", flush=True)
        rows.append(row)
        if candidate.keep is not None:
            candidate.keep(fastest(rows, candidate.part))
    return rows


def fastest(rows: Sequence[dict[str, Any]], part: str, kind: Callable[[Any], bool] = lambda how: True) -> Any:
    """How the fastest of a part that did not fail was computed; None if there is none."""
    there = [row for row in rows if row["part"] == part and "failed" not in row and row["how"] is not None and kind(row["how"])]  # fmt: skip
    return min(there, key=lambda row: row["microseconds"])["how"] if there else None


def plans_of(rows: Sequence[dict[str, Any]]) -> dict[str, Plan]:
    """Which products are in e4m3, each as fast as it was found to be."""
    quick = lambda how: how.tile is not None or how.fast  # noqa: E731
    qkv, out, down = (fastest(rows, part, quick) for part in ("qkv", "out", "down"))
    up = fastest(rows, "up", lambda how: how.tile is None and how.fast)
    one = fastest(rows, "up with GELU, to e4m3", lambda how: how.tile is not None)
    alone = fastest(rows, "up with GELU", lambda how: how.tile is not None)
    every = {
        "qkv": Plan(qkv=qkv),
        "down": Plan(down=down),
        "up, down": Plan(up=up, down=down),
        "up with GELU, down": Plan(up=one, down=down),
        "qkv, up with GELU": Plan(qkv=qkv, up=alone),
        "qkv, up, down": Plan(qkv=qkv, up=up, down=down),
        "qkv, up with GELU, down": Plan(qkv=qkv, up=one, down=down),
        "qkv, out, up, down": Plan(qkv, out, up, down),
        "qkv, out, up with GELU, down": Plan(qkv, out, one, down),
    }
    names = {"qkv": "qkv", "out": "out", "up": "up", "up with GELU": "up", "down": "down"}
    found = {}
    for name, plan in every.items():
        if all(getattr(plan, names[part]) is not None for part in name.split(", ")):
            found[name] = plan
    exact = How(fast=False)
    found["qkv, up, down, exact sums"] = Plan(exact, None, exact, exact)
    return found


class Fp8Images(FusedImageModel):
    """The engine of image models with a stack in e4m3."""

    def __init__(self, model: Any, plan: Plan):
        super().__init__(model)
        self.plan = plan

    def _fused(self) -> Any:
        made = super()._fused()
        with torch.inference_mode(False), torch.no_grad():
            return None if made is None else use_fp8(made, self.plan)


def in_bfloat16(product: ImageClassifier, plan: Plan | None = None) -> ImageClassifier:
    """As `heed classify` runs it, or with a plan."""
    made = copy.copy(product)
    made.model = in_precision(copy.deepcopy(product.model), "auto")
    made.fused = FusedImageModel(made.model) if plan is None else Fp8Images(made.model, plan)
    return made


def exact(shape: Any, device: torch.device) -> ImageClassifier:
    """In float32, with random weights."""
    made = image_systems.heed_classifier(shape, torch.device("cpu"))
    made.model.to(device)
    made.fused = FusedImageModel(made.model)
    return made


def differences(found: np.ndarray, wanted: np.ndarray, labels: np.ndarray | None = None) -> dict[str, float]:
    """Of probabilities, from those in float32."""
    logs = [np.log(np.maximum(own, 1e-30)) for own in (wanted, found)]
    best = found.argmax(axis=1)
    row = {
        "largest": float(np.abs(found - wanted).max()),
        "divergence": float((wanted * (logs[0] - logs[1])).sum(axis=1).mean()),
        "same_class": float((best == wanted.argmax(axis=1)).mean()),
    }
    return row if labels is None else row | {"accuracy": float((best == labels).mean())}


def compare(product: ImageClassifier, plans: dict[str, Plan | None], pixels: Any, labels: Any = None) -> dict[str, Any]:
    """What each plan changes in the probabilities of a model in float32."""
    wanted = product.probabilities(pixels)
    found = {"float32": differences(wanted, wanted, labels)}
    for name, plan in plans.items():
        try:
            found[name] = differences(in_bfloat16(product, plan).probabilities(pixels), wanted, labels)
        except Exception as problem:
            found[name] = {"failed": last_line(str(problem))}
        said = ", ".join(f"{key} {value:.3g}" if isinstance(value, float) else value for key, value in found[name].items())  # fmt: skip
        print(f"  {name}: {said}", flush=True)
    return found


def measure_model(
    shape: Any, plans: dict[str, Plan | None], args: argparse.Namespace, device: torch.device
) -> list[dict[str, Any]]:
    """Images per second of each in turns, and microseconds of the graph of a batch."""
    base, pixels = exact(shape, device), shape.pixels(16 * BATCH)
    made: dict[str, Callable[[], Any]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for name, plan in plans.items():
        try:
            own = in_bfloat16(base, plan)
            own.probabilities(pixels[:BATCH])
            graphs = [captured.graph for captured in own.fused.captured.values()]
            made[name] = lambda own=own: own.probabilities(pixels)
            rows[name] = {"name": name, "batch": microseconds(graphs[0].replay, device) if graphs else None}
        except Exception as problem:
            print(f"failed: {name}: {last_line(str(problem))}", flush=True)
    if not args.no_peer:
        make, logits = image_systems.PEERS["torch"]
        peer = image_systems.peer_classifier(make(shape.model()), logits, BATCH, device, compiled=True)
        try:
            peer(pixels[:BATCH])
            made[PEER], rows[PEER] = lambda: peer(pixels), {"name": PEER, "batch": None}
        except Exception as problem:
            print(f"failed: {PEER}: {last_line(str(problem))}", flush=True)
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for number, name in itertools.product(range(args.rounds + 1), made):
        began = time.perf_counter()
        made[name]()
        if number:
            seconds[name].append(time.perf_counter() - began)
    for name, row in rows.items():
        row["rates"] = [len(pixels) / own for own in seconds[name]]
        row["rate"] = statistics.median(row["rates"])
    for row in rows.values():
        others = [name for name in (TODAY, PEER) if name in rows]
        row["times"] = {name: arithmetic.ratio(row["rates"], rows[name]["rates"]) for name in others}
        batch = "" if row["batch"] is None else f"{row['batch'] / 1000:6.2f} ms a batch"
        ratios = ", ".join(f"{value:.2f} times {name}" for name, value in row["times"].items())
        print(f"{row['rate']:9,.0f} images/s  {batch:18}  {row['name']}: {ratios}", flush=True)
    return [*rows.values()]


def main(words: Sequence[str] | None = None) -> int:
    args = parser().parse_args(words)
    device = choose_device(args.device)
    if args.tile is not None:
        run_tile(args.tile, device)
        return 0
    from bench.fp8_candidates import LayerData

    shape, found = QUICK if args.quick else SHAPES["cifar"], {"torch": torch.__version__}

    def keep(**own: Any) -> None:
        found.update(own)
        if args.json:
            write_json(args.json, found)

    tiles, failed = usable_tiles(args)
    for tile, said in failed.items():
        print(f"tile {tile} is left out: {said}", flush=True)
    keep(tiles=failed, layer=measure_layer(LayerData(shape, 2 if args.quick else BATCH, device), tiles, device))
    plans: dict[str, Plan | None] = {TODAY: None, **plans_of(found["layer"])}
    keep(plans=plans)
    if device.type == "cuda" and args.rounds:
        keep(model=measure_model(shape, plans, args, device))
        print("Random weights and images, from float32:")
        keep(random=compare(exact(shape, device), plans, shape.pixels(2 * BATCH)))
    if device.type == "cuda" and args.run and args.images:
        from heed.cli.images import _labelled
        from heed.loading import load

        product = load(args.run)
        product.model.float().to(device)
        own = _labelled(SimpleNamespace(columns=None, images=args.images, max_pixels=MAX_PIXELS), product)
        print(f"{args.run}, {len(own.labels):,} images, from float32:")
        keep(run=compare(product, plans, own.pixels, own.labels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
