"""Language modelling: predict each token of a text from those before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from torch import nn

from heed.config import check_fraction
from heed.data.batching import DataPosition
from heed.data.documents import CorpusRange, DocumentBatches, DocumentKind, Pieces, RandomWindows, cut_documents
from heed.data.streams import Stream, Windows, row_count
from heed.models.abilities import ContinuesText
from heed.models.package import Package
from heed.products.generator import Generator
from heed.tasks.base import Metric, Objective, Prepared, Validation
from heed.tasks.language_loss import IndependentLoss, LanguageLoss
from heed.tasks.language_validation import IndependentValidation, LanguageValidation
from heed.tasks.stream import StreamTask
from heed.tasks.subwords import vocabulary_kind
from heed.tasks.validation import validation_search
from heed.vocabularies.codes import code_ids
from heed.vocabularies.vocabulary import Pair


@dataclass(frozen=True)
class LanguageSettings:
    window: int = 35  # tokens read, and backpropagated through, at once
    reading: Literal["stream", "documents", "random"] = (
        "stream"  # one text with carried state; documents that do not see each other; windows at random offsets
    )
    document: DocumentKind = "paragraph"  # what is a document: a file, lines separated by blank lines, or a single line
    label_smoothing: float = 0.0  # label smoothing: probability mass spread over the vocabulary

    def __post_init__(self):
        if self.window < 1:
            raise ValueError(f"task.window is {self.window}; it must be at least 1")
        check_fraction("task.label_smoothing", self.label_smoothing)
        if self.document != LanguageSettings.document and self.reading != "documents":
            raise ValueError(
                f"task.document is {self.document!r}, but task.reading is {self.reading!r}: set it to 'documents', or leave "
                "task.document out"
            )


class LanguageModelling(StreamTask):
    name, title, example = "language", "Language model", "heed generate {}"
    Settings, needs, products = LanguageSettings, ContinuesText, (Generator,)
    coded, any_vocabulary = True, True
    perplexity, best, metrics = True, "loss", (Metric("loss", "loss", False, lambda: "-log p per token", 3),)

    @property
    def independent(self) -> bool:
        """Whether windows and documents do not attend to each other."""
        return self.settings.reading != "stream"

    @property
    def equal_batches(self) -> bool:
        """Whether all batches have the same shape, except for the last of an epoch."""
        return self.settings.reading != "documents"

    def corpus_summaries(self, recipe: Any, prepared: Prepared) -> list[str]:
        """A sentence on each of several corpora, if they are kept apart."""
        if not (self.independent and recipe.data.corpora):
            return []  # one text: `notes` says how long it is
        found = []
        for one, (start, end) in zip(recipe.data.corpora, corpus_ranges(prepared.train), strict=True):
            how = f", weight {one.weight:g}" + (f", code {one.code}" if one.code else "")
            found.append(f"{one.label}: {end - start:,} tokens{how}.")
        return found

    def _check_tags(self, recipe: Any) -> None:
        super()._check_tags(recipe)
        data = recipe.data
        for one in () if self.independent else data.corpora:
            if one.weight != 1:
                raise ValueError(
                    f"data.corpora: {one.label} has the weight {one.weight:g}, but a language model reads its text "
                    "once: leave it out, or set task.reading to 'documents'"
                )
            if one.code:
                raise ValueError(
                    f"data.corpora: {one.label} has the code {one.code}, which starts each document, but task.reading "
                    "is 'stream': set it to 'documents' or 'random'"
                )
        codes = [one.code for one in data.corpora if one.code]
        if codes and (data.valid_source or data.valid_tsv):
            raise ValueError("data.valid_source has no control code: set it in [[data.corpora]]")
        kind = vocabulary_kind(self, recipe) or recipe.subwords.kind
        if codes and not recipe.model.folder and kind in ("words", "gpt", "gpt2"):
            raise ValueError(
                f"data.corpora: the code {codes[0]} needs a vocabulary that supports codes (ctrl, SentencePiece, "
                f"characters or bytes), and this one is {kind}"
            )

    def sizes(self, pair: Pair, base: Package | None) -> dict[str, Any]:
        return {**super().sizes(pair, base), "head": "causal"}

    def boundaries(self) -> DocumentKind | None:
        if not self.independent:
            return None
        return self.settings.document if self.settings.reading == "documents" else "file"

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        smoothing = self.settings.label_smoothing
        return IndependentLoss(smoothing) if self.independent else LanguageLoss(smoothing)

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        stream, t, length = prepared.train, recipe.training, self.settings.window
        rows = row_count(len(stream), t.batch_tokens, length)
        common = {"seed": t.seed, "share": share}
        if not self.independent:
            return Windows(stream.ids, stream.last, rows=rows, length=length, **common).start(position)
        weights = [one.weight for one in recipe.data.corpora] or [1.0]
        if self.settings.reading == "documents":
            pad = prepared.processors["text"].special.pad
            options = {"budget": t.batch_tokens, "pad": pad, "grouping": plan.grouping, "weights": weights}
            options |= {"slots": plan.slots, "most": length}
            return DocumentBatches(stream.ids, self._pieces(recipe, prepared), **options, **common).start(position)
        corpora = [
            CorpusRange(*span, weight, code)
            for span, weight, code in zip_longest(corpus_ranges(stream), weights, self._codes(recipe, prepared))
        ]
        rows = t.batch_tokens // length
        return RandomWindows(stream.ids, stream.last, rows=rows, length=length, corpora=corpora, **common).start(
            position
        )

    def _codes(self, recipe: Any, prepared: Prepared) -> list[int | None]:
        return code_ids(prepared.processors["text"], [one.code for one in recipe.data.corpora])

    def _pieces(self, recipe: Any, prepared: Prepared) -> Pieces:
        stream, codes = prepared.train, self._codes(recipe, prepared)
        return cut_documents(stream.ids, stream.documents, stream.corpora, self.settings.window, stream.last, codes)

    def validation(self, recipe: Any, prepared: Prepared) -> LanguageValidation:
        t, s = recipe.training, self.settings
        options = {
            "search": validation_search(recipe),
            "budget": t.valid_tokens,
            "samples": t.samples,
            "window": s.window,
        }
        if not self.independent:
            return LanguageValidation(prepared.valid, prepared.processors["text"], **options)
        document = s.document if s.reading == "documents" else None
        codes = [one.code for one in recipe.data.corpora]
        return IndependentValidation(prepared.valid, prepared.processors["text"], document, codes=codes, **options)

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        window, stream = self.settings.window, prepared.train
        if window > max_length:
            raise ValueError(f"task.window is {window}, but the model has only {max_length} positions: lower it")
        notes = [*super().notes(recipe, prepared, validation, max_length), stream.summary()]
        if self.settings.reading == "documents":
            pieces = self._pieces(recipe, prepared)
            count = len(stream.documents)
            cut = f"; {pieces.cut:,} of them exceed the window of {window} and are split" if pieces.cut else ""
            notes.append(f"{count:,} documents ({self.settings.document}) in {len(pieces):,} windows{cut}.")
        if self.settings.reading == "random":
            notes.append(
                f"Windows of {window} tokens are sampled at random: in an epoch, a token may occur twice or not at all."
            )
        return notes

    def facts(self, recipe: Any, prepared: Prepared, base: Any) -> dict[str, Any]:
        return {**super().facts(recipe, prepared, base), "window": self.settings.window}


def corpus_ranges(stream: Stream) -> list[tuple[int, int]]:
    """The token range of each corpus."""
    firsts = stream.documents[np.flatnonzero(np.diff(stream.corpora, prepend=-1))].tolist()
    return list(zip(firsts, [*firsts[1:], len(stream)], strict=True))
