"""The end of a run: the final model, from the weights that the recipe specifies."""

from contextlib import nullcontext
from typing import Any

from torch import nn

from heed.runs.stopping import GivenUp
from heed.tasks.base import ValidationResult
from heed.training.average import Weights, temporary_weights

Run = Any  # that of run.py, which calls this


WRITING = 2.0  # seconds
OPTIONAL = 0.1  # share of a short budget that is kept for tuning the search and for the additional files of the model
REPORT = 1.0, 0.005  # seconds of a report, and for each validated text


def expected_seconds(run: Run, validation: float) -> float:
    """The seconds from the last validation to the end of the command, if a validation takes as many as given; half a
    validation is a margin.
    """
    averaged = run.recipe.training.final in ("average-best", "average-last")
    optional = sum(_optional(run)) * validation
    if run.ending.is_short:
        optional = min(optional, OPTIONAL * run.ending.seconds)
    return (0.5 + averaged) * validation + optional + _needed(run)


def _optional(run: Run) -> tuple[float, float]:
    """What tuning the search and the additional files take, in validations."""
    beam = getattr(run.recipe.decoding, "beam", 1)
    return run.task.final_costs(run.prepared, run.validation, beam, bool(run.files.base))


def _needed(run: Run) -> float:
    """Seconds for writing the model and the report."""
    once, each = REPORT if run.command.reports and run.task.searches else (0.0, 0.0)
    return WRITING + once + each * run.validation.size


def finish(run: Run, model: nn.Module) -> bool:
    """Create the final model, and validate it if its weights were not validated yet; False if interrupted by a signal."""
    weights, found, made_of = _final_weights(run)
    with temporary_weights(model, weights) if weights else nullcontext():
        try:
            with run.stopping.given_up_if_asked():
                found = found or run.validate(model)
                search, chosen = run.final_search(model, run.ending.left_for_options(_needed(run))) or (None, "")
        except GivenUp:
            return False
        whole = _has_time_for_files(run)
        run.files.write_model(model, found, made_of, final=whole, search=search)
    h, t = run.history, run.recipe.training
    ended = {"ended_by": h.ended_by or ("patience" if h.stopped else "steps"), "cooldown_from": h.cooldown_from}
    run.log.write("end", step=run.step, weights=made_of, **ended, **found.scores)
    score, step = h.best_model() if t.final == "best-ema" else h.best[0]
    before = ", before the run was extended" if [score, step] == h.finished else ""
    run.report.say(f"Best checkpoint: step {step:,} ({run.task.describe_score(score, t.metric)}){before}.")
    run.report.say(f"Final model: {made_of}; validation {run.task.describe(found.scores)}.")
    if chosen:
        run.report.say(chosen)
    if not whole:
        run.report.say(f"Left out, since the time is used up: {', '.join(run.task.final_names)}.")
    return True


def _has_time_for_files(run: Run) -> bool:
    """Whether a short budget has time for the additional files of the model, if there are any."""
    left, cost = run.ending.left_for_options(_needed(run)), _optional(run)[1]
    return left is None or not cost or cost * run.ending.validation <= left


def _final_weights(run: Run) -> tuple[Weights, ValidationResult | None, str]:
    """The mean of the checkpoints that the recipe specifies, or nothing for the last weights; the results of their
    validation, if they are known; and their description.
    """
    t = run.recipe.training
    if t.final == "best-ema":
        return run.files.read_best(run.history)
    kept = run.files.kept(run.history)
    if len(kept) < len(run.files.needed(run.history)):
        run.report.say("Some checkpoints for averaging are missing: training.final or average has changed.")
    steps = ", ".join(f"{step:,}" for step in kept)
    last = "moving average at step" if t.final == "ema" else "step"
    made_of = f"step {steps}" if len(kept) == 1 else f"mean of steps {steps}" if kept else f"{last} {run.step:,}"
    found = run.results.get(next(iter(kept), run.step)) if len(kept) < 2 else None
    return run.files.mean(kept.values()) if kept else {}, found, made_of
