"""Pre-trained encoders compared: `python -m bench.pretraining --text en.txt ko.txt --valid valid.txt --glue GLUE --kor-nlu KOR --out runs/table`.

BERT, BERT without pairs, RoBERTa, ALBERT, ELECTRA and GPT are pre-trained on one text for the same time: each alone on the device or,
with `--together`, all at once (faster with NVIDIA's multi-process service). Each is fine-tuned on SST-2,
CoLA, MRPC, STS-B and KorSTS with three seeds, and so is a BERT with fresh weights. The table has the scores of the development sets,
at the best validation of each run. With `--short`, rows are short at first, so that attention has few words to choose from. With
`--budget` the whole command takes so many seconds. A failed run leaves its cells empty. The same command continues where it stopped;
finished runs are not repeated.
"""

import argparse
import json
import math
import statistics
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from bench.jobs import Job, Jobs, finished, train
from heed.files import write_json
from heed.training.duration import seconds_of

MODELS = {
    "BERT": ("recipes/bert.toml", ()),
    "BERT-no-NSP": ("recipes/bert.toml", ("task.pair=none", "task.cut_sentences=true")),
    "RoBERTa": ("recipes/roberta.toml", ()),
    "ALBERT": ("recipes/albert.toml", ()),
    "ELECTRA": ("recipes/electra.toml", ()),
    "GPT": ("recipes/gpt-pretrain.toml", ("model.max_length=256",)),
}
TUNED = [*MODELS, "fresh"]
TASKS = {  # files, columns, metrics (the first decides), steps, tokens of a batch
    "SST-2": ("SST-2", '["sentence", "label"]', ("accuracy",), 700, 4096),
    "CoLA": ("CoLA", "[4, 2]", ("matthews", "accuracy"), 550, 1024),
    "MRPC": ("MRPC", '["#1 String", "#2 String", "Quality"]', ("f1", "accuracy"), 500, 2048),
    "STS-B": ("STS-B", '["sentence1", "sentence2", "score"]', ("pearson", "spearman"), 500, 2048),
    "KorSTS": (None, '["sentence1", "sentence2", "score"]', ("pearson", "spearman"), 500, 2048),
}
REGRESSION = {"STS-B", "KorSTS"}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--text", nargs="+", required=True, help="sentences, one a line; blank lines between documents")
    top.add_argument("--valid", required=True, help="text to validate on")
    top.add_argument("--glue", type=Path, required=True, help="a folder with SST-2, CoLA, MRPC and STS-B")
    top.add_argument("--kor-nlu", type=Path, required=True, help="a folder with KorSTS-sts-train.tsv.xz and -dev")
    top.add_argument("--out", type=Path, default=Path("runs/pretraining"))
    top.add_argument("--time", help="of each pre-training (default: 100s, or what --budget leaves)")
    top.add_argument("--budget", type=float, help="seconds of the whole command, instead of --time")
    top.add_argument("--tuning", type=float, default=420, help="seconds of --budget for fine-tuning (default: 420)")
    top.add_argument("--together", action="store_true", help="all pre-trainings at once on one GPU")
    top.add_argument("--short", type=int, default=0, help="begin with rows of so many tokens (default: 0, do not)")
    top.add_argument("--short-share", type=float, default=0.6, help="of the time on short rows (default: 0.6)")
    top.add_argument("--seeds", type=int, default=3)
    top.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    top.add_argument("--set", dest="settings", action="append", default=[], help="a setting of all pre-trainings")
    top.add_argument("--tuning-set", action="append", default=[], help="a setting of all fine-tunings")
    top.add_argument("--at-once", type=int, default=14, help="fine-tunings at the same time (default: 14)")
    top.add_argument("--processes", type=int, default=16, help="at most so many runs at the same time (default: 16)")
    return top


