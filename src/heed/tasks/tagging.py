"""Tagging: predict the label of each word, such as named entities (token classification)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from heed.config import check_fraction
from heed.data import conll
from heed.data.batching import LabelledBatch
from heed.data.conll import ConllConfig, Sentence
from heed.data.entities import (
    NAMES,
    OUTSIDE,
    UNCHANGED,
    Scheme,
    entities,
    have_prefixes,
    label_names,
    scheme_of_model,
)
from heed.data.tagged import align_words, collate_tagged, join_words, tagged_rows
from heed.evaluation.tagging import count, measure
from heed.models.abilities import ClassifiesTokens
from heed.models.package import Package
from heed.products.tagger import STRIDE, Tagger, mark
from heed.tasks.base import Metric, Objective, Prepared, ValidationResult
from heed.tasks.token_task import Examples, Row, TokenTask, hold_out
from heed.tasks.validation import sample_rows
from heed.training.loss import Loss, smoothed_cross_entropy
from heed.vocabularies.labels import Labels
from heed.vocabularies.sentencepiece import SubwordsConfig


@dataclass(frozen=True)
class TaggingSettings:
    scheme: Scheme = (
        "auto"  # scheme of the labels in the files; the model learns BIO, or with 'plain' the labels as they are
    )
    repair: bool = False  # repair labels that violate the scheme, as conlleval does, and count their sentences
    max_length: int | None = None  # window size in tokens, including special ones (default: the model's)
    stride: int = STRIDE  # overlap of two windows of a long sentence, in subwords; at most half a window
    label_smoothing: float = 0.0  # label smoothing: probability mass spread over the labels

    def __post_init__(self):
        check_fraction("task.label_smoothing", self.label_smoothing)
        if self.max_length is not None and self.max_length < 8:
            raise ValueError(f"task.max_length is {self.max_length}; it must be at least 8")
        if self.stride < 0:
            raise ValueError(f"task.stride is {self.stride}; it must be at least 0")


class Tagging(TokenTask):
    name, title, example, unit = "tagging", "Tagger", "heed tag {} < text", "sentences"
    Settings, needs, products = TaggingSettings, ClassifiesTokens, (Tagger,)
    sections: ClassVar[Mapping[str, type]] = {"data": ConllConfig, "subwords": SubwordsConfig}
    collate = staticmethod(collate_tagged)
    best = "f1"
    metrics = (
        Metric("f1", "F1", True, lambda: "by entity, as conlleval computes it; times 100"),
        Metric("precision", "precision", True, lambda: "by entity, per cent"),
        Metric("recall", "recall", True, lambda: "by entity, per cent"),
        Metric("accuracy", "accuracy", True, lambda: "of the labels of words, per cent"),
        Metric("loss", "loss", False, lambda: "-log p per label", 3),
    )
    counted: ClassVar[Mapping[str, str]] = {
        **{name: f"{what} skipped" for name, what in conll.SKIPPED.items()},
        "repaired": "sentences with repaired labels (task.repair)",
        "unread": "words that cannot be encoded",
        "split": "sentences longer than a window, split",
    }

    # data

    def read(self, recipe: Any, base: Package | None) -> Examples:
        data = recipe.data
        files, valid = (
            [conll.read(Path(path), data.word, data.label) for path in own] for own in (data.train, data.valid)
        )
        train = [one for file in files for one in file.sentences]
        held = [one for file in valid for one in file.sentences]
        repair, scheme = self.settings.repair, self.settings.scheme
        if scheme == "auto" and base is not None and base.facts.get("scheme") == UNCHANGED:
            scheme = "plain"
        if scheme == "auto":
            scheme = conll.find_scheme(train, repair)
        counts = sum((file.skipped for file in files), Counter(repaired=conll.check_scheme(train, scheme, repair)))
        conll.check_scheme(held, scheme, repair)
        labels = sorted({label for one in train for label in one.labels})
        if scheme != "plain":
            labels = label_names(own.type for one in train for own in entities(one.labels))
        elif have_prefixes(labels):
            scheme = UNCHANGED
        spaced = any(" " in word for one in train for word in one.words)
        reading = ["columns"] * (spaced or bool(counts["comments"] or counts["ranges"])) + [scheme] * (
            scheme == UNCHANGED
        )
        if not data.valid:
            train, held = hold_out([[one] for one in train], data.holdout)
        return Examples(train, held, counts, scheme=scheme, labels=labels, reading=reading)

    def texts(self, examples: Sequence[Sentence]) -> Iterator[str]:
        return (" ".join(one.words) for one in examples)

    def reading_key(self, recipe: Any) -> list[Any]:
        data = recipe.data
        return [data.word, data.label, 0 if data.valid else data.holdout, self.settings.scheme, self.settings.repair]

    def row_settings(self) -> list[Any]:
        return [self.settings.stride]

    def labels_of(self, examples: Examples, base: Package | None) -> dict[str, Labels]:
        if base is not None and "labels" in base.processors:
            return {"labels": base.processors["labels"]}
        names = examples.labels
        if len(names) < 2:
            raise ValueError(
                f"data.train has only {', '.join(names) or 'no labels'}: a tagger needs at least two labels"
            )
        return {"labels": Labels(names)}

    def head_sizes(self, processors: Mapping[str, Any]) -> dict[str, Any]:
        return {"head": "tokens", "labels": len(processors["labels"])}

    def note(self, examples: Examples, processors: Mapping[str, Any]) -> str:
        names = processors["labels"].names
        if examples.scheme == UNCHANGED:
            return f"The labels have prefixes, which task.scheme = 'plain' leaves as they are; the model learns {', '.join(names)}."
        learned = f"the model learns {NAMES[scheme_of_model(names)]}: {', '.join(names)}"
        return f"The labels of the files are {NAMES[examples.scheme]}; {learned}."

    def rows(self, examples: Examples, processors: Mapping[str, Any], longest: int, counts: Counter) -> Iterator[Row]:
        text, names = processors["text"], processors["labels"].names
        ids, scheme = processors["labels"].ids, _learned(examples.scheme, names)
        room = longest - len(text.special.before) - 1
        counts["examples"] = len(examples.train)
        for sentence in examples.train:
            labels = [ids[name] for name in conll.relabelled(sentence, scheme, names)]
            joined, spans = join_words(sentence.words)
            [pieces] = text.encode_aligned([joined])
            first = align_words(pieces, spans).first
            counts["unread"] += first.count(None)
            counts["split"] += len(pieces.ids) > room
            yield from tagged_rows(pieces.ids, first, labels, room, self.settings.stride)

    # training

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return TagLoss(self.settings.label_smoothing)

    def validation(self, recipe: Any, prepared: Prepared) -> "TaggingValidation":
        return TaggingValidation(
            prepared.valid,
            prepared.processors,
            self.settings,
            _learned(prepared.train.facts.get("scheme"), prepared.processors["labels"].names),
            budget=recipe.training.valid_tokens,
            samples=recipe.training.samples,
        )

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        reading = {"columns": {"word": recipe.data.word, "label": recipe.data.label}, "repair": self.settings.repair}
        unchanged = {"scheme": UNCHANGED} if prepared.train.facts.get("scheme") == UNCHANGED else {}
        return {**super().facts(recipe, prepared, base), "stride": self.settings.stride, **reading, **unchanged}

    def notes(self, recipe: Any, prepared: Prepared, validation: Any, max_length: int) -> list[str]:
        found, scheme = super().notes(recipe, prepared, validation, max_length), prepared.train.facts.get("scheme")
        repaired = conll.check_scheme(prepared.valid, scheme, repair=True) if recipe.data.valid and scheme else 0
        return [*found, f"{repaired:,} validation {self.counted['repaired']}."] if repaired else found

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        return {"labels": ", ".join(prepared.processors["labels"].names), **super().card_rows(recipe, prepared, facts)}


def _learned(scheme: str | None, names: Sequence[str]) -> str:
    """The scheme of a model's labels, if that of the files is `scheme`."""
    return UNCHANGED if scheme == UNCHANGED else scheme_of_model(names)


