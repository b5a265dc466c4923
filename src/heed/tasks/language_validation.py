"""The validation of a language model: its loss on a text, and sample continuations of some lines."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from heed.data.documents import Boundaries, DocumentKind, Pieces, cut_documents, one_epoch
from heed.data.readers import Line
from heed.data.streams import Windows, join_lines
from heed.decoding.config import DecodingConfig
from heed.evaluation.perplexity import has_positions, independent_nll, total_nll
from heed.products.generator import Generator
from heed.tasks.base import ValidationResult
from heed.tasks.validation import sample_rows
from heed.vocabularies.codes import code_ids
from heed.vocabularies.vocabulary import Vocabulary

ROWS, LEAST = 32, 256  # a validation text is read in this many parts, none of fewer tokens
PROMPT, CONTINUATION = 8, 30  # tokens of a sample


class LanguageValidation:
    """A text that is read as one stream, window by window."""

    def __init__(
        self,
        lines: Sequence[Line],
        vocabulary: Vocabulary,
        *,
        search: DecodingConfig,
        budget: int,
        samples: int,
        window: int,
        codes: Sequence[str | None] = (),
    ):
        self.vocabulary, self.search, self.size = vocabulary, search, len(lines)
        self.ids = vocabulary.encode([line.source for line in lines])
        long = [(ids, line.corpus) for ids, line in zip(self.ids, lines, strict=True) if len(ids) > PROMPT]
        self.shown = [long[i] for i in sample_rows(len(long), samples)]
        self.stream, self.budget, self.window = join_lines(self.ids, vocabulary.special.last), budget, window
        self.codes = codes

    def run(self, model: nn.Module) -> ValidationResult:
        return ValidationResult({"loss": self.nll(model) / len(self.stream)}, self._samples(model))

    def nll(self, model: nn.Module) -> float:
        """-log p of the whole text."""
        rows = max(1, min(ROWS, len(self.stream) // LEAST))
        length = max(1, self.budget // rows)
        if has_positions(model):  # it has learned those of a window; the length does not change what others compute
            length = min(length, self.window)
        return total_nll(model, Windows(self.stream, self.vocabulary.special.last, rows=rows, length=length))

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0  # a text is read window after window

    def _samples(self, model: nn.Module) -> list[tuple[str, str, str]]:
        generator, decode = Generator(model, self.vocabulary), self.vocabulary.decode
        names = ("temperature", "top_k", "top_p", "seed", "no_repeat")
        search = {name: value for name, value in dataclasses.asdict(self.search).items() if name in names}
        length, samples = min(CONTINUATION, model.config.max_length - PROMPT - 1), []
        for line, corpus in self.shown if length > 0 else ():
            prompt, rest = line[:PROMPT], line[PROMPT : PROMPT + CONTINUATION]
            code = self.codes[corpus] if self.codes else None
            own = generator.with_code(code) if code else generator
            found = own.generate_ids(prompt, length=length, one_line=True, **search)[0]
            shown = f"{code}: {decode(prompt)}" if code else decode(prompt)
            samples.append((shown, decode(rest), found.text.strip()))
        return samples


class IndependentValidation(LanguageValidation):
    """Independent documents; with `document` None each corpus is one long text, split into windows."""

    def __init__(self, lines: Sequence[Line], vocabulary: Vocabulary, document: DocumentKind | None, **rest: Any):
        super().__init__(lines, vocabulary, **rest)
        boundaries = Boundaries(document or "file")
        for _ in boundaries.watch(lines):
            pass
        starts, corpora = boundaries.starts([len(ids) + 1 for ids in self.ids]), np.array(boundaries.corpora)
        if document is None:
            first = np.flatnonzero(np.diff(corpora, prepend=-1))
            starts, corpora = starts[first], corpora[first]
        codes = code_ids(vocabulary, self.codes)
        self.pieces: Pieces = cut_documents(self.stream, starts, corpora, self.window, vocabulary.special.last, codes)

    def nll(self, model: nn.Module) -> float:
        batches = one_epoch(self.stream, self.pieces, self.budget, self.vocabulary.special.pad)
        return sum(float(nll.double().sum()) for nll in independent_nll(model, batches))
