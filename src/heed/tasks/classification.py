"""Text classification: predict the label of a text or a pair of texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heed.config import check_fraction, check_not_negative
from heed.data.prepare import TextFiles
from heed.models.package import Package
from heed.products.classifier import Classifier
from heed.tasks.base import Metric, Prepared
from heed.tasks.text_losses import LabelLoss
from heed.tasks.text_understanding import TextUnderstanding
from heed.vocabularies.labels import Labels


@dataclass(frozen=True)
class ClassificationSettings:
    label_smoothing: float = 0.1  # label smoothing: probability mass spread over the labels
    both_orders: bool = False  # encode a pair of texts in both orders and add the results, for similarity
    lm_weight: float = 0.0  # weight of an auxiliary language-modelling loss on the same texts; GPT uses 0.5

    def __post_init__(self):
        check_fraction("task.label_smoothing", self.label_smoothing)
        check_not_negative("task.lm_weight", self.lm_weight)


class Classification(TextUnderstanding):
    name, title, example = "classification", "Classifier", "heed classify {} < text"
    Settings, products, best = ClassificationSettings, (Classifier,), "accuracy"
    metrics = (
        Metric("accuracy", "accuracy", True, lambda: "per cent"),
        Metric("f1", "F1", True, lambda: "of two labels, that of the second; else the mean of all; times 100"),
        Metric("matthews", "Matthews", True, lambda: "correlation, times 100"),
        Metric("loss", "loss", False, lambda: "-log p per label", 3),
    )

    def labels_of(self, files: TextFiles, base: Package | None) -> Labels:
        """The labels of a pre-trained classifier, or those of the corpus."""
        if base is not None and "labels" in base.processors:
            return base.processors["labels"]
        names = sorted({Labels([]).clean(line.target) for line in files.train()} - {""})
        if len(names) < 2:
            raise ValueError(
                f"data.target has only {', '.join(names) or 'no labels'}: a classifier needs at least two labels"
            )
        return Labels(names)

    def head_sizes(self, labels: Labels) -> dict[str, Any]:
        return {"labels": len(labels), "choices": False, "head": "classification"}

    def task_loss(self, smoothing: float) -> LabelLoss:
        return LabelLoss(smoothing)

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        return {"labels": ", ".join(prepared.processors["labels"].names), **super().card_rows(recipe, prepared, facts)}
