"""Scores of recommenders: `python -m bench.recommenders --beauty Beauty.txt.gz --sports Sports.txt.gz --video Video.txt.gz --out runs/recommenders`.

SASRec and CL4SRec with three seeds, each objective once, BERT4Rec, and Video with 100 sampled negatives as in SASRec's code. All
rank all items otherwise, and leave the last item of each user out. What is done already is not done again.
"""

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.jobs import HEED, Job, Jobs, train
from heed.files import write_json

VIDEO = ("data.core=0", "model.preset=small", "model.dropout=0.7", "training.ema=0.998", "training.final=best-ema")
OBJECTIVES = ("cross-entropy", "bce", "gbce", "sampled-softmax")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--beauty", "--sports", "--video"):
        top.add_argument(name, help="a log of interactions; without it these rows are left out")
    top.add_argument("--out", type=Path, default=Path("runs/recommenders"))
    top.add_argument("--seeds", type=int, default=3)
    top.add_argument("--at-once", type=int, default=8, help="trainings beside each other (default: 8)")
    top.add_argument("--set", dest="settings", action="append", default=[], help="a setting of all trainings")
    top.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; the same command goes on")
    return top


def jobs(options: argparse.Namespace) -> list[Job]:
    """Trainings, each with its evaluation."""
    return [job for run in _trainings(options) for job in (run, _evaluation(options, run.name))]


def _trainings(options: argparse.Namespace) -> Iterator[Job]:
    for log in filter(None, ("beauty" if options.beauty else "", "sports" if options.sports else "")):
        for seed in range(1, options.seeds + 1):
            yield _training(options, log, f"{log}-sasrec-{seed}", "sasrec", seed)
            yield _training(options, log, f"{log}-cl4srec-{seed}", "cl4srec", seed)
    if options.beauty:
        for objective in OBJECTIVES[1:]:
            yield _training(options, "beauty", f"beauty-{objective}-1", "sasrec", 1, (f"task.objective={objective}",))
        yield _training(options, "beauty", "beauty-bert4rec-1", "bert4rec", 1)
        yield _training(options, "beauty", "beauty-small-1", "sasrec", 1, ("model.preset=small",))
    if options.video:
        for seed in range(1, options.seeds + 1):
            yield _training(options, "video", f"video-sasrec-{seed}", "sasrec", seed, VIDEO)
        yield _training(options, "video", "video-bce-1", "sasrec", 1, ("data.core=0", "task.objective=bce"))


def _training(
    options: argparse.Namespace, log: str, name: str, recipe: str, seed: int, more: Sequence[str] = ()
) -> Job:
    settings = [
        f"data.interactions={json.dumps([getattr(options, log)])}",
        f"training.seed={seed}",
        *more,
        *options.settings,
    ]
    return Job(name, train(name, f"recipes/{recipe}.toml", options.out, settings), share=1 / options.at_once)


def _evaluation(options: argparse.Namespace, name: str) -> Job:
    command = [
        *HEED,
        "evaluate",
        str(options.out / name),
        "--json",
        str(options.out / f"{name}.json"),
        "--at",
        "5",
        "10",
    ]
    command += ["--negatives", "100"] if name.startswith("video") else []
    after = [name]
    if "cl4srec" in name:
        other = name.replace("cl4srec", "sasrec")
        command += ["--against", str(options.out / other)]
        after.append(other)
    return Job(f"score-{name}", tuple(command), tuple(after), share=1 / options.at_once)


def table(options: argparse.Namespace) -> list[str]:
    """HR@10 and NDCG@10 of each kind of run: the mean of the seeds, and each of them."""
    found: dict[str, list[dict]] = {}
    for path in sorted(options.out.glob("*-[0-9].json")):
        scores = json.loads(path.read_text(encoding="utf-8"))["scores"]["model"]
        found.setdefault(path.stem.rsplit("-", 1)[0], []).append(scores)
    lines = ["| | HR@10 | NDCG@10 |", "|---|--:|--:|"]
    for name, runs in found.items():
        cells = []
        for metric in ("hr@10", "ndcg@10"):
            values = [run[metric]["value"] for run in runs]
            cells.append(f"{statistics.fmean(values):.2f} ({', '.join(f'{value:.2f}' for value in values)})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    done = Jobs(jobs(options), options.out).run(options.seconds)
    lines = table(options)
    print("\n".join(lines))
    write_json(options.out / "table.json", {"table": lines, "complete": done})
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
