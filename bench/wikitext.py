"""WikiText-2 word by word: `python -m bench.wikitext --data wikitext-2 --out runs/wikitext --time 850s`.

An LSTM, and candidates for the settings of a GPT-2 and a Transformer-XL of about its size, are trained at the same time, each for the same
time. Of each kind the one with the lowest perplexity on the validation text is evaluated on the test text: GPT-2 also with a sliding
window, Transformer-XL also with a longer memory. Then `bench.context` measures the perplexity by context length and draws one picture
of all three. The same command continues where it stopped; finished runs are not repeated.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.jobs import HEED, Job, Jobs, train
from heed.files import write_json

LIGHT = ("model.input_dropout=0.5", "model.output_dropout=0.4", "model.word_dropout=0.1")
HEAVY = ("model.input_dropout=0.6", "model.output_dropout=0.5", "model.word_dropout=0.2")
CANDIDATES = {  # kind -> candidate -> settings besides those of the recipe, whose dropout is that of the first
    "lstm": {"lstm": ()},
    "gpt": {"gpt": LIGHT, "gpt-heavy": HEAVY},
    "transformer-xl": {"transformer-xl": HEAVY, "transformer-xl-light": LIGHT},
}
TITLES = {"lstm": "LSTM", "gpt": "GPT-2", "transformer-xl": "Transformer-XL"}
VARIANTS = {  # how a kind is evaluated on the test text
    "lstm": {"test": ()},
    "gpt": {"test": (), "test, --stride 32": ("--stride", "32")},
    "transformer-xl": {"test": (), "test, --memory 640": ("--memory", "640")},
}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument(
        "--data", type=Path, required=True, help="a folder with train.txt.xz, valid.txt.xz and test.txt.xz"
    )
    top.add_argument("--out", type=Path, default=Path("runs/wikitext"))
    top.add_argument("--time", default="850s", help="of each training (default: 850s)")
    top.add_argument(
        "--only", nargs="+", choices=[own for kind in CANDIDATES.values() for own in kind], help="default: all"
    )
    top.add_argument("--at-once", type=int, default=5, help="runs at the same time (default: 5)")
    top.add_argument("--set", dest="settings", action="append", default=[], help="a setting of all trainings")
    top.add_argument("--device", default="auto")
    top.add_argument("--longest", type=int, default=1024, help="the longest context of the picture (default: 1024)")
    top.add_argument("--tokens", type=int, default=65536, help="tokens that the picture scores (default: 65536)")
    top.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop after this time; the same command goes on"
    )
    return top  # fmt: skip


def file(options: argparse.Namespace, name: str) -> str:
    return str((options.data / f"{name}.txt.xz").resolve())


def trainings(options: argparse.Namespace) -> list[Job]:
    data = [
        f"data.source={json.dumps([file(options, 'train')])}",
        f"data.valid_source={json.dumps([file(options, 'valid')])}",
    ]
    found = []
    for kind, own in CANDIDATES.items():
        for name, settings in own.items():
            if options.only and name not in options.only:
                continue
            rest = ("--time", options.time, "--device", options.device)
            command = train(
                name, f"recipes/wikitext2-{kind}.toml", options.out, [*data, *settings, *options.settings], rest
            )
            found.append(Job(name, command, share=1 / options.at_once))
    return found  # fmt: skip


def validation(folder: Path) -> dict[str, Any] | None:
    """The steps and the lowest validation perplexity of a finished run; None if there is none."""
    if not (folder / "model").exists():
        return None
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [row["loss"] for row in rows if row["kind"] == "valid"]
    return {"steps": max(row["step"] for row in rows), "valid": math.exp(min(losses, default=math.inf))}


def best(options: argparse.Namespace) -> dict[str, str]:
    """Of each kind, the finished candidate with the lowest perplexity on the validation text."""
    found = {}
    for kind, own in CANDIDATES.items():
        scores = {name: score["valid"] for name in own if (score := validation(options.out / name))}
        if scores:
            found[kind] = min(scores, key=scores.__getitem__)
    return found


def evaluations(options: argparse.Namespace, chosen: Mapping[str, str]) -> list[Job]:
    """The test text for the best of each kind, and the picture."""
    found = []
    for kind, name in chosen.items():
        for number, more in enumerate(VARIANTS[kind].values()):
            out = options.out / f"{name}-test-{number}.json"
            command = ("evaluate", str(options.out / name), "--text", file(options, "test"), "--json", str(out))
            device = ("--device", options.device)
            found.append(Job(out.stem, (*HEED, *command, *device, *more), share=1 / options.at_once))
    runs = [f"{TITLES[kind]}={options.out / name}" for kind, name in chosen.items()]
    picture = (
        "--text",
        file(options, "test"),
        "--out",
        str(options.out / "context.png"),
        "--json",
        str(options.out / "context.json"),
    )
    sizes = (
        "--longest",
        str(options.longest),
        "--tokens",
        str(options.tokens),
        "--sliding",
        "0",
        "--device",
        options.device,
    )
    context = (sys.executable, "-m", "bench.context", *runs, *picture, *sizes)
    return [*found, Job(f"context-{'-'.join(chosen.values())}", context)] if runs else []  # fmt: skip


def table(options: argparse.Namespace, chosen: Mapping[str, str]) -> list[str]:
    """All candidates, with the test perplexities of the best of each kind."""
    rows = ["| | steps | valid | test |", "|---|--:|--:|---|"]
    for kind, own in CANDIDATES.items():
        for name in own:
            score = validation(options.out / name)
            if score is None:
                continue
            tests = _tests(options, kind, name) if chosen.get(kind) == name else ""
            rows.append(f"| {name} | {score['steps']:,} | {score['valid']:.2f} | {tests} |")
    return rows


def _tests(options: argparse.Namespace, kind: str, name: str) -> str:
    found = []
    for number, variant in enumerate(VARIANTS[kind]):
        path = options.out / f"{name}-test-{number}.json"
        if path.exists():
            scores = json.loads(path.read_text(encoding="utf-8"))
            found.append(f"{perplexity(scores):.2f}{variant.removeprefix('test')}")
    return "; ".join(found)


def perplexity(scores: Mapping[str, Any]) -> float:
    """That of a result of `heed evaluate --text --json`."""
    return scores["perplexity"]["per_token"]


def main(arguments: list[str] | None = None) -> int:
    began, options = time.monotonic(), parser().parse_args(arguments)

    def left() -> float:
        return options.seconds - (time.monotonic() - began)

    done = Jobs(trainings(options), options.out, options.at_once).run(left())
    chosen = best(options)
    done = Jobs(evaluations(options, chosen), options.out, options.at_once).run(left()) and done
    rows = table(options, chosen)
    print("\n".join(rows))
    write_json(options.out / "table.json", {"table": rows, "chosen": chosen, "complete": done})
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
