"""What to try next. Each piece of advice is based on a measurement of the run, with its numbers in the sentence."""

from collections.abc import Callable

from heed.runs.report import output_advice as outputs
from heed.runs.report import training_advice as training
from heed.runs.report.findings import Advice, Findings

RULES: tuple[Callable[[Findings], Advice | None], ...] = (
    training.out_of_time, training.diverged, training.still_improving, training.more_patience, training.best_early, training.overfitted, training.too_small,
    outputs.overlap, outputs.wide_interval, outputs.filtered, outputs.unseen_words, outputs.rare_words,
    outputs.length, outputs.loops, outputs.copies, outputs.empty, outputs.numbers, outputs.long_sources,
)  # fmt: skip


def advise(findings: Findings) -> list[Advice]:
    """All advice that the measurements call for, the most general first."""
    return [advice for rule in RULES if (advice := rule(findings)) is not None]
