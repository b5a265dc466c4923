"""The [data] section of the text tasks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from heed.text.languages import language_of_files

Direction = tuple[str | None, str | None]  # the languages of the source and of the target


@dataclass(frozen=True)
class CorpusConfig:
    """One of several corpora."""

    name: str | None = None  # name in reports (default: the names of its first files)
    source: list[str] = field(default_factory=list)  # files, as in [data]
    target: list[str] = field(default_factory=list)
    tsv: list[str] = field(default_factory=list)
    columns: list[int | str] = field(default_factory=lambda: [1, 2])
    weight: float = 1.0  # how often its pairs are used per epoch: 2 is twice, 0.5 a different half each time
    tag: str | None = None  # put before each source, as "<bt>" before back-translated text: one token of the vocabulary
    code: str | None = None  # control code of a language model: put before each document
    source_language: str | None = None  # default: from the file names
    target_language: str | None = None  # with several directions, >>de<< is put before each source
    valid_source: list[str] = field(default_factory=list)  # validation files, in these languages
    valid_target: list[str] = field(default_factory=list)
    valid_tsv: list[str] = field(default_factory=list)

    def __post_init__(self):
        if not (self.source or self.target or self.tsv):
            raise ValueError("data.corpora: each corpus needs files (source and target, or tsv)")
        if not 0 < self.weight < math.inf:
            raise ValueError(f"data.corpora: the weight of {self.label} is {self.weight}; it must be a number above 0")
        if self.tag is not None and (self.tag.split() != [self.tag] or self.tag.startswith(">>")):
            raise ValueError(
                f"data.corpora: the tag of {self.label} is {self.tag!r}; it must be one word, such as <bt>"
            )
        if self.code is not None and (self.code.split() != [self.code] or self.code.startswith(">>")):
            raise ValueError(
                f"data.corpora: the code of {self.label} is {self.code!r}; it must be one word, such as Reviews"
            )
        _check_columns("data.corpora: columns", self.columns)

    @property
    def label(self) -> str:
        files = [*self.source[:1], *self.target[:1]] or self.tsv[:1]
        return self.name or " + ".join(Path(path).name for path in files)

    @property
    def validated(self) -> bool:
        """Whether validation files are given."""
        return bool(self.valid_source or self.valid_target or self.valid_tsv)

    def direction(self) -> Direction:
        """The languages that are set; otherwise those in the file names."""
        source, target = language_of_files(self.source), language_of_files(self.target)
        if source == target:  # then the endings mean something else
            source = target = None
        return self.source_language or source, self.target_language or target


@dataclass(frozen=True)
class DataConfig:
    """Files, or the built-in phrasebook."""

    source: list[str] = field(default_factory=list)  # plain, .gz or .xz; several files are concatenated
    target: list[str] = field(default_factory=list)  # translations or labels, line by line
    tsv: list[str] = field(
        default_factory=list
    )  # or tables with both sides in columns; .jsonl, a JSON object a line, with fields by name
    columns: list[int | str] = field(
        default_factory=lambda: [1, 2]
    )  # which columns, by number from 1 or by name in the first line; the last is the target
    valid_source: list[str] = field(default_factory=list)  # validation files
    valid_target: list[str] = field(default_factory=list)
    valid_tsv: list[str] = field(default_factory=list)
    holdout: int = 1000  # without validation files, this many pairs are set aside (at most a tenth of the corpus)
    phrasebook: int | None = None  # use this many pairs of the built-in corpus instead of files
    source_language: str | None = None  # default: from the file names (train.en); for heed serve and the model card
    target_language: str | None = None
    licence: str | None = None  # licence of the data, for the model card
    corpora: list[CorpusConfig] = field(
        default_factory=list
    )  # or several corpora, one table each (docs/guides/data.md)

    def __post_init__(self):
        given = bool(self.source or self.target or self.tsv) + bool(self.phrasebook) + bool(self.corpora)
        if given != 1:
            sentence = "data: give the training files (source and target, or tsv), or set data.phrasebook"
            raise ValueError(sentence + ("; not both" if given else ""))
        _check_columns("data.columns", self.columns)
        if self.holdout < 1 and not (self.validated or self.phrasebook):
            raise ValueError(f"data.holdout is {self.holdout}; it must be at least 1 without validation files")
        self._check_directions()

    def _check_directions(self) -> None:
        self._check_validated()
        if len(self.directions) < 2:
            return
        for one in self.corpora:
            if None in self.direction(one):
                raise ValueError(
                    f"data.corpora: {one.label} has no languages, but other corpora do: set its source_language and "
                    "target_language"
                )
        if self.valid_source or self.valid_target or self.valid_tsv:
            raise ValueError("the direction of data.valid_source and the like is unknown: set them in [[data.corpora]]")

    def _check_validated(self) -> None:
        """Every direction needs validation data: files, or pairs held out from genuine text."""
        if len(self.directions) < 2 and self.validated:
            return
        for direction in self.directions or [None] * bool(self.corpora):
            own = [one for one in self.corpora if direction in (None, self.direction(one))]
            if not any(one.validated if self.validated else one.tag is None for one in own):
                which = "" if direction is None else f" from {direction[0]} to {direction[1]}"
                why = "other corpora have validation sets" if self.validated else "tagged text is not held out"
                raise ValueError(
                    f"data.corpora: there is nothing to validate{which} on, since {why}: set valid_source and "
                    "valid_target, or valid_tsv"
                )

    @property
    def validated(self) -> bool:
        """Whether validation files are given."""
        own = bool(self.valid_source or self.valid_target or self.valid_tsv)
        return own or any(one.validated for one in self.corpora)

    @property
    def parts(self) -> list[CorpusConfig]:
        """The corpora; files given in [data] itself are one."""
        return self.corpora or [CorpusConfig(None, self.source, self.target, self.tsv, self.columns)]

    def direction(self, corpus: CorpusConfig) -> Direction:
        """The languages of a corpus; otherwise those of [data]."""
        source, target = corpus.direction()
        return source or self.source_language, target or self.target_language

    @property
    def directions(self) -> list[Direction]:
        """The distinct language pairs of the corpora, as far as they are known."""
        found = dict.fromkeys(self.direction(one) for one in self.corpora)
        return [direction for direction in found if None not in direction]

    def swapped_validation(self) -> list[str]:
        """Warnings about validation files whose names give the languages of the corpus the wrong way round."""
        found, whole = [], [] if self.phrasebook else self.parts
        for one, parts in [(self, whole), *((corpus, [corpus]) for corpus in self.corpora)]:
            files = language_of_files(one.valid_source), language_of_files(one.valid_target)
            direction = next((self.direction(part) for part in parts), (None, None))
            if None not in files and files[0] != files[1] and files == direction[::-1]:
                found.append(
                    f"Warning: the validation files are {files[0]} to {files[1]} by their names, but the training files "
                    f"are {direction[0]} to {direction[1]}: valid_source and valid_target may be swapped."
                )
        return found

    def languages(self, before: Mapping[str, str | None]) -> dict[str, str | None]:
        """Those that are set; else those in the file names; else those of the pre-trained model, `before`. None if
        corpora differ.
        """
        parts = [] if self.phrasebook else [one.direction() for one in self.parts]
        sides = [{pair[side] for pair in parts} - {None} for side in (0, 1)]
        found = [codes.pop() if len(codes) == 1 else None for codes in sides]
        if len(self.directions) > 1:
            return {"source": found[0], "target": found[1]}
        given = {"source": self.source_language or found[0], "target": self.target_language or found[1]}
        return {side: code or before.get(side) for side, code in given.items()}


def _check_columns(name: str, columns: list[int | str]) -> None:
    if len(columns) < 2 or any(column < 1 if isinstance(column, int) else not column for column in columns):
        raise ValueError(f"{name} is {columns}; it must be at least two columns, by number (counted from 1) or by name")
