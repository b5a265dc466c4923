"""Pre-trained encoders beside each other: `python -m bench.pretraining --text en.txt ko.txt --valid valid.txt --glue GLUE --kor-nlu KOR --out runs/table`.

BERT, BERT without pairs, RoBERTa, ALBERT, ELECTRA and GPT read one text, each alone on the device and for the same time. Each is
fine-tuned on SST-2, CoLA, MRPC, STS-B and KorSTS with three seeds, and so is a BERT with fresh weights. The table has the scores
of the development sets, at the best validation of each run. What is done already is not done again.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.jobs import Job, Jobs, train
from heed.files import write_json

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
    top.add_argument("--time", default="100s", help="of each pre-training (default: 100s)")
    top.add_argument("--seeds", type=int, default=3)
    top.add_argument("--set", dest="settings", action="append", default=[], help="a setting of all pre-trainings")
    top.add_argument("--at-once", type=int, default=14, help="fine-tunings beside each other (default: 14)")
    top.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; the same command goes on")
    return top


def jobs(options: argparse.Namespace) -> list[Job]:
    """Preparing on the CPU, pre-training alone, fine-tuning side by side."""
    text = [f"data.source={json.dumps(list(options.text))}", f"data.valid_source={json.dumps([options.valid])}"]
    found = []
    for name, (recipe, settings) in MODELS.items():
        chosen = [
            *text,
            *settings,
            "training.warmup=700",
            "training.valid_every=1000",
            "training.samples=0",
            *options.settings,
        ]
        short = ["training.steps=1", "training.batch_tokens=512", "training.warmup=1", "model.layers=1"]
        prepare = train(
            f"prepare-{name}", recipe, options.out, [*text, *settings, *short], ("--device", "cpu", "--threads", "1")
        )
        found.append(Job(f"prepare-{name}", prepare, share=0))
        found.append(
            Job(name, train(name, recipe, options.out, chosen, ("--time", options.time)), (f"prepare-{name}",))
        )
    for seed in range(1, options.seeds + 1):
        for task in TASKS:
            found += [_tuning(options, name, task, seed) for name in TUNED]
    return found


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
        f"training.steps={steps}",
        f"training.batch_tokens={batch}",
        f"training.warmup={steps // 10}",
        f"training.rate={0.0003 if name == 'fresh' else 0.0002}",
        "filters.max_length=127",
        "training.schedule=cosine",
        "training.weight_decay=0.01",
        "training.decayed=matrices",
        "training.valid_every=50",
        f"training.metric={metrics[0]}",
        f"training.seed={seed}",
        *(["model.fresh=true"] if name == "fresh" else []),
    ]
    run = f"{name}-{task}-{seed}"
    command = train(run, None, options.out, settings, ("--from", str(options.out / base)))
    return Job(run, command, (base,), share=1 / options.at_once)


def score(folder: Path, metrics: Sequence[str]) -> dict[str, float]:
    """The scores of the best validation of a run."""
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if metrics[0] in row]
    best = max(rows, key=lambda row: row[metrics[0]])
    return {metric: best[metric] for metric in metrics}


def table(options: argparse.Namespace) -> list[str]:
    """The scores as Markdown; a cell has the mean of the seeds and each of them."""
    lines = ["| | metric | " + " | ".join(TUNED) + " |", "|---|---|" + "--:|" * len(TUNED)]
    for task, (_, _, metrics, _, _) in TASKS.items():
        runs = {
            name: [
                score(options.out / f"{name}-{task}-{seed}", metrics)
                for seed in range(1, options.seeds + 1)
                if (options.out / f"{name}-{task}-{seed}" / "model").exists()
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


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    done = Jobs(jobs(options), options.out).run(options.seconds)
    lines = table(options)
    print("\n".join(lines))
    write_json(options.out / "table.json", {"table": lines, "complete": done})
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
