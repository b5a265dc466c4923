"""Shared by the pre-training tasks of encoders: rows of text with hidden words."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from torch import nn

from heed.data.batching import DataPosition, plan_packed
from heed.data.config import DataConfig
from heed.data.documents import Boundaries, DocumentKind
from heed.data.prefetch import in_processes, worker_count
from heed.data.pretraining import MaskedBatch, masked_batches, training_batches
from heed.data.readers import Line
from heed.data.segments import SegmentPairs, read_text
from heed.device import choose_device
from heed.models.package import Package
from heed.products.mask_filler import MaskFiller
from heed.tasks.base import Prepared, Validation, ValidationResult
from heed.tasks.stream import StreamTask
from heed.tasks.subwords import check_subwords
from heed.tasks.validation import sample_rows
from heed.vocabularies.sentencepiece import SubwordsConfig
from heed.vocabularies.vocabulary import Pair, Vocabulary

Measure = Callable[[nn.Module, Sequence[MaskedBatch]], dict[str, float]]


class Pretraining(StreamTask):
    """Pre-training of an encoder on plain text."""

    sections: ClassVar[Mapping[str, type]] = {"data": DataConfig, "subwords": SubwordsConfig}
    special_tokens, example = ("mask",), "heed fill {} TEXT"
    products = (MaskFiller,)
    equal_batches = True  # all have the same shape, but for the last of an epoch

    @property
    def head(self) -> str:
        """What the model predicts."""
        raise NotImplementedError

    def measure(self, prepared: Prepared) -> Measure:
        """The scores of a model on batches, by name."""
        raise NotImplementedError

    # checks

    def check(self, recipe: Any) -> None:
        self._check_data(recipe)
        check_subwords(self, recipe)
        for one in recipe.data.corpora:
            if one.weight != 1:
                raise ValueError(
                    f"data.corpora: {one.label} has the weight {one.weight:g}, but {self.name} weights all text "
                    "equally: leave it out"
                )
        longest = recipe.model.setting("max_length")
        if longest is not None and self.settings.length > longest:
            raise ValueError(f"task.length is {self.settings.length}; it must be at most model.max_length, {longest}")

    def check_base(self, recipe: Any, base: Package) -> None:
        super().check_base(recipe, base)
        if base.vocabularies[0].special.mask is None:
            raise ValueError(
                f"{recipe.model.folder} has a vocabulary without a mask token, which {self.name} needs: start from "
                "another model"
            )

    # data

    def boundaries(self) -> DocumentKind:
        return self.settings.document

    def check_validation(self, recipe: Any, valid: Sequence[Line]) -> None:
        boundaries = Boundaries(self.boundaries())
        if self.settings.pair != "next" or sum(1 for _ in boundaries.watch(valid)) == 0 or len(boundaries.lines) > 1:
            return
        which = (
            "the validation text is"
            if recipe.data.validated
            else f"the last {len(valid):,} lines, set aside for validation, are"
        )
        more = "two or more files" if self.boundaries() == "file" else "a text of two or more documents"
        raise ValueError(
            f"task.pair is 'next', but {which} a single document (task.document is {self.boundaries()!r}), and negative "
            f"pairs come from other documents: set data.valid_source to {more}"
        )

    def sizes(self, pair: Pair, base: Package | None) -> dict[str, Any]:
        special = pair[0].special
        ids = {} if base is not None else {"pad": special.pad, "separator": special.last}  # where a config names them
        return {**super().sizes(pair, base), **ids, "head": self.head}

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        packed = plan.grouping is plan_packed
        made = training_batches(**self._rows(recipe, prepared), share=share, packed=packed)
        if choose_device(recipe.training.device).type == "cpu":
            return made.start(position)  # the step takes much longer
        return in_processes(made, position, workers=worker_count())

    def _rows(self, recipe: Any, prepared: Prepared) -> dict[str, Any]:
        t = recipe.training
        text, vocabulary = prepared.train, prepared.processors["text"]
        options = {"batch_tokens": t.batch_tokens, "seed": t.seed}
        return {"text": text, "vocabulary": vocabulary, "settings": self.settings, **options}

    def validation(self, recipe: Any, prepared: Prepared) -> "PretrainingValidation":
        vocabulary, t = prepared.processors["text"], recipe.training
        try:
            made = validation_batches(prepared.valid, vocabulary, self.settings, t.valid_tokens)
        except ValueError as error:
            raise ValueError(f"validation: {error}") from None
        return PretrainingValidation(made, vocabulary, self.measure(prepared), len(prepared.valid), t.samples)

    # reports and records

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        s, stream = self.settings, prepared.train
        if s.length > max_length:
            raise ValueError(f"task.length is {s.length}, but the model has only {max_length} positions: lower it")
        made = masked_batches(**self._rows(recipe, prepared))
        planned, _ = made.plan(0)
        segments, shape = made.source.segments, made.shape
        rows = f"{len(stream.documents):,} documents ({s.document}) of {segments.sentences:,} sentences"
        notes = [
            *self.trained_too(recipe, prepared),
            stream.summary(),
            f"{rows} in {len(planned):,} rows of {s.length} tokens.",
        ]
        if s.halvings:
            *longer, last = map(str, s.lengths)
            notes.append(f"Batches have rows of {', '.join(longer)} and {last} tokens in turn.")
        if segments.split:
            half = " half" if shape.paired else ""
            notes.append(
                f"{segments.split:,} sentences are longer than{half} a row and are split (each line is a sentence)."
            )
        if segments.too_short:
            notes.append(f"{segments.too_short:,} single-token documents are skipped: they cannot form a pair.")
        if isinstance(made.source, SegmentPairs):
            cut, total = made.source.tokens_cut(planned)
            notes.append(
                f"Pairs are truncated to {shape.room} tokens: {100 * cut / max(1, total):.1f} % of an epoch is lost."
            )
        return notes

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: base[name] for name in ("origin",) if name in base}
        return {**kept, "max_source": self.settings.length, "pretraining": dataclasses.asdict(self.settings)}


def validation_batches(
    lines: Sequence[Line], vocabulary: Vocabulary, settings: Any, batch_tokens: int
) -> list[MaskedBatch]:
    """A text with the same words hidden each time."""
    text = read_text(lines, vocabulary, settings.document)
    made = masked_batches(text, vocabulary, settings, batch_tokens=max(batch_tokens, settings.length))
    return list(made.one_epoch())


class PretrainingValidation:
    """A text with the same words hidden each time: scores, and some rows with the model's predictions."""

    def __init__(
        self, batches: Sequence[MaskedBatch], vocabulary: Vocabulary, measure: Measure, size: int, samples: int
    ):
        self.batches, self.vocabulary, self.measure, self.size = batches, vocabulary, measure, size
        self.shown = sample_rows(batches[0].rows if batches else 0, samples)

    def run(self, model: nn.Module) -> ValidationResult:
        scores = self.measure(model, self.batches)
        return ValidationResult(scores, self._samples(model))

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0  # a text is cut into rows

    def _samples(self, model: nn.Module) -> list[tuple[str, str, str]]:
        if not self.shown:
            return []
        batch = self.batches[0]
        filler = MaskFiller(model, self.vocabulary)
        found = filler.best_words(batch.to(filler.device)).cpu()
        rows = [batch.tokens, batch.filled(batch.expected), batch.filled(found)]
        return [tuple(self._shown(part[i].tolist()) for part in rows) for i in self.shown]

    def _shown(self, ids: list[int]) -> str:
        special = self.vocabulary.special
        inner = [i for i in ids if i not in (special.pad, special.first)]
        return "".join(self.vocabulary.pieces(inner)).replace("▁", " ").strip()
