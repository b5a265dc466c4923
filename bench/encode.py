"""Sentences a second of `heed embed` and `heed classify` beside transformers and sentence-transformers: `python -m bench encode`.

A BERT with random weights reads made-up sentences of mixed lengths. All take turns in one process; the median counts.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from bench import machine
from bench.worker import CLOCKS
from heed.convert import huggingface
from heed.device import choose_device
from heed.files import write_json
from heed.loading import load
from heed.models.bert import PRESETS, Bert, BertConfig
from heed.models.package import Package
from heed.products.text_batches import in_precision
from heed.vocabularies.folder import KINDS
from heed.vocabularies.labels import Labels

BATCH = 32  # texts in a batch of the others, which is their default
SYLLABLES = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
System = Callable[[Sequence[str]], np.ndarray]


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench encode", description=__doc__)
    top.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    top.add_argument("--preset", choices=list(PRESETS), default="base", help="the size of the BERT (default: base)")
    top.add_argument("--texts", type=int, help="how many sentences; 96 by default, 20,000 on a GPU")
    top.add_argument("--median", type=float, default=16, help="words of a sentence, the median (default: 16)")
    top.add_argument("--spread", type=float, default=0.8, help="standard deviation of the log of it (default: 0.8)")
    top.add_argument("--rounds", type=int, default=3, help="how often each has its turn (default: 3)")
    top.add_argument("--threads", type=int, default=2, help="on the CPU (default: 2)")
    top.add_argument("--clock", choices=[*CLOCKS], default="wall", help="process: CPU seconds of this process, for a busy machine with --threads 1")  # fmt: skip
    top.add_argument("--systems", nargs="+", help="some alone, by the names of the table")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def sentences(count: int, median: float, spread: float) -> list[str]:
    """Made-up sentences whose lengths have a log-normal distribution, of 1 to 120 words."""
    random = np.random.default_rng(0)
    words = ["".join(random.choice(SYLLABLES, random.integers(1, 4))) for _ in range(3000)]
    lengths = np.exp(random.normal(math.log(median), spread, count)).round().clip(1, 120).astype(int)
    return [" ".join(random.choice(words, length)) for length in lengths]


def write_model(folder: Path, preset: str, texts: Sequence[str]) -> None:
    """A BERT that classifies, with random weights, as transformers' and heed read it."""
    vocabulary = KINDS["wordpiece"].learn(list(texts), 4000)[0]
    torch.manual_seed(0)
    model = Bert(BertConfig(vocab_size=len(vocabulary), labels=2, **PRESETS[preset])).eval()
    huggingface.write(Package(model, "classification", {"text": vocabulary, "labels": Labels(["a", "b"])}, {}), folder)


