"""What a classifier gains from reading documents to their end: `python -m bench.long_labels OUT`.

Documents of hundreds of words are made up. A judgement near the beginning says nothing; one near the end, in the same words, is the label.
A small BigBird learns from whole documents, and the same with 128 positions from their beginnings, as a model that cuts them would.
"""

import argparse
import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.jobs import HEED, train
from heed.files import write_json

LABELS = {"good": ("fine", "sound", "clear", "strong"), "bad": ("weak", "vague", "hasty", "flawed")}
SUBJECTS = ("the report", "the plan", "the survey", "the essay", "the design", "the method", "the result", "the model")
VERBS = ("describes", "mentions", "compares", "lists", "measures", "quotes", "explains", "repeats", "counts", "shows")
OBJECTS = ("two rivers", "an old bridge", "several towns", "the winter", "many roads", "a school", "three harvests",
           "some letters", "the market", "a long winter", "the northern coast", "a small museum")  # fmt: skip
TIMES = ("in May", "last year", "by then", "every week", "before noon", "in the north", "for once", "as usual")
WORDS = (540, 700)  # of a document, at least and at most
CUT = 110  # words that a model with 128 positions is sure to read
PARTS = {"train": 2400, "valid": 200, "test": 600}
MODELS = {"bigbird": 1024, "cut": 128}  # positions


def document(rng: random.Random, words: tuple[int, int] = WORDS) -> tuple[str, str]:
    """A document and its label."""
    wanted, label = rng.randint(*words), rng.choice(list(LABELS))
    sentences, count = [f"at first the readers found it {rng.choice(LABELS[rng.choice(list(LABELS))])} ."], 0
    while count < wanted:
        sentences.append(" ".join([*map(rng.choice, (SUBJECTS, VERBS, OBJECTS, TIMES)), "."]))
        count += len(sentences[-1].split())
    verdict = f"in the end the readers found it {rng.choice(LABELS[label])} ."
    sentences.insert(len(sentences) - rng.randint(1, 4), verdict)
    return " ".join(sentences), label


def documents(count: int, seed: str, words: tuple[int, int] = WORDS) -> Iterator[tuple[str, str]]:
    rng = random.Random(seed)
    for _ in range(count):
        yield document(rng, words)


def write(folder: Path, counts: dict[str, int] = PARTS, cut: int = CUT, words: tuple[int, int] = WORDS) -> None:
    """The tables of each part; cut-train.tsv and cut-valid.tsv have the beginnings alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in counts.items():
        rows = list(documents(count, name, words))
        beginnings = [(" ".join(text.split()[:cut]), label) for text, label in rows]
        for kind, own in (("", rows), *([("cut-", beginnings)] if name != "test" else [])):
            lines = ["text\tlabel", *("\t".join(row) for row in own)]
            (folder / f"{kind}{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def settings(folder: Path, model: str, options: argparse.Namespace) -> list[str]:
    kind = "cut-" if model == "cut" else ""
    return [
        f'data.tsv=["{folder / f"{kind}train.tsv"}"]',
        f'data.valid_tsv=["{folder / f"{kind}valid.tsv"}"]',
        'data.columns=["text", "label"]',
        "task.name=classification",
        "task.label_smoothing=0",
        "filters.duplicates=false",  # of which beginnings have some
        "filters.overlap=false",
        "subwords.size=300",
        "model.name=bigbird",
        "model.dim=64",
        "model.heads=2",
        "model.hidden=128",
        "model.layers=2",
        "model.block=16",
        f"model.max_length={MODELS[model]}",
        "model.init_positions=sinusoids",
        "model.init_keys=queries",
        "model.dropout=0",
        "model.attention_dropout=0",
        f"training.steps={options.steps}",
        "training.batch_tokens=8192",
        f"training.rate={options.rate}",
        f"training.warmup={options.steps // 10}",
        "training.schedule=cosine",
        "training.valid_every=100",
        "training.log_every=20",
        f"training.seed={options.seed}",
        f"training.threads={options.threads}",
        "training.device=cpu",
        *options.set,
    ]


def accuracy(run: Path, table: Path) -> dict[str, float]:
    """On whole documents; those that are too long for the model are cut."""
    out = run / "test.json"
    words = ("--tsv", str(table), "--json", str(out), "--device", "cpu")
    subprocess.run((*HEED, "evaluate", str(run), *words), check=True)
    return json.loads(out.read_text(encoding="utf-8"))["scores"]["accuracy"]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.long_labels", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="further settings of both runs"
    )
    options = parser.parse_args(words)
    write(options.out)
    found = {}
    for model in options.models:
        command = train(model, None, options.out, settings(options.out, model, options))
        subprocess.run(command, check=True)
        found[model] = accuracy(options.out / model, options.out / "test.tsv")
        print(model, found[model], flush=True)
    write_json(options.out / "found.json", found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
