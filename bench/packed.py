"""Training steps on padded and on packed texts of mixed lengths: `python -m bench.packed --threads 1 --clock process`.

A BERT with drawn weights learns from made-up texts, by the batches and the loss of each task. Padded and packed batches take turns;
the median of the rounds is in tokens a second, without padding. A step is the forward and backward pass and AdamW.
"""

import argparse
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from bench import machine
from bench.worker import CLOCKS
from heed.data.answers import collate_answers
from heed.data.batching import DataPosition, plan, plan_packed
from heed.data.labelled import CollateTexts, PackTexts
from heed.data.masking import Masking
from heed.data.pretraining import MaskedBatches, RowShape
from heed.data.segments import FullSentences, SegmentPairs, Segments, Text
from heed.data.tagged import collate_tagged
from heed.data.text_pairs import CollatePairs
from heed.files import write_json
from heed.models.bert import PRESETS, Bert, BertConfig
from heed.products.classifier import Classifier
from heed.tasks.contrastive_loss import ContrastiveLoss
from heed.tasks.masked import MaskedLoss
from heed.tasks.question_answering import AnswerLoss, QuestionAnswering
from heed.tasks.tagging import Tagging, TagLoss
from heed.tasks.text_losses import LabelLoss, PackedTextLoss
from heed.vocabularies.vocabulary import SpecialTokens

SPECIAL = SpecialTokens(0, 1, 2, 3, before=(2,), delimiter=(3,), segments=True)
WORDS, VOCABULARY = 4, 8000  # the first id that is a word; how many ids there are
Steps = Iterator[tuple[Any, int]]  # a batch, and its tokens without padding


class Row(NamedTuple):
    """What a task trains: the head of the model, the loss, and its batches, padded or packed."""

    head: dict[str, Any]
    loss: Callable[[nn.Module, Any], Any]
    batches: Callable[[bool], Steps]


def texts(count: int, median: float, spread: float) -> tuple[list[list[int]], list[list[int]]]:
    """Ids of texts whose lengths have a log-normal distribution, of 1 to 120, and counterparts of about their lengths."""
    random = np.random.default_rng(0)
    lengths = np.exp(random.normal(math.log(median), spread, count))
    both = [(own.round().clip(1, 120)).astype(int) for own in (lengths, lengths * np.exp(random.normal(0, 0.2, count)))]
    one, other = ([random.integers(WORDS, VOCABULARY, length).tolist() for length in own] for own in both)
    return one, other


def labelled(
    sources: Sequence[list[int]], targets: Sequence[list[int]], collates: Sequence[Callable], budget: int
) -> Callable[[bool], Steps]:
    """The batches of texts with labels; `collates` make padded and packed ones."""
    sizes = [np.array([len(own) + len(SPECIAL.before) + 1 for own in side]) for side in (sources, targets)]

    def batches(packed: bool) -> Steps:
        for rows in (plan_packed if packed else plan)(*sizes, budget, seed=0, epoch=0):
            own = [[side[i] for i in rows] for side in (sources, targets)]
            yield collates[packed](*own, (SPECIAL, SPECIAL)), int(sizes[0][rows].sum())

    return batches


def pairs(ones: Sequence[list[int]], others: Sequence[list[int]], budget: int) -> Callable[[bool], Steps]:
    """The batches of texts that belong together; both count."""
    first = labelled(ones, others, [CollatePairs(), CollatePairs(packed=True)], budget)

    def batches(packed: bool) -> Steps:
        for batch, _ in first(packed):
            lengths = batch.valid.starts[-1] if packed else batch.valid.sum()
            yield batch, int(lengths)

    return batches


