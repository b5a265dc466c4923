"""A small training run on a GPU, by phase: `python -m bench.small_job --out FOLDER`.

Three runs of `bench.phases` with the phrasebook, each in a process of its own: a base model with each validation by both searches, with
nothing compiled or prepared before; the same again without the comparison and with sampled subwords; and a tiny model in float32, where both
searches must agree. `--quick` takes models so small that a CPU can do it (`--device cpu`).
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BASE = {
    "data.phrasebook": 10_000, "model.preset": "base", "model.encoder_layers": 6, "model.decoder_layers": 6, "model.hidden": 2048,
    "model.dropout": 0.1, "training.batch_tokens": 16_384, "training.rate": 0.0007, "training.warmup": 100, "training.steps": 300,
    "training.valid_every": 100, "training.ema": 0.98, "training.final": "ema", "training.valid_engine": "cuda",
}  # fmt: skip
FLOAT32 = {
    "data.phrasebook": 10_000, "training.precision": "float32", "training.batch_tokens": 4096, "training.steps": 200, "training.valid_every": 100,
    "training.valid_engine": "cuda",
}  # fmt: skip
RUNS = (  # name, settings, more options, at most so many seconds
    ("cold", BASE, ["--searches"], 70),
    ("warm", {**BASE, "subwords.sampling": 0.1}, [], 40),
    ("float32", FLOAT32, ["--searches"], 30),
)
QUICK = {
    "data.phrasebook": 1500, "subwords.size": 1000, "model.preset": "tiny", "model.encoder_layers": 1, "model.decoder_layers": 1,
    "model.hidden": 64, "training.batch_tokens": 500, "training.steps": 4, "training.valid_every": 2,
}  # fmt: skip


def command(name: str, settings: dict, options: Sequence[str], args: argparse.Namespace) -> list[str]:
    """One run of bench.phases."""
    chosen = {**settings, **(QUICK if args.quick else {})}
    words = [
        sys.executable,
        "-m",
        "bench.phases",
        "--device",
        args.device,
        "--valid",
        str(20 if args.quick else args.valid),
    ]
    words += ["--cache", str(args.out / "cache"), "--json", str(args.out / f"{name}.json"), *options]
    return [*words, *(word for setting in chosen.items() for word in ("--set", "{}={}".format(*setting)))]


def main(words: Sequence[str]) -> int:
    top = argparse.ArgumentParser(prog="python -m bench.small_job", description=__doc__)
    top.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="results, a new cache of corpora and one of kernels"
    )
    top.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    top.add_argument("--valid", type=int, default=1000, metavar="N", help="validation sentences")
    top.add_argument("--rows", nargs="+", choices=[name for name, *_ in RUNS], help="some of the runs")
    top.add_argument("--quick", action="store_true", help="tiny models, few steps, no time limit")
    args = top.parse_args(words)
    args.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, settings, options, seconds in RUNS:
        if args.rows and name not in args.rows:
            continue
        print(f"{name}:", flush=True)
        given = {
            "env": os.environ | {"TRITON_CACHE_DIR": str(args.out / "kernels")},
            "timeout": None if args.quick else seconds,
        }
        try:
            failed |= subprocess.run(command(name, settings, options, args), **given, check=False).returncode != 0
        except subprocess.TimeoutExpired:
            print(f"{name} was stopped after {seconds} s", flush=True)
            failed = 1
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
