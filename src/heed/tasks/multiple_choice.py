"""Multiple choice: predict which of several continuations or answers is correct."""

from dataclasses import dataclass
from typing import Any

from heed.config import check_fraction, check_not_negative
from heed.data.labelled import Arrange, each_choice
from heed.data.prepare import TextFiles
from heed.data.tables import QuestionTable
from heed.models.abilities import ScoresChoices
from heed.models.package import Package
from heed.products.choice_model import ChoiceModel
from heed.tasks.base import Metric
from heed.tasks.text_losses import LabelLoss
from heed.tasks.text_understanding import TextUnderstanding
from heed.vocabularies.labels import Labels
from heed.vocabularies.text_parts import SEPARATOR


@dataclass(frozen=True)
class MultipleChoiceSettings:
    choices: int | None = None  # number of data.columns that are choices (default: all between the first and the last)
    first_choice: int = 0  # number of the first choice in the files, 0 or 1; letters start at A
    label_smoothing: float = 0.0  # label smoothing: probability mass spread over the choices
    lm_weight: float = 0.0  # weight of an auxiliary language-modelling loss on the same texts

    def __post_init__(self):
        check_fraction("task.label_smoothing", self.label_smoothing)
        check_not_negative("task.lm_weight", self.lm_weight)
        if self.choices is not None and self.choices < 2:
            raise ValueError(f"task.choices is {self.choices}; it must be at least 2")


class MultipleChoice(TextUnderstanding):
    name, title, example = "multiple-choice", "Multiple-choice model", "heed classify {} < questions.tsv"
    Settings, needs, products = MultipleChoiceSettings, ScoresChoices, (ChoiceModel,)
    best, unit = "accuracy", "questions"
    metrics = (
        Metric("accuracy", "accuracy", True, lambda: "per cent"),
        Metric("loss", "loss", False, lambda: "-log p per choice", 3),
    )

    @property
    def arrange(self) -> Arrange:
        return each_choice

    def table(self) -> QuestionTable:
        return QuestionTable(self.settings.choices, self.settings.first_choice)

    def reading_key(self) -> list[Any]:
        return [self.name, self.settings.choices, self.settings.first_choice]

    def inputs(self, labels: Labels) -> int:
        return len(labels)

    def _check_data(self, recipe: Any) -> None:
        super()._check_data(recipe)
        if any(one.source or one.target for one in recipe.data.parts) or recipe.data.valid_source:
            raise ValueError("data.source is set, but multiple choice needs tables: set data.tsv")

    def labels_of(self, files: TextFiles, base: Package | None) -> Labels:
        """The numbers of the choices, as in the files. Reading all of them checks that their number is the same
        everywhere.
        """
        counts = {line.source.count(SEPARATOR) for line in files.train()}
        first = self.settings.first_choice
        return Labels([str(first + i) for i in range(max(counts))])

    def head_sizes(self, labels: Labels) -> dict[str, Any]:
        return {"labels": 0, "choices": True, "head": "choice"}

    def task_loss(self, smoothing: float) -> LabelLoss:
        return LabelLoss(smoothing)
