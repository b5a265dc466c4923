"""Kernels of an encoder layer in inference, beside what they would replace: `python -m bench.feed_forward_kernels --device cuda`.

Microseconds of each candidate in one layer of recipes/vit-cifar10.toml and its largest error against float64; then
images per second of the whole model with the fastest of each kind. Each candidate first runs in a process of its own,
which also compiles it: one that fails or hangs is left out.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench import image_systems
from bench.images import SHAPES
from bench.layer_candidates import Candidate, Layer, candidates, error
from heed.files import write_json
from heed.kernels import fused_stack

WINDOWS = 2016  # images in a batch of the classifier
SETS = (
    "",
    "attention",
    "linear",
    "linear attention",
    "linear activation attention",
    "linear activation attention qkv",
    "feed-forward attention",
)
TIME_LIMIT = 60  # seconds for all first runs


def microseconds(run: Callable[[], Any], device: torch.device) -> float:
    if device.type == "cuda":
        from triton.testing import do_bench

        return 1000 * do_bench(run, warmup=20, rep=80, return_mode="median")
    began = time.perf_counter()
    run()
    return 1e6 * (time.perf_counter() - began)


def host_microseconds(run: Callable[[], Any], device: torch.device) -> float:
    """How long the CPU takes to give the work to the device: if that is more than the device takes, the CPU is too slow."""
    found = []
    for _ in range(5):
        image_systems.wait(device)
        began = time.perf_counter()
        run()
        found.append(1e6 * (time.perf_counter() - began))
    image_systems.wait(device)
    return statistics.median(found)


def first_runs(titles: Sequence[str], device: str, folder: Path) -> dict[str, str]:
    """Run each candidate once in a process of its own, all at the same time; and what those that failed said."""
    command = [sys.executable, "-m", "bench.feed_forward_kernels", "--device", device, "--windows", "16", "--once"]
    made: dict[str, tuple[subprocess.Popen, Path]] = {}
    for number, title in enumerate(titles):
        said = folder / f"{number}.txt"
        with open(said, "w", encoding="utf-8", newline="\n") as log:
            made[title] = subprocess.Popen([*command, title], stdout=log, stderr=subprocess.STDOUT), said
    failed, end = {}, time.monotonic() + TIME_LIMIT
    for title, (process, said) in made.items():
        try:
            code = process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code:
            failed[title] = last_line(said.read_text(encoding="utf-8", errors="replace")) or f"ended with {code}"
    return failed


def last_line(text: str) -> str:
    return (text.strip().split("\n") or [""])[-1][:300]


def measure_layer(layer: Layer, device: torch.device) -> list[dict[str, Any]]:
    """Each candidate; the fastest with a setting becomes the default."""
    every = list(candidates(layer))
    failed: dict[str, str] = {}
    if device.type == "cuda":
        with tempfile.TemporaryDirectory() as folder:
            failed = first_runs([own.title for own in every if own.compiles], device.type, Path(folder))
    rows, fastest = [], {}
    for own in every:
        row = measured(own, layer, device) if own.title not in failed else {"failed": failed[own.title]}
        off = "" if row.get("error") is None else f"  {row['error']:.1e}"
        print(f"{row.get('failed') or format(row['microseconds'], '9.1f')}  {own.title}{off}", flush=True)
        rows.append({"name": own.title, **row})
        if own.setting and "failed" not in row:
            module, name, value = own.setting
            fastest.setdefault((module, name), []).append((row["microseconds"], value))
    for (module, name), found in fastest.items():
        _, value = min(found, key=lambda pair: pair[0])
        setattr(module, name, value)
        print(f"{module.__name__}.{name} = {value}", flush=True)
    return rows


def measured(own: Candidate, layer: Layer, device: torch.device) -> dict[str, Any]:
    try:
        return {"error": error(layer, own.group, own.run()), "microseconds": microseconds(own.run, device)}
    except Exception as problem:
        return {"failed": last_line(str(problem))}


def measure_model(rounds: int, device: torch.device) -> list[dict[str, Any]]:
    """Milliseconds of a batch and images per second with each set of kernels, and of the best peer, in turns."""
    shape = SHAPES["cifar"]
    product = image_systems.heed_classifier(shape, device)
    size = len(next(product.batches(range(10**6))))
    pixels = shape.pixels(16 * size)
    batches: dict[str, tuple[float, float]] = {}
    print(f"{host_microseconds(partial(product.inputs, pixels[:size]), device):9.1f}  CPU, to give images", flush=True)
    runs: dict[str, Callable[[], Any]] = {}
    for own in SETS:
        try:
            with torch.inference_mode():
                run = partial(batch, product, product.inputs(pixels[:size]), own)
                batches[own or "today"] = microseconds(run, device), host_microseconds(run, device)
            runs[own or "today"] = partial(classify, product, pixels, own)
        except Exception as problem:
            print(f"{last_line(str(problem))}  {own}", flush=True)
    make, logits = image_systems.PEERS["torch"]
    peer = image_systems.peer_classifier(make(shape.model()), logits, size, device, compiled=True)
    runs["torch compiled"] = lambda: peer(pixels)
    results, seconds = {}, {name: [] for name in runs}
    for number, (name, run) in itertools.product(range(rounds + 1), runs.items()):
        began = time.perf_counter()
        results[name] = run()
        if number:
            seconds[name].append(time.perf_counter() - began)
    rows = []
    for name, found in results.items():
        rate, off = len(pixels) / statistics.median(seconds[name]), float(abs(found - results["today"]).max())
        rows.append({"name": name, "rate": rate, "difference": off, "batch": batches.get(name)})
        one = "{:9.1f} microseconds a batch, {:9.1f} of the CPU, ".format(*batches[name]) if name in batches else ""
        print(f"{one}{rate:9,.0f} images/s, {off:.1e} from today's  {name}", flush=True)
    return rows


def classify(product: Any, pixels: Any, kernels: str) -> Any:
    fused_stack.INFERENCE = set(kernels.split())
    return product.probabilities(pixels)


def batch(product: Any, images: Tensor, kernels: str) -> Tensor:
    fused_stack.INFERENCE = set(kernels.split())
    return product.fused.current().classify_images(images)


def main(words: Sequence[str] | None = None) -> int:
    top = argparse.ArgumentParser(prog="python -m bench.feed_forward_kernels", description=__doc__)
    top.add_argument("--device", choices=["cpu", "cuda"], default="cuda", help="cpu: with TRITON_INTERPRET=1, to try it")  # fmt: skip
    top.add_argument("--windows", type=int, default=WINDOWS, help="images in a batch (default: 2016)")
    top.add_argument("--rounds", type=int, default=5, help="of the whole model (default: 5; 0: without it)")
    top.add_argument("--once", metavar="TITLE", help="run one candidate once")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    args = top.parse_args(words)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # of many processes, each with few kernels
    device = torch.device(args.device)
    with torch.inference_mode():
        layer = Layer(args.windows, device, torch.bfloat16 if device.type == "cuda" else torch.float32)
        if args.once:
            next(own for own in candidates(layer) if own.title == args.once).run()
            image_systems.wait(device)  # an error in a kernel is reported then
            return 0
        found: dict[str, Any] = {"torch": torch.__version__, "layer": measure_layer(layer, device)}
    if args.rounds and device.type == "cuda":
        del layer
        found["model"] = measure_model(args.rounds, device)
    if args.json:
        write_json(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
