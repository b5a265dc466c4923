"""Shared by classification, regression and multiple choice."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from heed.data.batching import DataPosition
from heed.data.filters import PAIRS_ONLY, FiltersConfig
from heed.data.labelled import Arrange, CollateTexts, PackTexts, as_given, both_orders, longest_input, planner
from heed.data.prepare import TextFiles
from heed.data.readers import Line
from heed.models.abilities import ClassifiesStates, ClassifiesText
from heed.models.package import Package
from heed.products.classifier import Classifier
from heed.tasks.base import Objective, Prepared, ValidationResult
from heed.tasks.text import TextTask
from heed.tasks.text_losses import PackedTextLoss, TextLoss
from heed.tasks.validation import sample_rows
from heed.training.loss import Loss
from heed.vocabularies.text_parts import SEPARATOR, InputTokens, TextParts, plain
from heed.vocabularies.vocabulary import Pair, Vocabulary


class TextUnderstanding(TextTask):
    """A text in parts, and its label, number or choice."""

    needs, label_target, whole_texts, long_validation = ClassifiesText, True, True, "cut"
    products: ClassVar[tuple[type[Classifier], ...]]

    # what differs

    def labels_of(self, files: TextFiles, base: Package | None) -> Vocabulary:
        """The possible labels."""
        raise NotImplementedError

    def head_sizes(self, labels: Any) -> dict[str, Any]:
        """The fields of a model's config that determine its head."""
        raise NotImplementedError

    def task_loss(self, smoothing: float) -> Callable[[Any, Any], Loss]:
        raise NotImplementedError

    @property
    def arrange(self) -> Arrange:
        return both_orders if getattr(self.settings, "both_orders", False) else as_given

    @property
    def collate(self) -> CollateTexts:
        return CollateTexts(self.arrange)

    @property
    def pack(self) -> PackTexts:
        return PackTexts(self.collate)

    def inputs(self, labels: Any) -> int:
        """How many inputs the model reads for one text."""
        return 2 if self.arrange is both_orders else 1

    # checks

    def check(self, recipe: Any) -> None:
        super().check(recipe)
        if not recipe.model.folder:
            system = recipe.model.system
            self._check_model(f"a {system.title}", system.model)

    def check_base(self, recipe: Any, base: Package) -> None:
        super().check_base(recipe, base)
        self._check_model(recipe.model.folder, type(base.model))

    def _check_model(self, name: str, model: type) -> None:
        if self.settings.lm_weight and not issubclass(model, ClassifiesStates):
            raise ValueError(
                f"task.lm_weight is {self.settings.lm_weight}, but {name} is not a language model: set it to 0"
            )

    def _check_columns(self, recipe: Any) -> None:
        counts = {text_count(own) for own in recipe.data.parts} if not recipe.data.phrasebook else {1}
        if len(counts) > 1:
            raise ValueError(
                f"data.corpora: texts have {sorted(counts)} parts; all corpora must have the same number of columns"
            )
        if self.arrange is both_orders and counts != {2}:
            raise ValueError(
                "task.both_orders is true, but there is only one text: set two text columns and one label column in "
                "data.columns"
            )

    # data

    def filters(self, filters: FiltersConfig) -> FiltersConfig:
        return dataclasses.replace(filters, rejected=None, **PAIRS_ONLY)

    def processors(self, recipe: Any, pair: Pair, files: TextFiles, base: Package | None) -> dict[str, Any]:
        text, parts = text_input(pair[0], base, bool(recipe.model.prompt)), self._facts(recipe)["texts"]
        return {"text": text if parts > 1 else text.of_one_part(), "labels": self.labels_of(files, base)}

    def sizes(self, pair: Pair, base: Package | None) -> dict[str, int | None]:
        text, labels = pair
        if base is not None and base.task == self.name and self._has_head(base, labels):
            return {}  # as it was trained
        ends = {**self.head_sizes(labels), "first": text.special.first, "last": text.special.last}
        return {"vocab_size": max(len(text), base.model.config.vocab_size if base is not None else 0), **ends}

    def _has_head(self, base: Package, labels: Any) -> bool:
        own = self.head_sizes(labels)
        return all(getattr(base.model.config, name, value) == value for name, value in own.items())

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        grouping = planner(plan.grouping, self.inputs(prepared.processors["labels"]))
        return super().batches(recipe, prepared, plan._replace(grouping=grouping), share, position)

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        smoothing, labels = getattr(self.settings, "label_smoothing", 0.0), prepared.processors["labels"]
        combine, inputs, weight = self.products[0].combine, self.inputs(labels), self.settings.lm_weight
        kind = PackedTextLoss if inputs == 1 and not weight else TextLoss
        return kind(self.task_loss(smoothing), combine, inputs, weight)

    def validation(self, recipe: Any, prepared: Prepared) -> "UnderstandingValidation":
        text, labels = prepared.processors["text"], prepared.processors["labels"]
        names, facts = getattr(labels, "names", ()), self._facts(recipe)
        return UnderstandingValidation(
            prepared.valid,
            labels,
            lambda model: self.products[0](model, text, names, facts=facts),
            self.task_loss(0.0),
            text,
            self.arrange,
            budget=recipe.training.valid_tokens,
            samples=recipe.training.samples,
        )

    def _facts(self, recipe: Any) -> dict[str, Any]:
        """What a folder records about how texts are read, and their columns in the files."""
        one, settings = recipe.data.parts[0] if not recipe.data.phrasebook else None, self.settings
        found: dict[str, Any] = {"texts": text_count(one) if one else 1}
        if one is not None and one.tsv:
            found["columns"] = list(one.columns)
        names = ("both_orders", "choices", "first_choice")
        return found | {name: getattr(settings, name) for name in names if hasattr(settings, name)}

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        found = {**super().facts(recipe, prepared, base), **self._facts(recipe)}
        return {name: value for name, value in found.items() if name != "max_source"}  # texts are not split


