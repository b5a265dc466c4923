"""What a teacher translates: the pairs that training would use, corpus by corpus, and those held out for validation."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from heed.data.cleaning import Cleaning
from heed.data.config import CorpusConfig, DataConfig
from heed.data.duplicates import SKIP_REASONS
from heed.data.filters import PAIRS_ONLY, FilterReport, FiltersConfig
from heed.data.prepare import TextFiles
from heed.data.readers import Line
from heed.vocabularies.vocabulary import Pair


@dataclass(frozen=True)
class TaughtCorpus:
    """`lines` are those of one corpus to translate, `total` of them."""

    lines: Iterator[Line]
    total: int


@dataclass(frozen=True)
class TaughtText:
    """All corpora, the held-out pairs, and how many pairs each rule filtered."""

    corpora: list[TaughtCorpus]
    held: list[tuple[str, str]]
    report: FilterReport

    def describe(self) -> str:
        r = self.report
        aside = f"; {r.held_out:,} set aside for validation" if r.held_out else ""
        return f"{r.kept:,} texts to translate, of {r.read:,}{aside}; filtered out: {r.describe()}."


def has_references(corpus: CorpusConfig) -> bool:
    """Whether every text of a corpus has a reference."""
    return bool(corpus.target or (corpus.tsv and not corpus.source))


def with_targets(data: DataConfig) -> DataConfig:
    """The data as the student will see them: missing references are replaced by the sources."""
    corpora = [dataclasses.replace(one, target=one.target or one.source) for one in data.corpora]
    return dataclasses.replace(data, target=data.target or data.source, corpora=corpora)


def read(data: DataConfig, filters: FiltersConfig, vocabularies: Pair) -> TaughtText:
    """Read the corpora twice: to filter pairs, as before training, and to translate the rest."""
    referenced = all(map(has_references, data.parts))
    files = TextFiles(data, one_sided=not referenced)
    valid = TextFiles(data, one_sided=False).valid()  # the student is validated on pairs
    filters = dataclasses.replace(filters, rejected=None, **({} if referenced else PAIRS_ONLY))
    holdout = data.holdout if referenced and not data.validated else 0
    languages = files.languages({})
    cleaning = Cleaning(filters, holdout, valid, languages, 2 if referenced else 1, files.origins)
    reasons = cleaning.reasons(files.train, vocabularies, lambda what, done: None)
    if not (reasons == 0).any():
        raise ValueError(
            f"data: of {len(reasons):,} pairs none is left to translate: use other validation files, or more text"
        )
    held, numbers = [], np.zeros(len(reasons), dtype=np.int32)
    for row, line in enumerate(files.train()):
        numbers[row] = line.corpus
        if SKIP_REASONS[reasons[row]] == "held out":
            held.append((line.source, line.target))
    corpora = []
    for number in range(len(data.parts)):
        rows = np.flatnonzero(numbers == number)
        own = islice(files.train(), int(rows[0]), int(rows[-1]) + 1) if len(rows) else iter(())
        corpora.append(TaughtCorpus(_kept(own, reasons[rows]), int((reasons[rows] == 0).sum())))
    taken = {
        rule: int((reasons == number).sum()) for number, rule in enumerate(SKIP_REASONS) if rule in FilterReport().taken
    }
    return TaughtText(corpora, held, FilterReport(len(reasons), int((reasons == 0).sum()), taken))


def _kept(lines: Iterator[Line], reasons: np.ndarray) -> Iterator[Line]:
    return (line for line, reason in zip(lines, reasons, strict=True) if reason == 0)
