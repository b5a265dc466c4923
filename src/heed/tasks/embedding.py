"""Sentence embeddings: vectors whose cosines measure similarity (Reimers and Gurevych, 2019)."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from heed.data import tables
from heed.data.batching import DataPosition, plan_packed
from heed.data.filters import PAIRS_ONLY, FiltersConfig
from heed.data.prepare import TableReader, TextFiles
from heed.data.readers import Line
from heed.data.text_pairs import CollatePairs, pair_table
from heed.evaluation.classification import spearman
from heed.evaluation.retrieval import nearest_rows, ranks, retrieval_scores
from heed.files import check_file
from heed.models.abilities import EncodesText
from heed.models.package import Package
from heed.products.embedder import Embedder
from heed.tasks.base import Metric, Objective, Prepared, ValidationResult
from heed.tasks.contrastive_loss import ContrastiveLoss
from heed.tasks.text import TextTask
from heed.tasks.validation import sample_rows
from heed.vocabularies.labels import parse_number
from heed.vocabularies.text_parts import SEPARATOR, TextParts, plain
from heed.vocabularies.vocabulary import Pair, Vocabulary

Scored = tuple[list[str], list[str], np.ndarray]  # two texts, and how similar people find them


@dataclass(frozen=True)
class EmbeddingSettings:
    pooling: Literal["mean", "cls", "max"] = "mean"  # how states are pooled into a vector
    normalize: bool = True  # normalize vectors to length 1 (applies to the trained model)
    scale: float = 20.0  # cosine similarities are multiplied by this: 1 / temperature
    both_directions: bool = True  # symmetric loss: also match the first text of a pair against all first texts
    scored: list[str] = field(
        default_factory=list
    )  # tables of two texts and a score, such as STS-B, for Spearman's correlation
    scored_columns: list[int | str] = field(
        default_factory=lambda: [1, 2, 3]
    )  # columns of task.scored: two texts and a number

    def __post_init__(self):
        if not self.scale > 0:
            raise ValueError(f"task.scale is {self.scale}; it must be above 0")
        if len(self.scored_columns) != 3:
            raise ValueError(
                f"task.scored_columns is {self.scored_columns}; it must be three columns: two texts and a number"
            )


class Embedding(TextTask):
    name, title, example = "embedding", "Embedding model", "heed embed {} --input texts.txt --out vectors.npy"
    Settings, needs, products, best = EmbeddingSettings, EncodesText, (Embedder,), "mrr"
    long_validation = "cut"
    metrics = (
        Metric("recall@1", "recall@1", True, lambda: "per cent: how often the right text is the nearest of all"),
        Metric("mrr", "MRR", True, lambda: "mean of 1 / rank of the right text among all, times 100"),
        Metric("spearman", "Spearman", True, lambda: "of the cosines with task.scored, times 100"),
        Metric("loss", "loss", False, lambda: "-log p of the right text among all", 3),
    )

    # checks

    def check(self, recipe: Any) -> None:
        super().check(recipe)
        if recipe.training.metric == "spearman" and not self.settings.scored:
            raise ValueError("training.metric is 'spearman', but there are no scored pairs: set task.scored")
        for path in self.settings.scored:
            check_file(Path(path), "task.scored: ")

    def _check_columns(self, recipe: Any) -> None:
        counts = {_columns(own) for own in recipe.data.parts} if not recipe.data.phrasebook else {2}
        if len(counts) > 1:
            raise ValueError(
                f"data.corpora: tables have {sorted(counts)} columns; all corpora must have the same number"
            )

    # data

    def filters(self, filters: FiltersConfig) -> FiltersConfig:
        return dataclasses.replace(filters, rejected=None, **PAIRS_ONLY)

    def table(self) -> TableReader:
        return pair_table

    def reading_key(self) -> list[Any]:
        return [self.name]

    def processors(self, recipe: Any, pair: Pair, files: TextFiles, base: Package | None) -> dict[str, Vocabulary]:
        text = TextParts(plain(pair[0])).of_one_part()
        return {"text": text, "target": text}

    def sizes(self, pair: Pair, base: Package | None) -> dict[str, Any]:
        size = {} if base is not None else {"vocab_size": len(pair[0])}
        return {**size, "head": "none", "labels": 0}

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        if share[1] > 1:
            raise ValueError(
                "embedding training needs a single process: the negatives of a pair are the other pairs of its batch, "
                "so splitting a batch would change the loss"
            )
        columns = _columns(recipe.data.parts[0]) if not recipe.data.phrasebook else 2
        collate = CollatePairs(columns, packed=plan.grouping is plan_packed)
        return super().batches(recipe, prepared, plan._replace(collate=collate), share, position)

    # training

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return ContrastiveLoss(self.settings.pooling, self.settings.scale, self.settings.both_directions)

    def validation(self, recipe: Any, prepared: Prepared) -> "EmbeddingValidation":
        text, s = prepared.processors["text"], self.settings
        return EmbeddingValidation(
            prepared.valid,
            lambda model: Embedder(model, text, s.pooling, s.normalize),
            self.objective(prepared),
            read_scored(s.scored, s.scored_columns),
            text,
            budget=recipe.training.valid_tokens,
            samples=recipe.training.samples,
        )

    # records

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        found = super().facts(recipe, prepared, base)
        found = {name: value for name, value in found.items() if name not in ("decoding", "max_source")}
        return {**found, "pooling": self.settings.pooling, "normalize": self.settings.normalize}


def _columns(corpus: Any) -> int:
    """How many texts each example of a corpus has: two, or more with negatives."""
    return len(corpus.columns) if corpus.tsv else 2


def read_scored(paths: Sequence[str], columns: Sequence[int | str]) -> Scored | None:
    """Pairs of texts with scores; None if no file is given."""
    found: list[tuple[str, str, float]] = []
    for path in map(Path, paths):
        for number, (one, other, score) in tables.rows(path, columns):
            try:
                found.append((str(one), str(other), parse_number(str(score))))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}; a line must have two texts and a number") from None
    if not found:
        return None
    first, second, numbers = zip(*found, strict=True)
    return list(first), list(second), np.array(numbers)


class EmbeddingValidation:
    """How well the second text of each pair is retrieved among all second texts. Texts too long for the model are
    truncated.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        product: Any,
        loss: ContrastiveLoss,
        scored: Scored | None,
        vocabulary: Vocabulary,
        *,
        budget: int,
        samples: int,
    ):
        self.one = [line.source for line in lines]
        self.other = [line.target.split(SEPARATOR)[0] for line in lines]  # negatives are of training alone
        self.product, self.loss, self.scored, self.vocabulary, self.budget = product, loss, scored, vocabulary, budget
        self.size, self.shown = len(lines), sample_rows(len(lines), samples)

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        embedder, options = self.product(model), {"batch_tokens": self.budget, "too_long": "cut"}
        queries, targets = (embedder.embed(texts, **options) for texts in (self.one, self.other))
        scores = {**retrieval_scores(ranks(queries, targets, self.other)), "loss": self._loss(queries, targets)}
        if self.scored is not None:
            one, other, expected = self.scored
            scores["spearman"] = spearman(embedder.similarity(one, other, **options), expected)
        nearest = nearest_rows(queries[self.shown], targets, 1)[0]
        samples = [(self.one[i], self.other[i], self.other[row[0]]) for i, row in zip(self.shown, nearest, strict=True)]
        return ValidationResult(scores, samples)

    def _loss(self, queries: np.ndarray, targets: np.ndarray) -> float:
        numbers: dict[str, int] = {}
        kinds = torch.tensor([numbers.setdefault(text, len(numbers)) for text in [*self.one, *self.other]])
        vectors = torch.from_numpy(np.concatenate([queries, targets]))
        return float(self.loss.of_vectors(vectors, kinds, 2)) / max(1, self.size)

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        room = max_length - len(self.vocabulary.special.before) - 1
        found = (plain(self.vocabulary).encode(texts) for texts in (self.one, self.other))
        return sum(max(map(len, pair)) > room for pair in zip(*found, strict=True))