def text_count(corpus: Any) -> int:
    """How many parts the texts of a corpus have: all columns of its tables but the last."""
    return len(corpus.columns) - 1 if corpus.tsv else 1


def text_input(vocabulary: Vocabulary, base: Package | None, frozen: bool) -> TextParts:
    """The special tokens of texts: those of the vocabulary, else three tokens, which are new unless the model is
    `frozen`.
    """
    if isinstance(vocabulary, TextParts):
        return vocabulary
    special = vocabulary.special
    if special.delimiter:
        return TextParts(vocabulary)
    if frozen:
        return TextParts(vocabulary, InputTokens(special.first, special.last, special.last))
    start = len(vocabulary) if base is None else base.model.config.vocab_size
    return TextParts(vocabulary, InputTokens(start, start + 1, start + 2))


class UnderstandingValidation:
    """The loss and scores of predictions. Texts too long for the model are truncated."""

    def __init__(
        self,
        lines: Sequence[Line],
        labels: Any,
        product: Callable[[nn.Module], Classifier],
        loss: Callable[[Any, Any], Loss],
        vocabulary: Vocabulary,
        arrange: Arrange = as_given,
        *,
        budget: int,
        samples: int,
    ):
        self.vocabulary, self.arrange = vocabulary, arrange
        self.texts, self.names = [line.source for line in lines], [labels.clean(line.target) for line in lines]
        for line in lines:
            _check_label(line, labels)
        self.product, self.loss, self.budget, self.size = product, loss, budget, len(lines)
        self.shown = sample_rows(len(lines), samples)

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        product = self.product(model)
        outputs = product.outputs(self.texts, batch_tokens=self.budget, too_long="cut")
        expected = product.expected(self.names)
        loss = self.loss(outputs, torch.from_numpy(np.asarray(expected))).nll.item() / max(1, self.size)
        scores = {**product.measure(product.predictions(outputs), expected), "loss": loss}
        told = product.labelling([self.texts[i] for i in self.shown], outputs[self.shown])
        samples = [(one.text, self.names[i], one.label) for i, one in zip(self.shown, told, strict=True)]
        return ValidationResult(scores, samples)

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        special, split = self.vocabulary.special, [text.split(SEPARATOR) for text in self.texts]
        encoded = iter(plain(self.vocabulary).encode([part for own in split for part in own]))
        inputs = [self.arrange([next(encoded) for _ in own]) for own in split]
        room = max_length - len(special.before) - 1
        return sum(longest_input(own, len(special.delimiter)) > room for own in inputs)


def _check_label(line: Line, labels: Any) -> None:
    try:
        labels.encode([line.target])
    except ValueError as error:
        raise ValueError(f"validation, {line.location}: {error}") from None
