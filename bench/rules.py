"""What each rule of runs/defaults.py is worth: `python -m bench.rules --corpus NAME train.src train.tgt valid.src valid.tgt --out runs/rules`.

For each corpus, the rules choose the settings of a run. It is trained as chosen, and once without each rule, that is with the rule's
settings at what a recipe has that leaves them out (Transformer base, no R-Drop, ...), where these differ. All runs have the same time,
`--at-once` of them at the same time. The table has the BLEU of the validation sets that each rule adds, with its 95 % interval by
paired bootstrap resampling of the sentences. The same command continues where it stopped; finished runs are not repeated.
"""

import argparse
import json
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU

from bench.jobs import Job, Jobs, evaluate, train
from heed.config import assignment
from heed.data.readers import lines
from heed.device import choose_device
from heed.files import write_json, write_text
from heed.runs import final_validation, recipe
from heed.runs.choosing import complete
from heed.training.duration import seconds_of

WITHOUT: Mapping[str, Mapping[str, Any]] = {  # by the titles of the rules
    "size": {"model.dim": 512, "model.heads": 8, "model.hidden": 2048, "model.encoder_layers": 6, "model.decoder_layers": 6},
    "regularization": {"model.dropout": 0.1, "task.r_drop": 0.0, "subwords.sampling": 0.0},
    "vocabulary": {"subwords.size": 32_000},
    "batches": {"training.batch_tokens": 4096},
    "learning rate": {"training.rate": 0.001, "training.warmup": 1000},
    "end": {"training.cooldown": 0.0, "training.patience": 0},
    "weights": {"training.final": "best", "training.ema": 0.0},
    "search": {"decoding.length_penalty": 0.6},
}  # fmt: skip
SEARCH = "search"  # needs no other training, only another search


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = ("NAME", "SOURCE", "TARGET", "VALID_SOURCE", "VALID_TARGET")
    top.add_argument("--corpus", dest="corpora", nargs=5, action="append", required=True, metavar=what)
    top.add_argument("--out", type=Path, default=Path("runs/rules"))
    top.add_argument("--time", default="10m", help="of each run (default: 10m)")
    top.add_argument("--steps", type=int, help="of each run, with the batch that the rules choose, instead of --time")
    top.add_argument("--at-once", type=int, default=1, help="runs at the same time, of equal share (default: 1)")
    top.add_argument("--told", help="the time that the rules are told (default: that of a run alone, TIME / AT_ONCE)")
    top.add_argument("--rules", nargs="+", choices=WITHOUT, default=list(WITHOUT), help="default: all")
    top.add_argument("--set", dest="settings", action="append", default=[], help="a setting of all runs")
    top.add_argument("--device", default="auto")
    top.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop after this time; the same command goes on"
    )
    top.add_argument("--samples", type=int, default=1000, help="of the bootstrap (default: 1000)")
    return top  # fmt: skip


def told(options: argparse.Namespace) -> float:
    return seconds_of(options.told) if options.told else seconds_of(options.time) / options.at_once


def choose(options: argparse.Namespace, corpus: Sequence[str]) -> Path:
    """The recipe with all settings that the rules choose for a corpus; chosen once."""
    path = options.out / f"{corpus[0]}.toml"
    if not path.exists():
        names = ("source", "target", "valid_source", "valid_target")
        files = [(f"data.{name}", [str(Path(own).resolve())]) for name, own in zip(names, corpus[1:], strict=True)]
        length = ("training.time", f"{max(1, round(told(options)))}s")
        if options.steps:
            length = ("training.steps", options.steps)
        given = recipe.read(None, [("training.auto", True), *files, length])
        device = choose_device(options.device)
        found = complete(given, options.out / corpus[0], False, device, lambda what, done: None, print)
        write_text(path, found.to_toml())
    return path


def changes(chosen: Path, rule: str) -> dict[str, Any]:
    """The settings that differ without a rule."""
    sections = recipe.read(chosen, []).sections()
    found = {}
    for name, value in WITHOUT[rule].items():
        section, own = name.split(".")
        if sections[section].get(own) != value:
            found[name] = value
    return found


def equal_data(chosen: Path, other: Mapping[str, Any], settings: Sequence[str]) -> dict[str, int]:
    """With another batch size, the numbers of steps, in all and between validations, that read as many tokens."""
    training = recipe.read(chosen, [assignment(own) for own in settings]).training
    ratio = training.batch_tokens / other.get("training.batch_tokens", training.batch_tokens)
    lengths = {"training.steps": training.steps, "training.valid_every": training.valid_every}
    return {} if ratio == 1 else {name: round(ratio * own) for name, own in lengths.items()}


