"""How good is it by now: the loss and the scores on the validation set, and a few texts to look at."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from heed.data.batching import Noise, collate, collate_labelled, collate_masked, plan
from heed.data.readers import Line
from heed.decoding.config import DecodingConfig
from heed.evaluation import rouge
from heed.evaluation.translation import metrics
from heed.products.classifier import Classifier
from heed.products.translator.attention_trace import AlignmentRows, choose_rows
from heed.products.translator.translator import Translator
from heed.tasks.classification import Classification
from heed.tasks.translation import Translation
from heed.training.loss import Loss
from heed.vocabularies.vocabulary import Pair, Vocabulary


@dataclass(frozen=True)
class ValidationResult:
    """`scores` by the names of their metrics; `samples` are (what was read, what was expected, what was said)."""

    scores: dict[str, float]
    samples: list[tuple[str, str, str]]


@runtime_checkable
class Validation(Protocol):
    """A validation set, ready to be asked again and again."""

    size: int

    def run(self, model: nn.Module, decoding: DecodingConfig, max_source: int) -> ValidationResult: ...

    def facts(self, model: nn.Module) -> dict[str, Any]:
        """What the model folder should say because of what was seen here."""

    def too_long(self, most: int) -> int:
        """How many texts do not count in the loss, since a model with `most` places cannot read or say them."""


class Translating:
    """Loss, BLEU, chrF and ROUGE of translations."""

    def __init__(self, lines: Sequence[Line], subwords: Pair, *, budget: int, samples: int):
        self.sources = [subwords[0].clean(line.source) for line in lines]
        self.references = [subwords[1].clean(line.target) for line in lines]
        self.subwords, self.budget, self.size = subwords, budget, len(lines)
        self.ids = [part.encode(texts) for part, texts in zip(subwords, (self.sources, self.references), strict=True)]
        self.shown = shown(len(lines), samples)

    def run(self, model: nn.Module, decoding: DecodingConfig, max_source: int) -> ValidationResult:
        model.eval()
        translator = Translator([model], self.subwords, decoding=decoding, max_source=max_source)
        found = [t.text for t in translator.translate(self.sources, batch_tokens=self.budget)]
        samples = [(self.sources[i], self.references[i], found[i]) for i in self.shown]
        logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # a model that has learned little looks tokenized to it
        bleu, chrf = (m.corpus_score(found, [self.references]).score for m in metrics(False, "13a")[:2])  # TER is slow
        overlap = 100 * rouge.score(found, self.references).longest.f1
        scores = {"loss": self.loss(model), "bleu": bleu, "chrf": chrf, "rouge": overlap}
        return ValidationResult(scores, samples)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.sources, self.references, strict=True))

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {"alignment": self.alignment_rows(model)._asdict()}

    def too_long(self, most: int) -> int:
        return sum(max(map(len, pair)) >= most for pair in zip(*self.ids, strict=True))

    def alignment_rows(self, model: nn.Module) -> AlignmentRows:
        """Where this model's word alignments are to be read."""
        most = min(60, model.config.max_length - max(len(own.marks.before) for own in self.subwords))
        pairs = [pair for pair in zip(*self.ids, strict=True) if all(0 < len(side) < most for side in pair)][:200]
        if not pairs:
            return AlignmentRows(model.config.decoder_layers - 1, after=False)
        return choose_rows(model.eval(), pairs, self.subwords)

    def loss(self, model: nn.Module) -> float:
        """-log p of a reference token, on average. What is longer than the model allows does not count."""
        marks = self.subwords[0].marks, self.subwords[1].marks
        most = model.config.max_length - max(len(own.before) for own in marks)
        pairs = _short(list(zip(*self.ids, strict=True)), most)
        return _loss(model, Translation(0.0), pairs, lambda own: collate(*zip(*own, strict=True), marks), self.budget)


