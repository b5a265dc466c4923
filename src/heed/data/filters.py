"""Filtered pairs of a corpus, counted by rule: nothing is dropped silently."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heed.config import check_not_negative
from heed.data import agreement
from heed.data.readers import Line


@dataclass(frozen=True)
class FiltersConfig:
    max_length: int = 256  # maximum length of a side in subwords, including the end token; longer pairs are filtered and counted; classification, regression, multiple choice, embedding: all positions of the model, by default
    max_ratio: float = 9.0  # maximum length ratio of the two sides; 0 is no limit
    same: bool = True  # filter pairs with the same text on both sides
    duplicates: bool = True  # filter duplicate pairs
    overlap: bool = True  # filter pairs with a side in the validation set, ignoring case and punctuation
    swapped: bool = (
        True  # filter pairs with source and target swapped, detected by their script (docs/guides/cleaning.md)
    )
    max_repeats: int = 0  # maximum number of different sources per target, and targets per source; 0 is no limit
    numbers: bool = False  # filter pairs with mismatched numbers
    max_punctuation: int = 0  # maximum difference in punctuation marks (.?!:;()); 0 is no limit
    misaligned: bool = False  # filter pairs whose target clearly matches a neighbouring line better
    language: bool = False  # filter pairs with a side in another language than data.source_language, target_language
    rejected: str | None = None  # a file that reports which pairs were filtered, and by which rule

    def __post_init__(self):
        for name in ("max_repeats", "max_punctuation"):
            check_not_negative(f"filters.{name}", getattr(self, name))


FIRST = ("max_length", "max_ratio", "same", "duplicates", "rejected")  # what the first versions had

# What a rule says of the target makes no sense where the target is a label, or the source again.
PAIRS_ONLY = {
    "same": False, "max_ratio": 0.0, "swapped": False, "max_repeats": 0, "numbers": False, "max_punctuation": 0, "misaligned": False,
}  # fmt: skip

RULES = {
    "empty": "an empty side",
    "same": "the same text on both sides",
    "duplicate": "a duplicate pair",
    "overlap": "a side also in the validation set (filters.overlap)",
    "reversed": "being in the validation set in the other direction (filters.overlap)",
    "swapped": "source and target swapped",
    "repeats": "a side repeated more than filters.max_repeats times",
    "numbers": "mismatched numbers",
    "punctuation": "punctuation differing by more than filters.max_punctuation",
    "misaligned": "a target that matches a neighbouring line better",
    "language": "a side in another language",
    "length": "a side longer than filters.max_length",
    "ratio": "sides whose lengths differ by more than filters.max_ratio",
}


@dataclass
class FilterReport:
    """How many pairs were read and kept, and how many each rule filtered (`taken`)."""

    read: int = 0
    kept: int = 0
    taken: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))

    @property
    def held_out(self) -> int:
        """The number of pairs held out for validation."""
        return self.read - self.kept - sum(self.taken.values())

    def describe(self) -> str:
        """How many pairs each rule filtered, as text."""
        taken = [f"{count:,} for {RULES[rule]}" for rule, count in self.taken.items() if count]
        return ", ".join(taken) or "none"


def total(reports: Sequence[FilterReport]) -> FilterReport:
    """The counts of several corpora together."""
    taken = {rule: sum(report.taken[rule] for report in reports) for rule in reports[0].taken}
    return FilterReport(sum(report.read for report in reports), sum(report.kept for report in reports), taken)


def rule_for_text(config: FiltersConfig, source: str, target: str) -> str | None:
    """The rule that filters a pair by its text, if any."""
    if not source or not target:
        return "empty"
    if config.same and source == target:
        return "same"
    return None


def rule_for_agreement(config: FiltersConfig, source: str, target: str) -> str | None:
    """The rule that filters a pair because its sides disagree, if any."""
    if config.numbers and agreement.numbers_disagree(source, target):
        return "numbers"
    if config.max_punctuation and agreement.punctuation_difference(source, target) > config.max_punctuation:
        return "punctuation"
    return None


def rule_for_length(config: FiltersConfig, source: int, target: int) -> str | None:
    """The rule that filters a pair by its numbers of subwords, if any."""
    longer, shorter = max(source, target), min(source, target)
    if longer + 1 > config.max_length:
        return "length"
    if config.max_ratio and longer > config.max_ratio * max(shorter, 1):
        return "ratio"
    return None


class RejectedWriter:
    """Writes filtered pairs to a file, or nowhere if there is no path."""

    def __init__(self, path: Path | None):
        self.file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed in __exit__)
            self.file.write("rule\tplace\tsource\ttarget\n")

    def __enter__(self) -> "RejectedWriter":
        return self

    def __exit__(self, *error) -> None:
        if self.file is not None:
            self.file.close()

    def write(self, rule: str, line: Line) -> None:
        if self.file is not None:
            cells = (rule, line.location, line.source.replace("\t", " "), line.target.replace("\t", " "))
            self.file.write("\t".join(cells) + "\n")