def jobs(options: argparse.Namespace) -> list[Job]:
    """First all runs as chosen, then those without a rule, then the searches."""
    first, second, third = [], [], []
    for name, *files in options.corpora:
        chosen, share = choose(options, (name, *files)), 1 / options.at_once
        rest = (*(() if options.steps else ("--time", options.time)), "--device", options.device)
        first.append(Job(name, train(name, str(chosen), options.out, options.settings, rest), share=share))
        for rule in options.rules:
            other = changes(chosen, rule)
            if other and rule == SEARCH:
                third += _searches(options, name, files, share)
            elif other:
                run = f"{name}-{rule.replace(' ', '-')}"
                other |= equal_data(chosen, other, options.settings) if options.steps else {}
                own = [f"{key}={json.dumps(value)}" for key, value in other.items()]
                second.append(
                    Job(run, train(run, str(chosen), options.out, [*options.settings, *own], rest), share=share)
                )
    return [*first, *second, *third]  # fmt: skip


def _searches(options: argparse.Namespace, name: str, files: Sequence[str], share: float) -> list[Job]:
    """Translations of the validation set with the length penalty of the run, and with the other."""
    penalty = WITHOUT[SEARCH]["decoding.length_penalty"]
    found = []
    for own, more in ((f"{name}-beam", ()), (f"{name}-{SEARCH}", ("--length-penalty", str(penalty)))):
        out, device = options.out / f"{own}.txt", ("--device", options.device)
        found.append(Job(own, evaluate(options.out / name, files[2:4], out, (*device, *more)), (name,), share))
    return found


def outputs(options: argparse.Namespace, name: str, ended: Container[str]) -> tuple[list[str], list[str]] | None:
    """The translations of the final model of a run on its validation set, and the references; None before it has ended."""
    if name not in ended:
        return None
    found = final_validation.read(options.out / name)
    return None if found is None else ([row[2] for row in found.outputs], [row[1] for row in found.outputs])


def searched(options: argparse.Namespace, name: str, reference: str) -> tuple[list[str], list[str]] | None:
    path = options.out / f"{name}.txt"
    return (list(lines(path)), list(lines(Path(reference)))) if path.exists() else None


def gain(with_rule: Sequence[str], without: Sequence[str], references: Sequence[str], samples: int) -> list[float]:
    """How much more BLEU the first has, and the ends of the 95 % interval by paired bootstrap resampling."""
    metric = BLEU()
    stats = [np.asarray(metric._extract_corpus_statistics(own, [references])) for own in (with_rule, without)]
    drawn = np.random.default_rng(12345).integers(len(references), size=(samples, len(references)))

    def difference(rows: np.ndarray) -> float:
        first, second = (metric._compute_score_from_stats(own[rows].sum(axis=0).tolist()).score for own in stats)
        return first - second

    ends = np.percentile([difference(rows) for rows in drawn], [2.5, 97.5])
    return [difference(np.arange(len(references))), *map(float, ends)]


def results(options: argparse.Namespace, ended: Container[str]) -> dict[str, dict[str, Any]]:
    """By corpus and rule: what it is worth, and what differs without it. A run that has not ended has no gain."""
    found: dict[str, dict[str, Any]] = {}
    for name, *files in options.corpora:
        chosen, rules = outputs(options, name, ended), {}
        for rule in options.rules:
            other = changes(options.out / f"{name}.toml", rule)
            if not other:
                continue
            pair = (chosen, outputs(options, f"{name}-{rule.replace(' ', '-')}", ended))
            if rule == SEARCH:
                pair = (searched(options, f"{name}-beam", files[3]), searched(options, f"{name}-{rule}", files[3]))
            rules[rule] = {"without": other}
            if None not in pair:
                (first, references), (second, _) = pair
                rules[rule]["gain"] = gain(first, second, references, options.samples)
        bleu = BLEU().corpus_score(chosen[0], [chosen[1]]).score if chosen else None
        found[name] = {"bleu": bleu, "rules": rules}
    return found


def table(found: Mapping[str, Mapping[str, Any]], rules: Sequence[str]) -> list[str]:
    """Rules by corpora, as Markdown. A dash: the rule chose what a recipe has anyway."""
    rows = ["| BLEU, validation | " + " | ".join(found) + " |", "|---|" + "--:|" * len(found)]
    first = ("" if own["bleu"] is None else f"{own['bleu']:.2f}" for own in found.values())
    rows.append("| as chosen | " + " | ".join(first) + " |")
    for rule in rules:
        cells = []
        for own in (corpus["rules"].get(rule) for corpus in found.values()):
            if own is None:
                cells.append("–")
            elif "gain" not in own:
                cells.append("")
            else:
                cells.append("{:+.2f} ({:+.2f} to {:+.2f})".format(*own["gain"]))
        rows.append(f"| {rule} | " + " | ".join(cells) + " |")
    return rows


def main(arguments: list[str] | None = None) -> int:
    began, options = time.monotonic(), parser().parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    plan = Jobs(jobs(options), options.out, at_once=options.at_once)
    done = plan.run(options.seconds - (time.monotonic() - began))
    found = results(options, plan.ended)
    rows = table(found, options.rules)
    print("\n".join(rows))
    write_json(options.out / "table.json", {"table": rows, "results": found, "complete": done})
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
