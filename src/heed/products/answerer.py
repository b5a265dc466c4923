"""Question answering: questions and contexts in, answer spans out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from heed.data.answers import LEAST_WINDOW, MAX_ANSWER, MAX_LENGTH, QuestionInput, WindowSizes, question_inputs
from heed.data.batching import text_inputs
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.nn.capabilities import declares
from heed.products.product import Product, aligned_vocabulary, in_batches, single
from heed.vocabularies.vocabulary import Vocabulary, trim_span

Logits = Float[np.ndarray, "_ 2"]  # of each token of being the first and the last of the answer


@dataclass(frozen=True)
class FoundAnswer:
    """An answer with its character offsets in the context, its score and its probability; an empty text means no
    answer.
    """

    text: str
    start: int | None
    end: int | None
    score: float
    probability: float


@dataclass(frozen=True)
class Answers:
    """The best answers, best first, and the score of no answer minus that of the best answer with text."""

    best: list[FoundAnswer]
    difference: float
    windows: int
    cut: bool  # whether the question was, since it is too long

    @property
    def text(self) -> str:
        return self.best[0].text if self.best else ""


class Answerer(Product):
    """An extractive question-answering model. A context too long for the model is read in windows. `threshold`: give
    no answer if its score exceeds the best answer's by more; None: always answer.
    """

    noun, verbs, reads = "a question-answering model", ("answer", "evaluate"), ("text",)

    def __init__(
        self,
        model: nn.Module,
        vocabulary: Vocabulary,
        sizes: WindowSizes | None = None,
        max_answer: int = MAX_ANSWER,
        threshold: float | None = None,
        facts: Mapping[str, Any] | None = None,
    ):
        self.model, self.facts, self.vocabulary = model, facts or {}, aligned_vocabulary(vocabulary)
        sizes, most = sizes or WindowSizes(usual_window(model)), model.config.max_length
        self.sizes = sizes._replace(max_length=min(sizes.max_length, most))
        self.max_answer, self.threshold = min(max_answer, most), threshold

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "Answerer":
        own = single(packages, names, cls.noun)
        facts = own.facts
        longest = MAX_LENGTH if "stride" in facts else usual_window(own.model)  # earlier versions wrote no max_length
        sizes = {"max_length": longest} | {name: facts[name] for name in WindowSizes._fields if name in facts}
        return cls(
            own.model,
            own.processors["text"],
            WindowSizes(**sizes),
            facts.get("max_answer", MAX_ANSWER),
            facts.get("no_answer_threshold"),
            facts,
        )

    def use_windows(self, window: int | None = None, stride: int | None = None) -> None:
        """Read contexts in windows of other sizes: `window` tokens, with the question and special tokens, of which two
        neighbours share `stride`.
        """
        most = self.model.config.max_length
        if window is not None and not LEAST_WINDOW <= window <= most:
            raise ValueError(
                f"window is {window}; it must be at least {LEAST_WINDOW}, and at most {most}, the positions of the model"
            )
        window = window or self.sizes.max_length
        if stride is not None and not 0 <= stride <= window // 2:
            raise ValueError(f"stride is {stride}; it must be at least 0, and at most {window // 2}, half of a window")
        self.sizes = self.sizes._replace(max_length=window, stride=self.sizes.stride if stride is None else stride)

    @property
    def longest_question(self) -> int:
        """How many subwords of a question are read."""
        return self.sizes.longest_question(self.vocabulary.special)

    def answer(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        n: int = 1,
        threshold: float | None = None,
        batch_tokens: int = 4096,
    ) -> list[Answers]:
        """The `n` best answers to each question in its context. `threshold` overrides the model's own."""
        inputs = self.inputs(pairs := list(pairs))
        return self.finish(pairs, inputs, self.logits(inputs, batch_tokens), n, threshold)

    def finish(
        self,
        pairs: Sequence[tuple[str, str]],
        inputs: Sequence[QuestionInput],
        logits: Sequence[Sequence[Logits]],
        n: int = 1,
        threshold: float | None = None,
    ) -> list[Answers]:
        """The third of three stages, after `inputs` and `logits`: the best answers."""
        limit = self.threshold if threshold is None else threshold
        each = zip(pairs, inputs, logits, strict=True)
        return [self.best(context, own, rows, n, limit) for (_, context), own, rows in each]

    def inputs(self, pairs: Sequence[tuple[str, str]]) -> list[QuestionInput]:
        """The first stage: subwords, in windows."""
        return list(question_inputs(pairs, self.vocabulary, self.vocabulary.special, self.sizes))

    def logits(self, inputs: Sequence[QuestionInput], batch_tokens: int = 4096) -> list[list[Logits]]:
        """The second stage: the logits of every window of every question, special tokens included."""
        special = self.vocabulary.special
        rows = [own.ids(window, special) for own in inputs for window in own.windows]
        found = iter(in_batches(self._logits, rows, [len(ids) + 2 for ids in rows], batch_tokens))
        return [[next(found) for _ in own.windows] for own in inputs]

    @torch.inference_mode()
    def _logits(self, rows: list[list[int]]) -> list[Logits]:
        device = next(self.model.parameters()).device
        parts = [part.to(device) for part in text_inputs(rows, self.vocabulary.special)]
        logits: Tensor = self.model.find_answer(*parts).double().cpu()
        check_outputs(logits, infinite=True)  # where no answer may be
        return [own[: int(size)].numpy() for own, size in zip(logits, parts[1].sum(dim=1), strict=True)]

    def best(
        self, context: str, own: QuestionInput, logits: Sequence[Logits], n: int, threshold: float | None
    ) -> Answers:
        """The best answers according to these logits. Probabilities are over all possible answers."""
        scores, none = self._span_scores(own, logits), min(float(rows[0].sum()) for rows in logits)
        able = threshold is not None
        total = np.logaddexp.reduce(np.append(scores.ravel(), none if able else -np.inf))
        found, seen = [], set()
        for place in _largest(scores.ravel(), n + self.max_answer):  # more than n, since some are the same text
            if len(found) == n:
                break
            first, length = divmod(place, scores.shape[1])
            start, end = trim_span(context, own.context.spans[first][0], own.context.spans[first + length][1])
            if start < end and (start, end) not in seen:
                seen.add((start, end))
                score = float(scores[first, length])
                found.append(FoundAnswer(context[start:end], start, end, score, float(np.exp(score - total))))
        difference = none - (found[0].score if found else -np.inf)
        if able:
            nothing = FoundAnswer("", None, None, none, float(np.exp(none - total)))
            place = 0 if difference > threshold else max(1, sum(one.score >= none for one in found))
            found.insert(place, nothing)
        return Answers(found[:n], float(difference), len(own.windows), own.cut)

    def _span_scores(self, own: QuestionInput, logits: Sequence[Logits]) -> Float[np.ndarray, "context longest"]:
        """The score of each answer by its first token and its length minus one; the best over windows."""
        size, offset = len(own.context.ids), own.offset(self.vocabulary.special)
        scores = np.full((size, self.max_answer), -np.inf)
        for (start, end), rows in zip(own.windows, logits, strict=True):
            first, last = rows[offset : offset + end - start].T
            for more in range(min(self.max_answer, end - start)):
                place = scores[start : end - more, more]
                np.maximum(place, first[: end - start - more] + last[more:], out=place)
        return scores


def usual_window(model: nn.Module) -> int:
    """The window of a model where nothing says how it was trained: 384 tokens as in transformers, but all positions of
    one made for long texts.
    """
    return model.config.max_length if declares(model, "long") else MAX_LENGTH


def _largest(values: Float[np.ndarray, " n"], count: int) -> list[int]:
    """The indices of the largest finite values, largest first; ties in order."""
    count = min(count, len(values))
    chosen = np.sort(np.argpartition(-values, count - 1)[:count]) if count else np.zeros(0, dtype=np.int64)
    ordered = chosen[np.argsort(-values[chosen], kind="stable")]
    return [int(place) for place in ordered if values[place] > -np.inf]
