"""Regression: predict a number for a text or a pair of texts, such as their similarity."""

from dataclasses import dataclass
from typing import Any

from heed.config import check_not_negative
from heed.data.labelled import CollateTexts
from heed.data.prepare import TextFiles
from heed.models.package import Package
from heed.products.classifier import Regressor
from heed.tasks.base import Metric
from heed.tasks.text_losses import squared_error
from heed.tasks.text_understanding import TextUnderstanding
from heed.vocabularies.labels import Numbers, parse_number


@dataclass(frozen=True)
class RegressionSettings:
    both_orders: bool = False  # encode a pair of texts in both orders and add the results, for similarity
    lm_weight: float = 0.0  # weight of an auxiliary language-modelling loss on the same texts; GPT uses 0.5

    def __post_init__(self):
        check_not_negative("task.lm_weight", self.lm_weight)


class Regression(TextUnderstanding):
    name, title, example = "regression", "Regression model", "heed classify {} < text"
    Settings, products, best = RegressionSettings, (Regressor,), "pearson"
    metrics = (
        Metric("pearson", "Pearson", True, lambda: "correlation, times 100"),
        Metric("spearman", "Spearman", True, lambda: "correlation of ranks, times 100"),
        Metric("loss", "loss", False, lambda: "squared error", 3),
    )

    @property
    def collate(self) -> CollateTexts:
        return CollateTexts(self.arrange, numbers=True)

    def labels_of(self, files: TextFiles, base: Package | None) -> Numbers:
        for line in files.train():
            try:
                parse_number(line.target or "0")  # an empty one is filtered, and counted
            except ValueError as error:
                raise ValueError(f"{line.location}: {error}, and regression needs numbers") from None
        return Numbers()

    def head_sizes(self, labels: Numbers) -> dict[str, Any]:
        return {"labels": 1, "choices": False, "head": "classification"}

    def task_loss(self, smoothing: float) -> Any:
        return squared_error
