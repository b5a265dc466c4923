"""The [data] section of the text tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from heed.text.languages import language_of_files


@dataclass(frozen=True)
class DataConfig:
    """Files, or the built-in phrasebook."""

    source: list[str] = field(default_factory=list)  # plain, .gz or .xz; several files are read one after the other
    target: list[str] = field(default_factory=list)  # line i is the translation, or the label, of line i
    tsv: list[str] = field(default_factory=list)  # or files with both sides in columns
    columns: list[int] = field(default_factory=lambda: [1, 2])  # which columns of a TSV file, counted from 1
    valid_source: list[str] = field(default_factory=list)  # what to validate on
    valid_target: list[str] = field(default_factory=list)
    valid_tsv: list[str] = field(default_factory=list)
    holdout: int = 1000  # without validation files, this many pairs are set aside (a tenth of the corpus at most)
    phrasebook: int | None = None  # this many pairs of the built-in corpus instead of files
    source_language: str | None = None  # as the files are named (train.en); for heed serve and the model card
    target_language: str | None = None
    licence: str | None = None  # of the data, for the model card

    def __post_init__(self):
        given = bool(self.source or self.target or self.tsv) + bool(self.phrasebook)
        if given != 1:
            sentence = "data: name the files to train on (source and target, or tsv), or set data.phrasebook"
            raise ValueError(sentence + ("; not both" if given else ""))
        if len(self.columns) != 2 or min(self.columns) < 1:
            raise ValueError(f"data.columns is {self.columns}; it must be two column numbers, counted from 1")
        if self.holdout < 1 and not (self.validated or self.phrasebook):
            raise ValueError(
                f"data.holdout is {self.holdout}; it must be at least 1 where no validation files are named"
            )

    @property
    def validated(self) -> bool:
        """Whether validation files are named."""
        return bool(self.valid_source or self.valid_target or self.valid_tsv)

    def languages(self, before: Mapping[str, str | None]) -> dict[str, str | None]:
        """Those set; else those that the file names tell; else those of the pre-trained model, `before`."""
        source, target = language_of_files(self.source), language_of_files(self.target)
        if source == target:  # then the endings mean something else
            source = target = None
        return {
            "source": self.source_language or source or before.get("source"),
            "target": self.target_language or target or before.get("target"),
        }
