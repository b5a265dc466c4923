"""Text classification: predict which of a few labels a text has."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from heed.config import check_fraction
from heed.data.batching import LabelledBatch, collate_labelled
from heed.data.filters import PAIRS_ONLY, FiltersConfig
from heed.data.prepare import TextFiles
from heed.data.readers import Line
from heed.models.abilities import ClassifiesText
from heed.models.package import Package
from heed.products.classifier import Classifier
from heed.tasks.base import Metric, Objective, Prepared, ValidationResult
from heed.tasks.text import TextTask
from heed.tasks.validation import mean_nll, sample_rows
from heed.training.loss import Loss, smoothed_cross_entropy
from heed.vocabularies.labels import Labels
from heed.vocabularies.vocabulary import Pair


@dataclass(frozen=True)
class ClassificationSettings:
    label_smoothing: float = 0.1  # share of the probability that is spread over the labels

    def __post_init__(self):
        check_fraction("task.label_smoothing", self.label_smoothing)


@dataclass(frozen=True)
class ClassificationLoss:
    """Cross entropy with label smoothing."""

    smoothing: float = 0.0

    def __call__(self, model: ClassifiesText, batch: LabelledBatch) -> Loss:
        return smoothed_cross_entropy(model.classify_text(batch.source, batch.valid), batch.labels, self.smoothing)[0]


class Classification(TextTask):
    name, title, example = "classification", "Classifier", "heed classify {} < text"
    Settings, needs, products = ClassificationSettings, ClassifiesText, (Classifier,)
    label_target, collate = True, staticmethod(collate_labelled)
    best = "accuracy"
    metrics = (
        Metric("accuracy", "accuracy", True, lambda: "per cent"),
        Metric("loss", "loss", False, lambda: "-log p a label", 3),
    )

    def filters(self, filters: FiltersConfig) -> FiltersConfig:
        return dataclasses.replace(filters, rejected=None, **PAIRS_ONLY)

    def processors(self, pair: Pair, files: TextFiles, base: Package | None) -> dict[str, Any]:
        """The labels are those of a pre-trained classifier, or those of the corpus."""
        if base is not None and "labels" in base.processors:
            return {"text": pair[0], "labels": base.processors["labels"]}
        names = sorted({Labels([]).clean(line.target) for line in files.train()} - {""})
        if len(names) < 2:
            raise ValueError(
                f"data.target has {', '.join(names) or 'no labels'} and nothing else: a classifier needs two labels at least"
            )
        return {"text": pair[0], "labels": Labels(names)}

    def sizes(self, pair: Pair, base: Package | None) -> dict[str, int | None]:
        text, labels = pair
        ends = {"labels": len(labels), "first": text.special.first, "last": text.special.last}
        if base is not None and base.model.config.labels:
            return {}  # as it was trained
        return ends if base is not None else {"vocab_size": len(text), **ends}

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return ClassificationLoss(self.settings.label_smoothing)

    def validation(self, recipe: Any, prepared: Prepared) -> "ClassificationValidation":
        return ClassificationValidation(
            prepared.valid,
            prepared.processors["text"],
            prepared.processors["labels"],
            budget=recipe.training.valid_tokens,
            samples=recipe.training.samples,
        )

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        return {"labels": ", ".join(prepared.processors["labels"].names), **super().card_rows(recipe, prepared, facts)}


class ClassificationValidation:
    """Loss and accuracy of labels."""

    def __init__(self, lines: Sequence[Line], text: Any, labels: Labels, *, budget: int, samples: int):
        self.texts, self.expected = [line.source for line in lines], [labels.clean(line.target) for line in lines]
        self.text, self.labels, self.budget, self.size = text, labels, budget, len(lines)
        self.ids = text.encode(self.texts), [_label(line, labels) for line in lines]
        self.shown = sample_rows(len(lines), samples)

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        special = self.text.special, self.labels.special
        most = model.config.max_length - len(special[0].before)
        pairs = [(ids[: most - 1], label) for ids, label in zip(*self.ids, strict=True)]
        loss = mean_nll(
            model,
            ClassificationLoss(0.0),
            pairs,
            lambda own: collate_labelled(*zip(*own, strict=True), special),
            self.budget,
        )
        found = Classifier(model, self.text, self.labels.names).classify(self.texts, too_long="cut")
        right = sum(one.label == name for one, name in zip(found, self.expected, strict=True))
        samples = [(self.texts[i], self.expected[i], found[i].label) for i in self.shown]
        return ValidationResult({"loss": loss, "accuracy": 100 * right / max(1, self.size)}, samples)

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0  # their ends are cut off


def _label(line: Line, labels: Labels) -> list[int]:
    try:
        return labels.encode([line.target])[0]
    except ValueError as error:
        raise ValueError(f"validation, {line.location}: {error}") from None
