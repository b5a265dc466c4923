"""Which learning rate fine-tuning needs: `python -m bench.tuning --general SRC TGT VALID_SRC VALID_TGT --own SRC TGT VALID_SRC VALID_TGT --out runs/tuning`.

A translator of the general text is trained by the plain command, then fine-tuned (`--from`) on the first 500, 2,000, ... pairs of another
kind of text, once with each rate; the rules of `heed train --from` choose everything else. The table has the BLEU of both validation
sets: what was learned, and what was forgotten. The same command continues where it stopped; finished runs are not repeated.
"""

import argparse
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from sacrebleu.metrics import BLEU

from bench.jobs import Job, Jobs, evaluate, train
from heed.data.readers import lines
from heed.files import write_json, write_text

BASE = "general"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = ("SOURCE", "TARGET", "VALID_SOURCE", "VALID_TARGET")
    top.add_argument("--general", nargs=4, required=True, metavar=what, help="what the first model is trained on")
    top.add_argument("--own", nargs=4, required=True, metavar=what, help="what it is fine-tuned on")
    top.add_argument("--out", type=Path, default=Path("runs/tuning"))
    top.add_argument("--rates", nargs="+", type=float, default=[0.00005, 0.0001, 0.0002, 0.0005, 0.001])
    top.add_argument("--pairs", nargs="+", type=int, default=[500, 2000, 10_000])
    top.add_argument("--base-time", default="5m", help="of the first training (default: 5m)")
    top.add_argument("--at-once", type=int, default=8, help="fine-tunings at the same time (default: 8)")
    top.add_argument("--set", dest="settings", action="append", default=[], help="a setting of all trainings")
    top.add_argument("--device", default="auto")
    top.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop after this time; the same command goes on"
    )
    return top  # fmt: skip


def first(options: argparse.Namespace, count: int) -> list[str]:
    """Files of the first pairs of the own text."""
    found = []
    for side, path in zip(("source", "target"), options.own, strict=False):
        out = options.out / f"{count}.{side}"
        if not out.exists():
            write_text(out, "".join(f"{line}\n" for line in islice(lines(Path(path)), count)))
        found.append(str(out))
    return found


def run_name(count: int, rate: float) -> str:
    return f"{count}-{rate:g}"


def jobs(options: argparse.Namespace) -> list[Job]:
    """The first model, the fine-tunings, and translations of both validation sets by each."""
    found = [Job(BASE, _train(options, BASE, options.general, ("--time", options.base_time)))]
    runs = [(count, rate) for count in options.pairs for rate in options.rates]
    for count, rate in runs:
        name, files = run_name(count, rate), [*first(options, count), *options.own[2:]]
        more = ("--from", str(options.out / BASE), "--set", f"training.rate={rate:g}")
        found.append(Job(name, _train(options, name, files, more), (BASE,), share=1 / options.at_once))
    for name in (BASE, *(run_name(*run) for run in runs)):
        for kind, files in (("own", options.own), ("general", options.general)):
            out = options.out / f"{name}.{kind}.txt"
            command = evaluate(options.out / name, files[2:4], out, ("--device", options.device))
            found.append(Job(out.stem, command, (name,), share=1 / options.at_once))
    return found


def _train(options: argparse.Namespace, name: str, files: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    names = ("--source", "--target", "--valid-source", "--valid-target")
    given = [part for pair in zip(names, files, strict=True) for part in pair]
    return train(name, None, options.out, options.settings, (*given, "--device", options.device, *more))


def bleu(options: argparse.Namespace, name: str) -> str:
    """Of the own validation set, and of the general one."""
    found = []
    for kind, files in (("own", options.own), ("general", options.general)):
        path = options.out / f"{name}.{kind}.txt"
        if not path.exists():
            return ""
        found.append(BLEU().corpus_score(list(lines(path)), [list(lines(Path(files[3])))]).score)
    return f"{found[0]:.2f}, {found[1]:.2f}"


def table(options: argparse.Namespace) -> list[str]:
    rows = ["| rate | " + " | ".join(f"{count:,} pairs" for count in options.pairs) + " |"]
    rows.append("|---|" + "--:|" * len(options.pairs))
    rows.append("| not fine-tuned | " + " | ".join([bleu(options, BASE)] * len(options.pairs)) + " |")
    for rate in options.rates:
        cells = [bleu(options, run_name(count, rate)) for count in options.pairs]
        rows.append(f"| {rate:g} | " + " | ".join(cells) + " |")
    return rows


def main(arguments: list[str] | None = None) -> int:
    began, options = time.monotonic(), parser().parse_args(arguments)
    for own in options.settings:
        if own.partition("=")[0].strip() == "training.rate":
            raise SystemExit(f"--set {own} would replace the rate of every run: give the rates to compare with --rates")
    options.out.mkdir(parents=True, exist_ok=True)
    done = Jobs(jobs(options), options.out).run(options.seconds - (time.monotonic() - began))
    rows = table(options)
    print("\n".join(rows))
    write_json(options.out / "table.json", {"table": rows, "complete": done})
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