def rows_of_text(sentences: Sequence[list[int]], length: int, paired: bool, budget: int) -> Callable[[bool], Steps]:
    """The rows that an encoder is pre-trained on; ten sentences are a document."""
    ids = np.concatenate([[*own, SPECIAL.last] for own in sentences])
    starts = np.cumsum([0, *(len(own) + 1 for own in sentences[:-1])])[::10]
    text, shape = Text(ids, starts, SPECIAL.last), RowShape(SPECIAL, length, paired)
    if paired:
        source = SegmentPairs(Segments(text, shape.room // 2, paired=True), shape.room, "next", 0.1)
    else:
        source = FullSentences(Segments(text, shape.room), shape.room, False)
    masking = Masking(1, np.arange(VOCABULARY) >= WORDS, None, 0.15, 0.8, 0.1, False)

    def batches(packed: bool) -> Steps:
        made = MaskedBatches(source, masking, shape, rows=budget // length, packed=packed)
        for _, batch in made.start(DataPosition()):
            yield batch, batch.size

    return batches


def rows(count: int, median: float, spread: float, budget: int) -> dict[str, Row]:
    one, other = texts(count, median, spread)
    classes, tags = [[len(own) % 3] for own in one], [[1 + i % 5 for i in own] for own in one]
    questions = [[*a[:20], SPECIAL.last, *b] for a, b in zip(one, other, strict=True)]
    ends = [[1 + min(len(own), 21), len(own)] for own in questions]
    made = CollateTexts()
    answers, mean = [collate_answers, QuestionAnswering.pack], ContrastiveLoss("mean", 20.0)
    label = PackedTextLoss(LabelLoss(0.1), Classifier.combine)
    return {
        "classification": Row({"labels": 3}, label, labelled(one, classes, [made, PackTexts(made)], budget)),
        "tagging": Row({"head": "tokens", "labels": 5}, TagLoss(0.1), labelled(one, tags, [collate_tagged, Tagging.pack], budget)),
        "question-answering": Row({"head": "answer"}, AnswerLoss(), labelled(questions, ends, answers, budget)),
        "embedding": Row({"head": "none"}, mean, pairs(one, other, budget)),
        "masked": Row({"head": "masked"}, MaskedLoss(), rows_of_text(one, 128, False, budget)),
        "masked, pairs": Row({"head": "pretraining"}, MaskedLoss(9.0), rows_of_text(one, 128, True, budget)),
    }  # fmt: skip


def padding(batches: Sequence[tuple[Any, int]]) -> float:
    """The share of the tokens that is padding."""
    size = sum((own.tokens if hasattr(own, "tokens") else own.source).numel() for own, _ in batches)
    return 1 - sum(tokens for _, tokens in batches) / size


def measure(row: Row, preset: str, steps: int, rounds: int, clock: str) -> dict[str, Any]:
    """Tokens a second of each round, in turns, and the padding of the padded batches."""
    torch.manual_seed(0)
    model = Bert(BertConfig(vocab_size=VOCABULARY, **PRESETS[preset], **row.head)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ways = {name: list(islice(row.batches(name == "packed"), steps)) for name in ("padded", "packed")}
    found: dict[str, Any] = {"padding": padding(ways["padded"]), **{name: [] for name in ways}}
    for number in range(rounds + 1):
        for name, batches in ways.items():
            begin = CLOCKS[clock]()
            for batch, _ in batches:
                row.loss(model, batch).total.backward()
                optimizer.step()
                optimizer.zero_grad()
            seconds = CLOCKS[clock]() - begin
            if number:  # the first is for warming up
                found[name].append(sum(tokens for _, tokens in batches) / seconds)
    found["ratio"] = statistics.median(b / a for a, b in zip(found["padded"], found["packed"], strict=True))
    return found


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.packed", description=__doc__)
    top.add_argument("--preset", choices=list(PRESETS), default="small", help="the size of the BERT (default: small)")
    top.add_argument("--texts", type=int, default=20_000, help="that batches are chosen from (default: 20,000)")
    top.add_argument("--median", type=float, default=16, help="subwords of a text, the median (default: 16)")
    top.add_argument("--spread", type=float, default=0.8, help="standard deviation of the log of it (default: 0.8)")
    top.add_argument("--batch-tokens", type=int, default=4096, help="of a batch (default: 4,096)")
    top.add_argument("--steps", type=int, default=4, help="of a turn (default: 4)")
    top.add_argument("--rounds", type=int, default=5, help="how often each has its turn (default: 5)")
    top.add_argument("--threads", type=int, default=2, help="(default: 2)")
    top.add_argument("--clock", choices=[*CLOCKS], default="wall", help="process: CPU seconds of this process")
    top.add_argument("--tasks", nargs="+", help="some alone, by the names of the table")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def main(words: Sequence[str] | None = None) -> int:
    args = parser().parse_args(words)
    torch.set_num_threads(args.threads)
    found = {}
    for name, row in rows(args.texts, args.median, args.spread, args.batch_tokens).items():
        if args.tasks and name not in args.tasks:
            continue
        own = found[name] = measure(row, args.preset, args.steps, args.rounds, args.clock)
        shown = "  ".join(f"{way} {statistics.median(own[way]):,.0f} ({min(own[way]):,.0f} to {max(own[way]):,.0f})" for way in ("padded", "packed"))  # fmt: skip
        print(f"{name:20} padding {own['padding']:.1%}  tokens/s: {shown}  ratio {own['ratio']:.2f}", flush=True)
    if args.json:
        write_json(args.json, {"cpu": machine.cpu(), "torch": torch.__version__, "rows": found})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
