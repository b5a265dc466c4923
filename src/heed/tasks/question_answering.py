"""Extractive question answering: find the span of a text that answers a question, or that there is none."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from heed.data import squad
from heed.data.answers import (
    LEAST_WINDOW,
    MAX_ANSWER,
    MAX_LENGTH,
    MAX_QUESTION,
    STRIDE,
    WindowSizes,
    answer_rows,
    collate_answers,
    question_inputs,
)
from heed.data.batching import LabelledBatch
from heed.data.labelled import NO_LABEL, PackedTexts, PackTexts
from heed.data.squad import Question, SquadConfig
from heed.evaluation.answering import answer_scores, best_threshold, measure
from heed.models.abilities import FindsAnswers
from heed.models.package import Package
from heed.nn.packing import padded_rows
from heed.products.answerer import Answerer, Answers, Logits
from heed.tasks.base import Metric, Objective, Prepared, ValidationResult
from heed.tasks.text_losses import PacksTexts
from heed.tasks.token_task import Examples, Row, TokenTask, hold_out
from heed.tasks.validation import sample_rows
from heed.training.loss import Loss
from heed.vocabularies.labels import Labels
from heed.vocabularies.sentencepiece import SubwordsConfig


@dataclass(frozen=True)
class AnsweringSettings:
    max_length: int | None = None  # window size in tokens, including the question and special ones (default: 384)
    stride: int = STRIDE  # overlap of two windows of a context, in subwords; at most half a window
    max_question: int = MAX_QUESTION  # maximum question length in subwords; longer ones are truncated and counted
    max_answer: int = MAX_ANSWER  # maximum answer length in subwords

    def __post_init__(self):
        for name, least in (("max_length", LEAST_WINDOW), ("stride", 0), ("max_question", 1), ("max_answer", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"task.{name} is {value}; it must be at least {least}")


class QuestionAnswering(TokenTask):
    name, title, unit = "question-answering", "Question-answering model", "questions"
    example = 'heed answer {} --context FILE "question"'
    Settings, needs, products = AnsweringSettings, FindsAnswers, (Answerer,)
    sections: ClassVar[Mapping[str, type]] = {"data": SquadConfig, "subwords": SubwordsConfig}
    collate, pack = staticmethod(collate_answers), PackTexts(collate_answers, empty=(0, 0))
    best = "f1"
    metrics = (
        Metric("exact", "exact match", True, lambda: "per cent, as SQuAD's script computes it"),
        Metric("f1", "F1", True, lambda: "of words, as SQuAD's script computes it; times 100"),
        Metric("loss", "loss", False, lambda: "-log p of the beginning and of the end, on average", 3),
    )
    counted: ClassVar[Mapping[str, str]] = {
        "misaligned": "skipped because the answer is not at the stated position (data.misaligned)",
        "unread": "skipped because the answer cannot be encoded",
        "cut": "truncated to task.max_question subwords, or to half of a window",
        "split": "with a context in several windows (task.max_length)",
        "unanswerable": "without an answer",
    }

    # data

    def window(self, positions: int) -> int:
        return super().window(positions) if self.settings.max_length is not None else min(MAX_LENGTH, positions)

    def _window_sizes(self, longest: int) -> WindowSizes:
        return WindowSizes(longest, self.settings.stride, self.settings.max_question)

    def read(self, recipe: Any, base: Package | None) -> Examples:
        data = recipe.data
        train, valid = (
            [(_checked(one, path), path) for path in own for one in squad.read(Path(path))]
            for own in (data.train, data.valid)
        )
        wrong = [(path, own) for one, path in train if (own := one.misaligned)]
        if wrong and data.misaligned == "refuse":
            raise ValueError(
                f"{', '.join(wrong[0])}; fix it, or set data.misaligned to 'leave out' (such questions: {len(wrong):,})"
            )
        if len(wrong) == len(train):
            raise ValueError(
                f"{', '.join(wrong[0])}; it is the same with all {len(wrong):,} training questions: fix answer_start, which "
                "counts the characters of the context before the answer"
            )
        note = f"Skipped, for example: {Path(wrong[0][0]).name}, {wrong[0][1]}." if wrong else ""
        train, valid = [one for one, _ in train if not one.misaligned], [one for one, _ in valid]
        if not data.valid:
            groups = [list(own) for _, own in groupby(train, lambda one: one.context)]
            train, valid = hold_out(groups, data.holdout, skipped=len(wrong))
        return Examples(train, valid, Counter(misaligned=len(wrong)), note)

    def texts(self, examples: Sequence[Question]) -> Iterator[str]:
        for context, own in groupby(examples, lambda one: one.context):
            yield context
            yield from (one.text for one in own)

    def reading_key(self, recipe: Any) -> list[Any]:
        return [0 if recipe.data.valid else recipe.data.holdout]

    def row_settings(self) -> list[Any]:
        return [self.settings.stride, self.settings.max_question]

    def labels_of(self, examples: Examples, base: Package | None) -> dict[str, Labels]:
        return {}

    def head_sizes(self, processors: Mapping[str, Any]) -> dict[str, Any]:
        return {"head": "answer", "labels": 0}

    def rows(self, examples: Examples, processors: Mapping[str, Any], longest: int, counts: Counter) -> Iterator[Row]:
        text, pairs = processors["text"], [(one.text, one.context) for one in examples.train]
        inputs = question_inputs(pairs, text, text.special, self._window_sizes(longest))
        counts["examples"] = 0
        for question, own in zip(examples.train, inputs, strict=True):
            found = [own.answer(start, start + len(one)) for one, start in question.answers[:1]]
            if None in found:
                counts["unread"] += 1
                continue
            counts["examples"] += 1
            counts["unanswerable"] += not question.answers
            counts["cut"] += own.cut
            counts["split"] += len(own.windows) > 1
            yield from answer_rows(own, question, text.special)

    # training

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return AnswerLoss()

    def validation(self, recipe: Any, prepared: Prepared) -> "AnsweringValidation":
        unanswerable = bool(prepared.train.facts["counts"].get("unanswerable")) or squad.has_unanswerable(
            prepared.valid
        )

        def product(model: nn.Module) -> Answerer:
            sizes = self._window_sizes(self.window(model.config.max_length))
            return Answerer(model, prepared.processors["text"], sizes, self.settings.max_answer)

        return AnsweringValidation(
            prepared.valid,
            product,
            unanswerable,
            budget=recipe.training.valid_tokens,
            samples=recipe.training.samples,
        )

    def notes(self, recipe: Any, prepared: Prepared, validation: Any, max_length: int) -> list[str]:
        found, wrong = super().notes(recipe, prepared, validation, max_length), squad.misaligned_answers(prepared.valid)
        return (
            [*found, f"Validation: {wrong}; they count towards the scores, not towards the loss."] if wrong else found
        )

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        names = ("stride", "max_question", "max_answer")
        own = {name: getattr(self.settings, name) for name in names}
        return {"max_length": MAX_LENGTH} | super().facts(recipe, prepared, base) | own


def _checked(question: Question, path: str) -> Question:
    if not question.answered:
        raise ValueError(
            f"{path}, question {question.id} has no answers: it comes from a test set, which cannot be trained on"
        )
    return question


class AnswerLoss(PacksTexts):
    """The mean cross entropy of the first and the last token of the answer."""

    def __call__(self, model: FindsAnswers, batch: LabelledBatch | PackedTexts) -> Loss:
        logits = model.find_answer(*batch.inputs)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if isinstance(batch, PackedTexts):
            logits = padded_rows(logits, batch.valid, torch.finfo(logits.dtype).min)
        else:
            logits = logits.masked_fill(~batch.valid[..., None], -torch.inf)
        logp = logits.log_softmax(dim=1).gather(1, batch.labels.clamp(min=0)[:, None])[:, 0]
        nll = -logp.where(batch.labels != NO_LABEL, 0.0).sum() / 2
        return Loss(nll, nll.detach(), batch.count)


class AnsweringValidation:
    """The loss and the scores of answers. If questions may be unanswerable, the threshold is the one with the best F1
    here.
    """

    def __init__(self, questions: Sequence[Question], product: Any, unanswerable: bool, *, budget: int, samples: int):
        self.questions, self.product, self.unanswerable = questions, product, unanswerable
        self.expected = [[answer.text for answer in one.answers] for one in questions]
        self.answerable = np.array([bool(own) for own in self.expected], dtype=bool)
        self.budget, self.size, self.shown = budget, len(questions), sample_rows(len(questions), samples)

    def run(self, model: nn.Module) -> ValidationResult:
        answers, loss = self._answers(model)
        found = [own.text for own in answers]
        if self.unanswerable:
            limit = self._threshold(answers)
            found = ["" if own.difference > limit else own.text for own in answers]
        scores = {**measure(answer_scores(found, self.expected), self.answerable), "loss": loss}
        samples = [(self.questions[i].text, (self.expected[i] or ["(no answer)"])[0], found[i]) for i in self.shown]
        return ValidationResult(scores, samples)

    def _threshold(self, answers: Sequence[Answers]) -> float:
        texts = [own.text for own in answers]
        f1 = answer_scores(texts, self.expected)[:, 1]
        differences = np.array([own.difference for own in answers])
        return best_threshold(differences, f1, self.answerable, np.array([bool(text) for text in texts], dtype=bool))

    def _answers(self, model: nn.Module) -> tuple[list[Answers], float]:
        """The best answer with text to each question, and the loss of a window."""
        model.eval()
        product = self.product(model)
        inputs = product.inputs([(one.text, one.context) for one in self.questions])
        logits, special = product.logits(inputs, self.budget), product.vocabulary.special
        found, nll, windows = [], 0.0, 0
        for question, own, rows in zip(self.questions, inputs, logits, strict=True):
            found.append(product.best(question.context, own, rows, 1, None))
            if not question.misaligned:
                targets = [target for _, target in answer_rows(own, question, special)]
                nll += sum(_nll(each, target) for each, target in zip(rows, targets, strict=True))
                windows += len(rows)
        return found, nll / max(1, windows)

    def facts(self, model: nn.Module) -> dict[str, Any]:
        """The threshold belongs to these weights, so it is measured on them."""
        return {"no_answer_threshold": self._threshold(self._answers(model)[0])} if self.unanswerable else {}

    def too_long(self, max_length: int) -> int:
        return 0  # they are read in windows


def _nll(logits: Logits, target: Sequence[int]) -> float:
    logp = logits - np.logaddexp.reduce(logits, axis=0)
    return -float(logp[target[0], 0] + logp[target[1], 1]) / 2