@dataclass(frozen=True)
class TagLoss:
    """Cross entropy of word labels, at their first pieces."""

    smoothing: float = 0.0

    def __call__(self, model: ClassifiesTokens, batch: LabelledBatch) -> Loss:
        counts = batch.labels >= 0
        logits = model.classify_tokens(*batch.inputs)
        return smoothed_cross_entropy(logits[counts], batch.labels[counts], self.smoothing)[0]


class TaggingValidation:
    """The loss and scores of word labels. Long sentences are read in windows."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        processors: Mapping[str, Any],
        settings: TaggingSettings,
        scheme: str,
        *,
        budget: int,
        samples: int,
    ):
        self.text, self.labels, self.settings = processors["text"], processors["labels"], settings
        self.budget, self.size = budget, len(sentences)
        self.expected = [conll.relabelled(one, scheme, self.labels.names) for one in sentences]
        joined = [join_words(one.words) for one in sentences]
        pieces = self.text.encode_aligned([text for text, _ in joined])
        self.joined, self.ids = joined, [own.ids for own in pieces]
        self.first = [align_words(own, spans).first for own, (_, spans) in zip(pieces, joined, strict=True)]
        self.shown = sample_rows(len(sentences), samples)

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        s, names = self.settings, self.labels.names
        tagger = Tagger(model, self.text, names, s.max_length, s.stride)
        found, nll, words = [], 0.0, 0
        for rows, first, expected in zip(
            tagger.logits(self.ids, self.budget)[0], self.first, self.expected, strict=True
        ):
            logp = rows.log_softmax(dim=1)
            best = logp.argmax(dim=1).tolist()
            found.append([OUTSIDE if place is None else names[best[place]] for place in first])
            right = [
                (place, self.labels.ids[name]) for place, name in zip(first, expected, strict=True) if place is not None
            ]
            nll, words = nll - sum(float(logp[own]) for own in right), words + len(right)
        scores = {**measure(count(found, self.expected)), "loss": nll / max(1, words)}
        samples = [
            (self.joined[i][0], self._marked(i, self.expected[i]), self._marked(i, found[i])) for i in self.shown
        ]
        return ValidationResult(scores, samples)

    def _marked(self, number: int, labels: Sequence[str]) -> str:
        text, spans = self.joined[number]
        return mark(text, [(spans[one.start][0], spans[one.end - 1][1], one.type) for one in entities(labels)])

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0  # they are read in windows
