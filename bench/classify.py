"""How many texts a second a classifier reads on the CPU: `python -m bench.classify --preset base`.

A BERT with random weights reads texts of mixed lengths (sentences of the phrasebook, one to a dozen a text) with each engine of
heed, and with transformers in batches of 32, as they come and sorted by length. The systems take turns; the median of the rounds is shown, and how far the logits
are from those of torch.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heed.convert import huggingface
from heed.data.synthetic.phrasebook import pairs
from heed.models.bert import PRESETS, Bert, BertConfig
from heed.models.package import Package
from heed.products.classifier import Classifier
from heed.products.ctranslate2_encoder import ENGINES
from heed.vocabularies import wordpiece
from heed.vocabularies.labels import Labels

BATCH = 32  # texts, in transformers


def mixed_texts(count: int) -> list[str]:
    """Texts of one sentence to a dozen; most are short, as texts are."""
    random = np.random.default_rng(0)
    sizes = np.clip(np.exp(random.normal(0.8, 0.8, count)).astype(int), 1, 12)
    sentences = iter([pair.target for pair in pairs("train", int(sizes.sum()))])
    return [" ".join(next(sentences) for _ in range(size)) for size in sizes]


def model(preset: str, texts: list[str]) -> Package:
    torch.manual_seed(0)
    vocabulary = wordpiece.learn(texts, 2000)[0]
    own = Bert(BertConfig(vocab_size=30522, labels=3, **PRESETS[preset])).eval().requires_grad_(False)
    return Package(own, "classification", {"text": vocabulary, "labels": Labels(["a", "b", "c"])}, {})


def with_heed(package: Package, engine: str, texts: list[str]) -> Callable[[], Tensor]:
    found = Classifier(package.model, package.processors["text"], package.processors["labels"].names)
    found.use(engine)
    return partial(found.outputs, texts)


def with_transformers(folder: Path, texts: list[str], by_length: bool) -> Callable[[], Tensor]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    own, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row])) if by_length else list(range(len(texts)))

    @torch.inference_mode()
    def run() -> Tensor:
        found = []
        for start in range(0, len(order), BATCH):
            batch = [texts[row] for row in order[start : start + BATCH]]
            found.append(own(**tokenizer(batch, padding=True, return_tensors="pt")).logits)
        return torch.cat(found)[np.argsort(order)].double()

    return run


def measure(systems: dict[str, Callable[[], Tensor]], rounds: int) -> dict[str, tuple[list[float], float]]:
    """The seconds of each round, and the largest difference from the logits of the first system."""
    expected = next(iter(systems.values()))()
    away = {name: (run() - expected).abs().max().item() for name, run in systems.items()}
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, run in systems.items():
            begin = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begin)
    return {name: (seconds[name], away[name]) for name in systems}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="base")
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    texts = mixed_texts(args.texts)
    package = model(args.preset, texts)
    systems = {engine: with_heed(package, engine, texts) for engine in ENGINES if engine != "auto"}
    with tempfile.TemporaryDirectory() as temporary:
        os.environ.setdefault("HEED_CACHE", f"{temporary}/cache")
        if find_spec("transformers"):
            huggingface.write(package, Path(temporary, "model"))
            for by_length in (False, True):
                name = f"transformers{', sorted' if by_length else ''}"
                systems[name] = with_transformers(Path(temporary, "model"), texts, by_length)
        found = measure(systems, args.rounds)
    lengths = [len(ids) for ids in package.processors["text"].encode(texts)]
    print(f"{len(texts)} texts of {min(lengths)} to {max(lengths)} subwords, {np.mean(lengths):.0f} on average")
    for name, (seconds, away) in found.items():
        rate = len(texts) / statistics.median(seconds)
        print(
            f"{name:22} {rate:8.1f} texts/s   logits differ by {away:.1e}   {' '.join(f'{own:.2f}' for own in seconds)}"
        )


if __name__ == "__main__":
    main()
