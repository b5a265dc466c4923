"""Kernels of an encoder layer in inference, beside what they would replace: `python -m bench.feed_forward_kernels --device cuda`.

Microseconds of each candidate in one layer of recipes/vit-cifar10.toml and its largest error against float64, then
images per second of the whole model. Each candidate first runs in a process of its own, which also compiles it: one
that fails or hangs is left out.
"""

import argparse
import copy
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench import image_systems
from bench.images import SHAPES
from heed.files import write_json
from heed.kernels import (  # fmt: skip
    fused_feed_forward,
    fused_stack,
    linear,
    linear_activation,
    linear_norm,
    residual_norm,
    short_attention,
    window_attention,
)
from heed.kernels.linear_activation import ProductTile
from heed.kernels.linear_norm import Tile
from heed.nn.packing import WindowMask, attend_windows

WIDTH, HIDDEN, LENGTH, HEAD_DIM = 384, 1536, 65, 64
WINDOWS, CHECKED = 2016, 4  # windows in a batch, and how many at each end are compared
TILES = {
    "output": [Tile(64, 64, 2, 4), Tile(64, 32, 4, 4), Tile(64, 64, 2, 8), Tile(128, 64, 3, 8)],
    "down": [Tile(128, 64, 3, 8), Tile(128, 64, 2, 8), Tile(128, 32, 5, 8), Tile(64, 64, 2, 4)],
    "feed-forward": [Tile(128, 32, 2, 8), Tile(64, 32, 3, 8)],
}
PRODUCT_TILES = [
    ProductTile(128, 128, 64, 3, 4, 2),
    ProductTile(128, 128, 64, 3, 8, 2),
    ProductTile(128, 256, 64, 3, 8, 1),
]
WARPS = (4, 2, 1)
KERNELS = [
    set(names.split())
    for names in (
        "",
        "attention",
        "linear",
        "linear attention",
        "linear activation attention",
        "feed-forward attention",
    )
]
TIME_LIMIT = 75  # seconds for all first runs