def preparations(options: argparse.Namespace) -> list[Job]:
    """One step of each pre-training on the CPU, so that vocabularies and token ids are in the cache."""
    short = ["training.steps=1", "training.batch_tokens=512", "training.warmup=1"]
    where, found = ("--device", "cpu", "--threads", "1"), []
    for model in MODELS:
        name, (recipe, own) = f"prepare-{model}", MODELS[model]
        settings = [*_text(options), *own, *options.settings, *short, "model.layers=1"]
        found.append(Job(name, train(name, recipe, options.out, settings, where), share=0))
        if options.short:
            again = [*_continued(options, model), *short, "training.device=cpu"]
            more = (*where, "--from", str(options.out / name))
            found.append(Job(f"{name}-2", train(f"{name}-2", None, options.out, again, more), (name,), share=0))
    return found


def pretrainings(options: argparse.Namespace, seconds: float) -> list[Job]:
    """All models for the same time: with `--short`, a part of it on short rows, then on long ones."""
    share, found = 1 / len(MODELS) if options.together else 1.0, []
    first = seconds * options.short_share if options.short else 0.0
    for name, (recipe, own) in MODELS.items():
        settings, after = [*_text(options), *own, *PLAN, *options.settings], (f"prepare-{name}",)
        end = {"share": share, "limit": 1.25 * seconds + 60}
        if options.short:
            rows = "window" if name == "GPT" else "length"
            own = train(
                f"short-{name}",
                recipe,
                options.out,
                [*settings, f"task.{rows}={options.short}", "training.cooldown=0"],
                _time(first),
            )
            found.append(Job(f"short-{name}", own, after, **end))
            more = (*_time(seconds - first), "--from", str(options.out / f"short-{name}"))
            own = train(
                name,
                None,
                options.out,
                [*_continued(options, name), "training.warmup=100", "training.cooldown=0.4"],
                more,
            )
            found.append(Job(name, own, (f"short-{name}",), **end))
        else:
            found.append(Job(name, train(name, recipe, options.out, settings, _time(seconds)), after, **end))
    return found


PLAN = ("training.warmup=700", "training.valid_every=1000", "training.samples=0")


def _time(seconds: float) -> tuple[str, str]:
    return "--time", f"{seconds:.0f}s"


def _continued(options: argparse.Namespace, name: str) -> list[str]:
    """The settings of a pre-training that continues another: those of its recipe, but not of the vocabulary and the model."""
    recipe, own = MODELS[name]
    sections = tomllib.loads(Path(recipe).read_text(encoding="utf-8"))
    kept = [
        f"{part}.{key}={json.dumps(value)}" for part in ("task", "training") for key, value in sections[part].items()
    ]
    changes = [*own, *PLAN, *options.settings]
    return [*_text(options), *kept, *(one for one in changes if one.startswith(("task.", "training.")))]


def _text(options: argparse.Namespace) -> list[str]:
    return [f"data.source={json.dumps(list(options.text))}", f"data.valid_source={json.dumps([options.valid])}"]


def tunings(options: argparse.Namespace) -> list[Job]:
    """Every model on every task; first all with the first seed."""
    seeds = range(1, options.seeds + 1)
    return [_tuning(options, name, task, seed) for seed in seeds for task in options.tasks for name in TUNED]


def _tuning(options: argparse.Namespace, name: str, task: str, seed: int) -> Job:
    folder, columns, metrics, steps, batch = TASKS[task]
    base = "BERT" if name == "fresh" else name
    start, end = (
        (options.glue / folder / "train.tsv.xz", options.glue / folder / "dev.tsv.xz")
        if folder
        else (
            options.kor_nlu / "KorSTS-sts-train.tsv.xz",
            options.kor_nlu / "KorSTS-sts-dev.tsv.xz",
        )
    )
    settings = [
        f'data.tsv=["{start}"]',
        f'data.valid_tsv=["{end}"]',
        f"data.columns={columns}",
        f"task.name={'regression' if task in REGRESSION else 'classification'}",
        *(["task.label_smoothing=0"] if task not in REGRESSION else []),
        *(["task.lm_weight=0.5"] if name == "GPT" else []),
        "model.dropout=0.1",  # pre-training is without
        "model.attention_dropout=0.1",
        f"training.steps={steps}",
        f"training.batch_tokens={batch}",
        f"training.warmup={steps // 10}",
        f"training.rate={0.0003 if name == 'fresh' else 0.0002}",
        "filters.max_length=127",
        "training.schedule=cosine",
        "training.weight_decay=0.01",
        "training.decayed=matrices",
        "training.valid_every=100",
        f"training.metric={metrics[0]}",
        f"training.seed={seed}",
        *(["model.fresh=true"] if name == "fresh" else []),
        *options.tuning_set,
    ]
    run = f"{name}-{task}-{seed}"
    command = train(run, None, options.out, settings, ("--from", str(options.out / base)))
    return Job(run, command, (base,), share=1 / options.at_once)


