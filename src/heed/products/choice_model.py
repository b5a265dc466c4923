"""A question with its choices in; one of them out."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from heed.data import tables
from heed.data.labelled import each_choice
from heed.evaluation import classification as scores
from heed.products.classifier import Classifier, Text, count_parts
from heed.vocabularies.labels import parse_choice
from heed.vocabularies.text_parts import SEPARATOR


class ChoiceModel(Classifier):
    """A model that chooses among the answers to a question: each text is a context and its choices.

    Where a folder does not say how many choices there are, the texts do.
    """

    noun, arrange, in_any_chunks = "a multiple-choice model", staticmethod(each_choice), False

    def table(self) -> tables.QuestionTable:
        return tables.QuestionTable(self.facts.get("choices"), self.facts.get("first_choice", 0))

    def parts(self, cells: Sequence[tables.Cell], where: str) -> list[str]:
        context, choices = self.table().split(cells, where)
        return [context, *choices]

    def joined(self, line: str) -> str:
        return line.replace("\t", SEPARATOR)

    def measure(self, found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        return scores.choice_scores(found, expected)

    def answers(self) -> Callable[[str], float]:
        return super().answers() if self.labels else parse_choice

    def names(self, count: int) -> list[str]:
        return self.labels or [str(number) for number in range(count)]

    def _split(self, texts: Sequence[Text], before: int = 0) -> list[list[str]]:
        found = super()._split(texts, before)
        for number, own in enumerate(found, 1):
            if len(own) != len(found[0]):
                raise ValueError(
                    f"text {number} has {len(own) - 1} choices, but text 1 has {len(found[0]) - 1}: every question "
                    "must have the same number"
                )
        return found

    def _check_parts(self, parts: Sequence[str], number: int) -> None:
        if self.labels and len(parts) - 1 != len(self.labels):
            raise ValueError(
                f"text {number} has {len(parts) - 1} choices, but the model was trained with {len(self.labels)}: give "
                "the context and each choice, separated by tabs"
            )
        if len(parts) < 3:
            raise ValueError(
                f"text {number} has {count_parts(len(parts))}: give the context and at least two choices, separated by tabs"
            )

    @staticmethod
    def combine(logits: Float[Tensor, "n inputs 1"]) -> Float[Tensor, "n inputs"]:
        return logits[:, :, 0]
