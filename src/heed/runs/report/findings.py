"""The contents of a report: everything that was measured, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heed.data.contamination import Seen
from heed.data.filters import FilterReport
from heed.evaluation.analysis import Analysis
from heed.evaluation.comparison import Comparison
from heed.evaluation.sentence_scores import SentenceScore
from heed.evaluation.translation import Scores
from heed.runs.recipe import Recipe
from heed.runs.report.log import TrainingLog

Outputs = Sequence[tuple[str, str, str]]  # (source, reference, translation)


@dataclass(frozen=True)
class SetScores:
    """The scores of one set of sentences; `half_widths` of the 95 % intervals are by metric: bleu, chrf. Whether loops were
    searched again (`guarded`).
    """

    name: str
    scores: Scores
    half_widths: Mapping[str, float]
    beam: int
    guarded: bool = False


@dataclass(frozen=True)
class TrainingText:
    """Statistics of the training text. `counted`: how many of its `pairs` were read. `frequencies` are those of
    reference words.
    """

    pairs: int
    counted: int
    frequencies: Mapping[str, int]


@dataclass(frozen=True)
class Against:
    """Another run on the same sentences: the first system of the comparison; this run is the second."""

    name: str
    comparison: Comparison


@dataclass(frozen=True)
class Findings:
    """Everything about one run. The parts of translation are empty for other tasks.

    `sentences`, `analysis` and `seen` (how many were trained on) are of the last of `sets`: the test set if there is
    one, else the validation set.
    `notes` say what could not be measured, and why.
    """

    folder: Path
    title: str  # what the model is
    recipe: Recipe
    log: TrainingLog
    model: Mapping  # its config
    final: Mapping[str, float]
    data: Mapping[str, str]
    filters: FilterReport | None = None
    sets: Sequence[SetScores] = ()
    sentences: Sequence[SentenceScore] = ()
    analysis: Analysis | None = None
    text: TrainingText | None = None
    seen: Seen | None = None
    against: Against | None = None
    notes: Sequence[str] = field(default_factory=list)

    @property
    def metric(self) -> str:
        """The metric that determines the best model."""
        chosen = self.recipe.training.metric
        return self.recipe.task.best if chosen == "auto" else chosen


@dataclass(frozen=True)
class Advice:
    """What was measured, and what to do about it. A `command` is complete except for what only the user knows."""

    name: str
    measured: str
    action: str
    command: str = ""
