"""Where the time of a training step goes, by kernel: `python -m bench.step big-128 --device cuda`.

Steps as `python -m bench train` and `python -m bench gpt2` measure them, under torch's profiler, which does not slow down the GPU. "Idle" is the
time between kernels: that of a step on the clock, measured without the profiler, less that of its kernels.
"""

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch.profiler import DeviceType, ProfilerActivity, profile

from bench import heed_train, machine, text_heed
from bench.rows import TEXT_ROWS, TextRow, TrainRow, quick, train_rows
from heed.files import write_json

GROUPS = (  # the first whose pattern is in the name of a kernel has it
    ("loss", r"cross_entropy|logsumexp|softmax|nll"),
    ("attention", r"attention|flash|fmha|sdpa"),
    ("matrix products", r"gemm|nvjet|cutlass|matmul|cublas|_feed_forward_backward|addmm|::mm|::bmm|splitk"),
    ("norms and residuals", r"norm_forward|norm_backward|layer_norm"),
    ("activations and column sums", r"_activation|_column_sums|relu|gelu"),
    ("embeddings", r"embed|_accumulate|sort|Sort|radix"),
    ("optimizer", r"_adam|adam|_squared_norm|multi_tensor|_cast_copy|_gather"),
    ("copies", r"[Mm]emcpy|[Mm]emset|copy|fill"),
)
OTHERS = "others"


class Kernel(NamedTuple):
    """Of one step: how often it runs, and its seconds in all."""

    name: str
    count: float
    seconds: float


def group(name: str) -> str:
    return next((title for title, pattern in GROUPS if re.search(pattern, name)), OTHERS)


def shares(kernels: Iterable[Kernel], step: float) -> list[Kernel]:
    """The groups by their time, and what is left of a step of so many seconds."""
    count, seconds = Counter(), Counter()
    for kernel in kernels:
        count[group(kernel.name)] += kernel.count
        seconds[group(kernel.name)] += kernel.seconds
    found = [Kernel(name, count[name], own) for name, own in seconds.most_common()]
    return [*found, Kernel("idle", 0, max(0.0, step - sum(seconds.values())))]


def profiled(go: Callable[[int], int], steps: int, device: str) -> list[Kernel]:
    """The kernels, or on the CPU the operators, of a step."""
    cuda = device == "cuda"
    kind = ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU
    with profile(activities=[kind]) as found:
        go(steps)
        if cuda:
            torch.cuda.synchronize()
    rows = []
    for own in found.key_averages():
        if cuda == (own.device_type == DeviceType.CUDA):
            spent = own.self_device_time_total if cuda else own.self_cpu_time_total
            rows.append(Kernel(own.key, own.count / steps, spent / 1e6 / steps))
    return sorted((row for row in rows if row.seconds), key=lambda row: -row.seconds)


def table(rows: Sequence[Kernel], step: float) -> list[str]:
    found = ["| | per step | ms | share |", "|---|--:|--:|--:|"]
    for name, count, seconds in rows:
        shown = name if len(name) < 90 else f"{name[:86]} …"
        found.append(f"| {shown} | {count:.0f} | {1000 * seconds:.2f} | {seconds / step:.1%} |")
    return found


def row_named(name: str) -> TrainRow | TextRow | None:
    if name == "gpt2":
        return next(row for row in TEXT_ROWS if row.training)
    length = re.fullmatch(r"(?:base|big)-(\d+)", name)
    return next((row for row in train_rows([int(length[1])]) if row.name == name), None) if length else None


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.step", description=__doc__)
    top.add_argument("row", help="base-N or big-N, with sentences of up to N tokens, or gpt2")
    top.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    top.add_argument("--steps", type=int, default=10)
    top.add_argument("--warmup", type=int, default=10, help="steps before (default: 10)")
    top.add_argument("--most", type=int, default=25, metavar="N", help="kernels that are listed (default: 25)")
    top.add_argument("--quick", action="store_true", help="toy sizes")
    top.add_argument("--json", type=Path, metavar="FILE")
    return top


def main(words: Sequence[str] | None = None) -> int:
    args = parser().parse_args(words)
    row = row_named(args.row)
    if row is None:
        parser().error(f"no row is called {args.row}: base-N, big-N or gpt2")
    row = quick(row) if args.quick else row
    module = text_heed if isinstance(row, TextRow) else heed_train
    go = module.build(row, args.device, "swift" if args.device == "cuda" else "eager")
    go(args.warmup)
    began = time.perf_counter()
    tokens = go(args.steps)
    if args.device == "cuda":
        torch.cuda.synchronize()
    step = (time.perf_counter() - began) / args.steps
    kernels = profiled(go, args.steps, args.device)
    where = torch.cuda.get_device_name() if args.device == "cuda" else machine.cpu()
    print(f"{args.row}, {where}, torch {torch.__version__}: {1000 * step:.2f} ms per step, ", end="")
    print(f"{tokens / args.steps / step:,.0f} tokens per second")
    print("\n".join(["", *table(shares(kernels, step), step), "", *table(kernels[: args.most], step)]))
    if args.json:
        write_json(args.json, {"row": args.row, "device": where, "step": step, "kernels": kernels})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