def theirs(folder: Path, device: torch.device, embeds: bool, compiled: bool = False) -> System:
    """What transformers computes with padded batches, in the order of the texts: vectors by the mean of the states, or logits."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    kind = transformers.AutoModel if embeds else transformers.AutoModelForSequenceClassification
    model = kind.from_pretrained(folder, dtype=torch.bfloat16 if device.type == "cuda" else torch.float32)
    model = model.eval().to(device)
    forward = torch.compile(model, dynamic=True) if compiled else model

    @torch.inference_mode()
    def run(texts: Sequence[str]) -> np.ndarray:
        found = []
        for start in range(0, len(texts), BATCH):
            own = tokenizer(list(texts[start : start + BATCH]), padding=True, return_tensors="pt").to(device)
            result = forward(**own)
            if embeds:
                mask = own["attention_mask"][..., None].float()
                found.append((result.last_hidden_state.float() * mask).sum(dim=1) / mask.sum(dim=1))
            else:
                found.append(result.logits.float())
        return torch.cat(found).cpu().numpy()

    return run


def by_length(run: System) -> System:
    """The same, with the texts sorted by their lengths first."""

    def sorted_run(texts: Sequence[str]) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        found = run([texts[row] for row in order])
        return found[np.argsort(order)]

    return sorted_run


def ours(folder: Path, device: torch.device, embeds: bool, engine: str = "auto") -> System:
    product = load(folder, str(device), verb="embed" if embeds else "classify")
    in_precision(product.model, "auto")
    product.use(engine)
    if embeds:
        return product.embed
    return lambda texts: product.outputs(texts).float().numpy()


def sentence_transformers(folder: Path, device: torch.device) -> System:
    from sentence_transformers import SentenceTransformer

    made = SentenceTransformer(str(folder), device=str(device))  # a transformers folder gets mean pooling
    if device.type == "cuda":
        made = made.bfloat16()
    return lambda texts: made.encode(list(texts), batch_size=BATCH, convert_to_tensor=True).float().cpu().numpy()


def systems(folder: Path, device: torch.device) -> dict[str, dict[str, System]]:
    """By what they compute: vectors or labels; the first is heed, with which the others are compared."""
    found: dict[str, dict[str, System]] = {}
    for verb, embeds in (("embed", True), ("classify", False)):
        plain = theirs(folder, device, embeds)
        found[verb] = {
            "heed": ours(folder, device, embeds),
            "transformers": plain,
            "transformers, sorted": by_length(plain),
        }
        if device.type == "cpu":  # where auto may be CTranslate2
            found[verb]["heed, torch"] = ours(folder, device, embeds, "torch")
        if device.type == "cuda":
            compiled = theirs(folder, device, embeds, compiled=True)
            found[verb] |= {"transformers, compiled": compiled, "transformers, compiled, sorted": by_length(compiled)}
    if find_spec("sentence_transformers"):
        found["embed"]["sentence-transformers"] = sentence_transformers(folder, device)
    return found


def measure(made: dict[str, System], texts: Sequence[str], rounds: int, clock: str) -> dict[str, dict[str, Any]]:
    """Texts a second of each, in turns, and how far its numbers are from the first one's."""
    seconds: dict[str, list[float]] = {name: [] for name in made}
    now = CLOCKS[clock]
    results = {name: run(texts) for name, run in made.items()}  # all of them: an engine may take no fewer
    for _ in range(rounds):
        for name, run in made.items():
            began = now()
            results[name] = run(texts)  # on the CPU when it returns, so a GPU has ended too
            seconds[name].append(now() - began)
    first = next(iter(results.values()))
    return {
        name: {
            "rate": len(texts) / statistics.median(own),
            "rates": [len(texts) / each for each in own],
            "difference": float(np.abs(results[name] - first).max()),
        }
        for name, own in seconds.items()
    }


def show(verb: str, found: dict[str, dict[str, Any]], console: Console) -> None:
    table = Table(title=f"heed {verb}: sentences a second")
    for column in ("system", "median", "of all rounds", "heed is faster by", "largest difference"):
        table.add_column(column, justify="left" if column == "system" else "right")
    ours = found["heed"]["rate"]
    for name, own in found.items():
        rates = f"{min(own['rates']):,.1f} to {max(own['rates']):,.1f}"
        table.add_row(name, f"{own['rate']:,.1f}", rates, f"{ours / own['rate']:.2f}", f"{own['difference']:.1e}")
    console.print(table)


def main(words: Sequence[str] | None = None) -> int:
    args, console = parser().parse_args(words), Console(width=None if sys.stdout.isatty() else 120)
    device = choose_device(args.device)
    torch.set_num_threads(args.threads)
    count = args.texts or (20_000 if device.type == "cuda" else 96)
    texts = sentences(count, args.median, args.spread)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        os.environ.setdefault("HEED_CACHE", f"{temporary}/cache")  # for what CTranslate2 reads
        write_model(folder, args.preset, texts)
        lengths = [len(ids) + 2 for ids in load(folder, "cpu", verb="embed").vocabulary.encode(texts)]
        facts = {
            "device": machine.cpu() if device.type == "cpu" else torch.cuda.get_device_name(device),
            "threads": args.threads, "clock": args.clock, "preset": args.preset, "texts": count, "torch": torch.__version__,
            "tokens": {"mean": statistics.mean(lengths), "longest": max(lengths)},
        }  # fmt: skip
        console.print(json.dumps(facts), highlight=False)
        for verb, made in systems(folder, device).items():
            wanted = {name: run for name, run in made.items() if not args.systems or name in ("heed", *args.systems)}
            facts[verb] = measure(wanted, texts, args.rounds, args.clock)
            show(verb, facts[verb], console)
            if args.json:
                write_json(args.json, facts)
    return 0