class Layer:
    """The weights and inputs of one layer, in bfloat16; norms and the biases before them are in float32."""

    def __init__(self, windows: int, device: torch.device, dtype: torch.dtype):
        torch.manual_seed(0)
        self.windows, rows = WindowMask(windows, LENGTH), windows * LENGTH
        self.up, self.down, self.out = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.qkv, self.before, self.after = nn.Linear(WIDTH, 3 * WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        for part in (self.up, self.down, self.out, self.qkv):
            part.to(device, dtype).requires_grad_(False)
        for part in (self.before, self.after):
            part.to(device).requires_grad_(False)
            nn.init.normal_(part.weight, 1.0, 0.1)
        for part in (self.down, self.out):
            part.bias.data = part.bias.data.float()
        self.total = torch.randn(rows, WIDTH, device=device).to(dtype)
        self.x = self.before(self.total.float()).to(dtype)
        self.columns = F.linear(self.x, self.qkv.weight, self.qkv.bias)
        self.attended = attend_windows(*self.columns.chunk(3, dim=1), self.windows, HEAD_DIM, False)
        self.packed = self.windows.packed(device).keys

    def ends(self) -> Tensor:
        """The rows that are compared."""
        rows, some = len(self.x), CHECKED * LENGTH
        every = torch.arange(rows, device=self.x.device)
        return every if rows <= 2 * some else torch.cat([every[:some], every[-some:]])


def sum_and_norm(layer: Layer, y: Tensor, last: nn.Linear) -> tuple[Tensor, Tensor]:
    """As the fused stack does it today: the product, and a kernel for the bias, the residual sum and its norm."""
    return residual_norm.add_norm(layer.total, linear.linear_without_bias(y, last), last.bias, layer.after)


def hidden(layer: Layer) -> Tensor:
    return linear.linear_activation(layer.x, layer.up, linear.GELU)[0]


def compiled_feed_forward(layer: Layer) -> Callable[[], Tensor]:
    """What torch makes of the feed-forward sublayer of the peer: norm, both layers and the residual sum."""
    norm, down = (copy.deepcopy(part).to(layer.x.dtype) for part in (layer.before, layer.down))

    @torch.compile(dynamic=False)
    def run(total: Tensor) -> Tensor:
        return total + down(F.gelu(layer.up(norm(total))))

    return lambda: run(layer.total)


def candidates(layer: Layer) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """The group, the name and the function of each."""
    yield "queries, keys, values", "today", lambda: torch.addmm(layer.qkv.bias, layer.x, layer.qkv.weight.T)
    columns, starts, length = layer.columns, layer.packed.starts, layer.packed.longest
    yield "attention", "today", lambda: short_attention.attend_short(columns, None, (starts, starts), (length, length), head_dim=HEAD_DIM)  # fmt: skip
    yield "attention", "torch", lambda: attend_windows(*columns.chunk(3, dim=1), layer.windows, HEAD_DIM, False)
    for warps in WARPS:
        yield "attention", f"windows, {warps} warps", partial(window_attention.attend_window, columns, layer.windows, HEAD_DIM, warps)  # fmt: skip
    yield "output", "today", lambda: sum_and_norm(layer, layer.attended, layer.out)
    for tile in TILES["output"]:
        yield "output", describe(tile), partial(linear_norm.linear_norm, layer.attended, layer.out.weight, layer.out.bias, layer.total, layer.after, tile=tile)  # fmt: skip
    yield "feed-forward", "today", lambda: sum_and_norm(layer, hidden(layer), layer.down)
    yield "feed-forward", "torch compiled, norm before", compiled_feed_forward(layer)
    for tile in TILES["down"]:
        yield "feed-forward", f"down: {describe(tile)}", lambda tile=tile: linear_norm.linear_norm(hidden(layer), layer.down.weight, layer.down.bias, layer.total, layer.after, tile=tile)  # fmt: skip
    for tile in TILES["feed-forward"]:
        yield "feed-forward", f"whole: {describe(tile)}", partial(fused_feed_forward.feed_forward_norm, layer.x, layer.up, linear.GELU, layer.down, layer.total, layer.after, tile)  # fmt: skip
    yield "up and GELU", "today", lambda: hidden(layer)
    yield "parts", "up alone", lambda: torch.addmm(layer.up.bias, layer.x, layer.up.weight.T)
    for tile in PRODUCT_TILES:
        yield "up and GELU", describe(tile), partial(linear_activation.linear_activation, layer.x, layer.up.weight, layer.up.bias, linear.GELU, tile)  # fmt: skip
    inner = hidden(layer)
    yield "parts", "down alone", lambda: linear.linear_without_bias(inner, layer.down)
    yield "parts", "residual sum and norm", lambda: residual_norm.add_norm(layer.total, layer.x, layer.out.bias, layer.after)  # fmt: skip


def describe(tile: Tile | ProductTile) -> str:
    columns = f"{tile.columns} columns, " if isinstance(tile, ProductTile) else ""
    return f"{tile.rows} rows, {columns}{tile.depth} deep, {tile.stages} stages, {tile.warps} warps"


def exact(layer: Layer, group: str, rows: Tensor) -> tuple[Tensor, ...] | None:
    """What a candidate of a group should give for these rows, in float64."""
    double = lambda part: copy.deepcopy(part).double()  # noqa: E731
    if group == "queries, keys, values":
        return (double(layer.qkv)(layer.x[rows].double()),)
    if group.endswith("GELU"):
        return (F.gelu(double(layer.up)(layer.x[rows].double())),)
    if group == "attention":
        parts = layer.columns[rows].double().chunk(3, dim=1)
        return (attend_windows(*parts, WindowMask(len(rows) // LENGTH, LENGTH), HEAD_DIM, False),)
    if group == "output":
        total = layer.total[rows].double() + double(layer.out)(layer.attended[rows].double())
    elif group == "feed-forward":
        inner = F.gelu(double(layer.up)(layer.x[rows].double()))
        total = layer.total[rows].double() + double(layer.down)(inner)
    else:
        return None
    return total, double(layer.after)(total)


def error(layer: Layer, group: str, found: Any) -> float | None:
    """The largest difference from float64. Of a compiled peer the sum alone, since it has no norm behind it."""
    rows = layer.ends()
    wanted = exact(layer, group, rows)
    if wanted is None:
        return None
    found = found if isinstance(found, tuple) else (found,)
    return max(float((own[rows].double() - right).abs().max()) for own, right in zip(found, wanted, strict=False))


def microseconds(run: Callable[[], Any], device: torch.device) -> float:
    if device.type == "cuda":
        from triton.testing import do_bench

        return 1000 * do_bench(run, warmup=20, rep=80, return_mode="median")
    began = time.perf_counter()
    run()
    return 1e6 * (time.perf_counter() - began)


def first_runs(names: Sequence[str], device: str) -> dict[str, str]:
    """Run each candidate once in a process of its own, all at the same time; and what those that failed said."""
    command = [sys.executable, "-m", "bench.feed_forward_kernels", "--device", device, "--windows", "16", "--once"]
    # communicate() would wait for one while another fills its pipe: files take what they say
    folder = Path(os.environ.get("TMPDIR", "/tmp"))
    logs = {name: folder / f"feed-forward-kernels-{os.getpid()}-{number}" for number, name in enumerate(names)}
    made = {}
    for name in names:
        with open(logs[name], "w", encoding="utf-8", newline="\n") as log:
            made[name] = subprocess.Popen([*command, name], stdout=log, stderr=subprocess.STDOUT)
    failed, end = {}, time.monotonic() + TIME_LIMIT
    for name, process in made.items():
        try:
            code = process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code:
            said = logs[name].read_text(encoding="utf-8", errors="replace").strip().split("\n")
            failed[name] = said[-1][:300] or f"ended with {code}"
        logs[name].unlink()
    return failed


def layers(args: argparse.Namespace, device: torch.device) -> list[dict[str, Any]]:
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    layer = Layer(args.windows, device, dtype)
    every = [(f"{group}: {name}", group, run) for group, name, run in candidates(layer)]
    if args.once:
        found = next(run for name, _, run in every if name == args.once)()
        print(json.dumps(found is not None))
        return []
    ours = [name for name, _, _ in every if any(mark in name for mark in (" warps", "compiled"))]
    failed = first_runs(ours, args.device) if device.type == "cuda" else {}
    rows = []
    for name, group, run in every:
        row: dict[str, Any] = {"name": name, "failed": failed.get(name)}
        if name not in failed:
            try:
                row["error"], row["microseconds"] = error(layer, group, run()), microseconds(run, device)
            except Exception as problem:
                row["failed"] = str(problem).strip().split("\n")[0][:300]
        off = "" if row.get("error") is None else f"  {row['error']:.1e}"
        print(f"{row['failed'] or format(row['microseconds'], '9.1f')}  {name}{off}", flush=True)
        rows.append(row)
    return rows


def whole_model(args: argparse.Namespace, device: torch.device) -> list[dict[str, Any]]:
    """Images per second of the classifier with each set of kernels, and of the best peer, in turns."""
    shape = SHAPES["cifar"]
    product = image_systems.heed_classifier(shape, device)
    size = len(next(product.batches(range(10**6))))
    pixels = shape.pixels(16 * size)
    classify: dict[str, Callable[[], Any]] = {}
    for kernels in KERNELS:
        classify["heed: " + (", ".join(sorted(kernels)) or "today")] = partial(_classify, product, pixels, kernels)
    if not args.no_peer:
        model, (make, logits) = shape.model(), image_systems.PEERS["torch"]
        peer = image_systems.peer_classifier(make(model), logits, size, device, compiled=True)
        classify["torch compiled"] = lambda: peer(pixels)
    images = product.inputs(pixels[:size])
    for kernels in KERNELS:
        run = partial(_classify_batch, product, images, kernels)
        try:
            print(f"{microseconds(run, device):9.1f}  one batch: {', '.join(sorted(kernels)) or 'today'}", flush=True)
        except Exception as problem:
            print(f"one batch: {kernels}: {str(problem).strip().splitlines()[0][:300]}", flush=True)
    results, seconds = {}, {name: [] for name in classify}
    for number, (name, run) in itertools.product(range(args.rounds + 1), classify.items()):
        began = time.perf_counter()
        try:
            results[name] = run()
        except Exception as problem:
            print(f"{name}: {str(problem).strip().splitlines()[0][:300]}", flush=True)
        if number:
            seconds[name].append(time.perf_counter() - began)
    rows = []
    for name, found in results.items():
        off = abs(found - results["heed: today"]).max()
        rows.append({"name": name, "images": len(pixels) / statistics.median(seconds[name]), "difference": float(off)})
        print(f"{rows[-1]['images']:9,.0f} images/s  {name}  {off:.1e}", flush=True)
    return rows


def _classify(product: Any, pixels: Any, kernels: set[str]) -> Any:
    fused_stack.INFERENCE = kernels
    return product.probabilities(pixels)


def _classify_batch(product: Any, images: Tensor, kernels: set[str]) -> Tensor:
    fused_stack.INFERENCE = kernels
    return product.fused.current().classify_images(images)


def main(words: Sequence[str] | None = None) -> int:
    top = argparse.ArgumentParser(prog="python -m bench.feed_forward_kernels", description=__doc__)
    top.add_argument(
        "--device", choices=["cpu", "cuda"], default="cuda", help="cpu: with TRITON_INTERPRET=1, to try it"
    )
    top.add_argument("--windows", type=int, default=WINDOWS, help="images in a batch (default: 2016)")
    top.add_argument("--rounds", type=int, default=5, help="of the whole model (default: 5)")
    top.add_argument("--once", metavar="NAME", help="run one candidate once")
    top.add_argument("--no-peer", action="store_true", help="do not compile the peer")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    args = top.parse_args(words)
    device = torch.device(args.device)
    with torch.inference_mode():
        found: dict[str, Any] = {"torch": torch.__version__, "layer": layers(args, device)}
        if device.type == "cuda" and not args.once:
            found["model"] = whole_model(args, device)
    if args.json:
        write_json(args.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