def pretrained(out: Path, name: str) -> tuple[int, float]:
    """The steps of a pre-training, also those on short rows, and its best validation loss."""
    logs = [out / run / "log.jsonl" for run in (f"short-{name}", name)]
    runs = [[json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] for log in logs if log.exists()]
    losses = [row["loss"] for row in runs[-1] if row["kind"] == "valid"]
    return sum(max(row["step"] for row in rows) for rows in runs), min(losses, default=math.nan)


def score(folder: Path, metrics: Sequence[str]) -> dict[str, float]:
    """The scores of the best validation of a run."""
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if metrics[0] in row]
    best = max(rows, key=lambda row: row[metrics[0]])
    return {metric: best[metric] for metric in metrics}


def table(options: argparse.Namespace) -> list[str]:
    """The scores as Markdown; a cell has the mean of the seeds and each of them. Runs that were stopped do not count."""
    done = finished(options.out)
    lines = ["| | metric | " + " | ".join(TUNED) + " |", "|---|---|" + "--:|" * len(TUNED)]
    known = {name: pretrained(options.out, name) for name in MODELS if name in done}
    for index, (what, unit, form) in enumerate((("pre-training", "steps", ",d"), ("", "validation loss", ".3f"))):
        cells = [format(known[name][index], form) if name in known else "" for name in TUNED]
        lines.append(f"| {what} | {unit} | " + " | ".join(cells) + " |")
    for task in options.tasks:
        metrics = TASKS[task][2]
        runs = {
            name: [
                score(options.out / f"{name}-{task}-{seed}", metrics)
                for seed in range(1, options.seeds + 1)
                if f"{name}-{task}-{seed}" in done
            ]
            for name in TUNED
        }
        for metric in metrics:
            cells = []
            for name in TUNED:
                values = [run[metric] for run in runs[name]]
                each = ", ".join(f"{value:.1f}" for value in values)
                cells.append(f"{statistics.fmean(values):.1f} ({each})" if values else "")
            lines.append(f"| {task} | {metric} | " + " | ".join(cells) + " |")
    return lines


def time_of_each(options: argparse.Namespace, left: float) -> float:
    """Seconds of each pre-training. Those of a budget are fixed when the first one starts."""
    if options.budget is None:
        return seconds_of(options.time or "100s")
    kept = options.out / "time.json"
    if not kept.exists():
        each = (left - options.tuning) / (1 if options.together else len(MODELS))
        if each < 1:
            raise SystemExit(
                f"--budget leaves {left:.0f} s after preparing the text, and --tuning needs {options.tuning:.0f}"
            )
        write_json(kept, {"seconds": each})
    return json.loads(kept.read_text(encoding="utf-8"))["seconds"]


def main(arguments: list[str] | None = None) -> int:
    began, options = time.monotonic(), parser().parse_args(arguments)

    def left() -> float:
        return math.inf if options.budget is None else options.budget - (time.monotonic() - began)

    if options.budget is not None and options.time:
        raise SystemExit("--budget and --time exclude each other: the one follows from the other")
    prepare = preparations(options)
    Jobs(prepare, options.out, options.processes).run(left())
    plan = [*pretrainings(options, time_of_each(options, left())), *tunings(options)]
    done = Jobs([*prepare, *plan], options.out, options.processes).run(left() - 2)
    lines = table(options)
    print("\n".join(lines))
    write_json(options.out / "table.json", {"table": lines, "complete": done})
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
