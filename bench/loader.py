"""How many tokens a second the loader gives, by itself: `python -m bench.loader`.

A corpus of invented words is prepared in a temporary folder. Tokens are those of source and target that are no padding,
the end of each text among them.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from heed.data import corpus as corpora
from heed.data.batching import Batches, DataPosition, plan
from heed.data.filters import FiltersConfig
from heed.data.in_thread import in_thread
from heed.data.prefetch import in_processes
from heed.data.pretraining import MaskedBatch, MaskedBatches, PairSettings, masked_batches
from heed.data.readers import Line
from heed.data.segments import read_text
from heed.vocabularies import sentencepiece, wordpiece

SYLLABLES = [a + b for a in "bdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "ar", "en", "il", "ost", "ung")]
WORDS = 20_000
MASKED = {
    "filled rows": PairSettings(cut_sentences=True),
    "pairs": PairSettings(pair="next"),
    "whole words": PairSettings(cut_sentences=True, whole_words=True),
}


def invented(count: int, length: int, seed: int = 0) -> list[Line]:
    """Pairs of 0.6 to 1 times `length` words, of which few are frequent and most are rare."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.choice([1, 2, 2, 3, 3, 4]))) for _ in range(2 * WORDS)]
    frequent = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))

    def text(own: list[str]) -> str:
        return " ".join(draw.choices(own, cum_weights=frequent, k=draw.randint(round(0.6 * length), length)))

    return [Line(text(words[:WORDS]), text(words[WORDS:]), f"line {i}") for i in range(count)]


def prepared(folder: Path, tokens: int, length: int) -> tuple[corpora.Corpus, tuple]:
    """A corpus of about this many tokens, and its subwords."""
    lines = invented(max(100, int(tokens / (2 * 0.8 * length * 1.2))), length)
    learned = sentencepiece.learn(
        (text for line in lines[:20_000] for text in line[:2]), sentencepiece.SubwordsConfig(), 8000
    )
    config = FiltersConfig(duplicates=False)
    skip = np.zeros(len(lines), dtype=np.uint8)
    pair = (learned, learned)
    return corpora.build(folder / "corpus", lambda: lines, pair, config, skip=skip, with_text=True), pair


class Rate(NamedTuple):
    """Tokens a second, and of each batch the milliseconds in all and of this thread's own work."""

    tokens: float
    wait: float
    own: float


def once(batches: Iterator, seconds: float, most: int | None = None) -> tuple[Rate, int]:
    """How fast batches come, for so many seconds or `most` of them, and how many came."""
    began, worked, tokens, count = time.perf_counter(), time.thread_time(), 0, 0
    while count < most if most else time.perf_counter() - began < seconds:
        _, batch = next(batches)
        size = batch.size if isinstance(batch, MaskedBatch) else int(batch.valid.sum()) + len(batch.expected)
        tokens, count = tokens + size, count + 1
    took, own = time.perf_counter() - began, time.thread_time() - worked
    return Rate(tokens / took, 1000 * took / count, 1000 * own / count), count


def rate(start: Callable[[], Iterator], seconds: float, rounds: int = 3, skip: int = 5) -> Rate:
    """The median of some rounds; the first batches do not count."""
    with closing(start()) as batches:
        list(islice(batches, skip))
        return sorted(once(batches, seconds)[0] for _ in range(rounds))[rounds // 2]


def tell(what: str, found: Rate) -> None:
    print(f"{what:<52}{found.tokens / 1e6:8.2f} M/s{found.wait:10.2f} ms{found.own:10.2f} ms", flush=True)


def masked(tokens: int, length: int, settings: PairSettings) -> MaskedBatches:
    """Rows of a text of about this many tokens, in documents of ten sentences."""
    texts = [line.source for line in invented(max(100, int(tokens / (0.8 * length * 1.2))), length)]
    learned = wordpiece.learn(texts[:20_000], 8000)[0]
    lines = [own for i, text in enumerate(texts) for own in ([text] if i % 10 else ["", text])]
    text = read_text([Line(own, own, "text") for own in lines], learned, "paragraph")
    return masked_batches(text, learned, settings, batch_tokens=16_384)


def plans(pairs: int, budget: int) -> float:
    """Seconds for the order of an epoch of this many pairs."""
    source, target = np.random.default_rng(0).integers(10, 100, (2, pairs)).astype(np.int32)
    began = time.perf_counter()
    plan(source, target, budget, seed=1, epoch=0)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.loader", description=__doc__)
    parser.add_argument("--tokens", type=int, default=2_000_000, help="of the corpus; 2,000,000 by default")
    parser.add_argument("--length", type=int, default=25, help="the most words of a sentence; 25 by default")
    parser.add_argument("--seconds", type=float, default=2.0, help="a round; 2 by default")
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2], help="processes that sample; 1 and 2 by default"
    )
    parser.add_argument("--pairs", type=int, default=2_000_000, help="for the order of an epoch; 2,000,000 by default")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        corpus, pair = prepared(Path(folder), asked.tokens, asked.length)
        held = len(corpus.source.ids) + len(corpus.target.ids) + 2 * len(corpus)
        print(f"{len(corpus):,} pairs, {held:,} tokens")
        print(f"{'':<52}{'tokens':>12}{'a batch':>13}{'own work':>13}")
        for budget in (4096, 25_600):
            plain = Batches(corpus, budget=budget, seed=1)
            tell(f"{budget:,} slots", rate(lambda own=plain: own.start(), asked.seconds))
            tell(f"{budget:,} slots, another thread", rate(lambda own=plain: in_thread(own.start()), asked.seconds))
            tell(
                f"{budget:,} slots, another process",
                rate(lambda own=plain: in_processes(own, DataPosition()), asked.seconds),
            )
        for name, settings in MASKED.items():
            made = masked(asked.tokens, asked.length, settings)
            tell(f"16,384 slots, masked words, {name}", rate(lambda own=made: own.start(DataPosition()), asked.seconds))
        for budget in (4096, 25_600):
            sampled = Batches(corpus, budget=budget, seed=1, sampling=0.1, vocabularies=pair)
            found, count = once(sampled.start(), asked.seconds)
            tell(f"{budget:,} slots, sampled, words not met before", found)
            tell(f"{budget:,} slots, sampled, the same words again", once(sampled.start(), 0, count)[0])
            for workers in asked.workers:
                made = rate(lambda own=sampled, n=workers: in_processes(own, DataPosition(), workers=n), asked.seconds)
                tell(f"{budget:,} slots, sampled, other processes: {workers}", made)
    for budget in (4096, 25_600):
        print(f"the order of {asked.pairs:,} pairs, {budget:,} slots: {plans(asked.pairs, budget):.2f} s", flush=True)


if __name__ == "__main__":
    main()