class Restoring:
    """How well texts are restored from what noise has left of them, the same noise each time."""

    def __init__(self, lines: Sequence[Line], subwords: Pair, noise: Noise, *, budget: int, samples: int):
        self.subwords, self.budget, self.size = subwords, budget, len(lines)
        chance = np.random.default_rng(0)
        ids = subwords[0].encode([line.source for line in lines])
        self.examples = [noise(np.asarray(own, dtype=np.int64), chance) for own in ids]
        self.shown = shown(len(lines), samples)

    def run(self, model: nn.Module, decoding: DecodingConfig, max_source: int) -> ValidationResult:
        model.eval()
        marks = self.subwords[0].marks, self.subwords[1].marks
        most = model.config.max_length - len(marks[0].before)
        loss = _loss(
            model, Translation(0.0), _short(self.examples, most), lambda own: collate_masked(own, marks), self.budget
        )
        return ValidationResult({"loss": loss}, self._samples(model, decoding, most))

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, most: int) -> int:
        return sum(max(len(own[0]), len(own[1])) >= most for own in self.examples)

    def _samples(self, model: nn.Module, decoding: DecodingConfig, most: int) -> list[tuple[str, str, str]]:
        translator = Translator([model], self.subwords, decoding=decoding)
        own = [self.examples[i] for i in self.shown if len(self.examples[i][0]) < most]
        found = translator.search_ids([list(map(int, e[0])) for e in own], decoding, [[] for _ in own])
        read = ["".join(self.subwords[0].pieces(e[0].tolist())).replace("▁", " ").strip() for e in own]
        due = [self.subwords[1].decode(e[1].tolist()) for e in own]
        said = [self.subwords[1].decode(best[0].tokens) for best in found]
        return list(zip(read, due, said, strict=True))


class Classifying:
    """Loss and accuracy of labels."""

    def __init__(self, lines: Sequence[Line], subwords: Pair, *, budget: int, samples: int):
        self.texts, self.names = [line.source for line in lines], [subwords[1].clean(line.target) for line in lines]
        self.subwords, self.budget, self.size = subwords, budget, len(lines)
        self.ids = subwords[0].encode(self.texts), [_label(line, subwords[1]) for line in lines]
        self.shown = shown(len(lines), samples)

    def run(self, model: nn.Module, decoding: DecodingConfig, max_source: int) -> ValidationResult:
        model.eval()
        marks = self.subwords[0].marks, self.subwords[1].marks
        most = model.config.max_length - len(marks[0].before)
        pairs = [(own[: most - 1], label) for own, label in zip(*self.ids, strict=True)]
        loss = _loss(
            model, Classification(0.0), pairs, lambda own: collate_labelled(*zip(*own, strict=True), marks), self.budget
        )
        found = Classifier(model, self.subwords[0], self.subwords[1].names).classify(self.texts, too_long="cut")
        said = [one.label for one in found]
        right = sum(a == b for a, b in zip(said, self.names, strict=True))
        samples = [(self.texts[i], self.names[i], said[i]) for i in self.shown]
        return ValidationResult({"loss": loss, "accuracy": 100 * right / max(1, self.size)}, samples)

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {"labels": self.subwords[1].names}

    def too_long(self, most: int) -> int:
        return 0  # their ends are cut off


@torch.inference_mode()
def _loss(
    model: nn.Module,
    objective: Callable[[nn.Module, Any], Loss],
    examples: Sequence[tuple],
    together: Callable[[Sequence[tuple]], Any],
    budget: int,
) -> float:
    """-log p of what is expected, on average."""
    device = next(model.parameters()).device
    lengths = [np.array([len(example[side]) + 1 for example in examples]) for side in (0, 1)]
    total, count = 0.0, 0
    for rows in plan(*lengths, budget=budget, seed=0, epoch=0):
        loss = objective(model, together([examples[i] for i in rows]).to(device))
        total, count = total + loss.nll.item(), count + loss.count
    return total / max(count, 1)


def _short(examples: Sequence[tuple], most: int) -> list[tuple]:
    """Those that a model has places for; if it is none of them, there is nothing to measure by."""
    short = [own for own in examples if max(len(own[0]), len(own[1])) < most]
    if examples and not short:
        raise ValueError(
            f"all {len(examples):,} validation texts are longer than the model's {most} places: name others, or shorter ones"
        )
    return short


def _label(line: Line, labels: Vocabulary) -> list[int]:
    try:
        return labels.encode([line.target])[0]
    except ValueError as error:
        raise ValueError(f"validation, {line.location}: {error}") from None


def shown(size: int, samples: int) -> list[int]:
    """Which texts are watched: spread over all."""
    return np.linspace(0, size - 1, min(samples, size), dtype=int).tolist()
