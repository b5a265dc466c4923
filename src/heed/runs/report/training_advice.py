"""Advice based on the curves of a run: underfitting, overfitting, or too high a learning rate."""

from dataclasses import dataclass

from heed.runs.report.findings import Advice, Findings
from heed.runs.report.log import LAST, Points
from heed.runs.report.settings import can_sample_subwords, either
from heed.tasks.base import Metric
from heed.training.duration import as_setting, in_words, seconds_of

IMPROVING = 0.01  # relative gain over the last quarter of training from which it had not converged
LEAST_TIME = 300.0  # seconds: of a shorter extension, the start, the validations and the report take most
LOWEST_RATE = 0.05  # of its peak: below it, a schedule has ended, and more steps at that rate change little
GAP, LEAST_GAP = 0.2, 0.3  # how far the training loss is below the validation loss: in proportion, and in nats
DIVERGED = 1.1  # how far above its lowest value the training loss may end


def diverged(f: Findings) -> Advice | None:
    means = _means(f.log.train)
    if len(means) < 3 or means[-1] <= DIVERGED * (low := min(means)):
        return None
    rate = max(value for _, value in f.log.rate) if f.log.rate else f.recipe.training.rate
    return Advice(
        "diverged",
        f"The training loss rose again, from {low:.2f} at its lowest to {means[-1]:.2f} at the end.",
        f"Lower the learning rate (its peak was {rate:.2g}) or use a longer warm-up (now {f.recipe.training.warmup:,} "
        "steps).",
        f"--set training.rate={f.recipe.training.rate / 2:g}",
    )


def out_of_time(f: Findings) -> Advice | None:
    """A run that its time ended while it still improved: everything else is to be judged when it was trained longer.
    As in `still_improving`, what the cool-down gained does not count.
    """
    if f.log.ended_by != "time" or not f.recipe.training.time or (slope := _slope(f)) is None:
        return None
    words = in_words(seconds_of(f.recipe.training.time))
    return Advice("out of time", f"The run ended because its time, {words}, was over, while {slope}.", *_longer(f))


def _slope(f: Findings) -> str | None:
    """How fast the run improved in the last quarter before the cool-down, if it did: the metric, else the validation
    loss, else, with fewer than two validations until then, the training loss. Where not even that was logged twice, the
    first pass over the text says enough.
    """
    last, metric = f.log.cooldown_from or f.log.steps, _metric(f)
    loss = next(own for own in f.recipe.task.metrics if own.name == "loss")._replace(label="validation loss")
    curves = [(loss if own.name == "loss" else own, f.log.valid.get(own.name, ())) for own in (metric, loss)]
    validated = [(own, until) for own, points in curves if len(until := [p for p in points if p[0] <= last]) > 1]
    train = [point for point in f.log.train if point[0] <= last]
    known = validated or [(loss._replace(label="training loss"), _smooth(train))]
    if len(known[0][1]) < 2 and f.log.epochs == 1:
        return f"it was in its first pass over the training text, at step {f.log.steps:,}"
    return next(filter(None, (_rise(own, points) for own, points in known)), None)


def _smooth(points: Points) -> Points:
    """The mean of each quarter, at its end; the points themselves if there are fewer than two in each."""
    size = len(points) // 4
    if size < 2:
        return points
    parts = [points[len(points) - (at + 1) * size : len(points) - at * size] for at in (3, 2, 1, 0)]
    return [(part[-1][0], sum(value for _, value in part) / len(part)) for part in parts]


def _rise(metric: Metric, points: Points) -> str | None:
    """The gain of the last quarter per hundred steps, if the last point is the best and the gain large enough."""
    if len(points) < 2 or _best(points, metric)[0] != points[-1][0]:
        return None
    (start, before), (end, after) = (
        ([p for p in points if p[0] <= 0.75 * points[-1][0]][-1:] or points[:1])[0],
        points[-1],
    )
    if abs(after - before) < IMPROVING * max(abs(before), 1e-9):
        return None
    way = "rose" if after > before else "fell"
    return (
        f"the {metric.label} still {way} by {100 * abs(after - before) / (end - start):.{metric.decimals}f} per 100 "
        f"steps: {before:.{metric.decimals}f} at step {start:,.0f}, {after:.{metric.decimals}f} at step {end:,.0f}"
    )


def still_improving(f: Findings) -> Advice | None:
    """Before the cool-down, if there was one: during it, every run improves."""
    if f.log.ended_by == "time":
        return None  # see out_of_time
    found = _last_quarter(f, f.log.cooldown_from or f.log.steps)
    if found is None or found.step_of_best != found.last[0] or found.gain < IMPROVING:
        return None
    when = "when the learning rate began to decay" if f.log.cooldown_from else "at the very end"
    measured = (
        f"The {found.label} was best {when}: {found.show(found.before[1])} at step {found.before[0]:,.0f}, "
        f"{found.show(found.last[1])} at step {found.last[0]:,.0f}."
    )
    return Advice("still improving", measured, *_longer(f))


def _longer(f: Findings) -> tuple[str, str]:
    """What to do, and the command: runs are resumed if possible."""
    resume, steps = f"heed train --out {f.folder} --resume", f"--set training.steps={2 * f.log.steps}"
    if not f.log.finished:
        return "Resume the run: it has not finished.", resume
    if f.log.cooldown_from:
        spent = max(LEAST_TIME, seconds_of(f.recipe.training.time) if f.recipe.training.time else f.log.seconds)
        more = f"--time +{as_setting(spent)}" if f.log.ended_by == "time" else steps
        return "Train longer: the run continues from before the learning rate decay.", f"{resume} {more}"
    rates = [rate for _, rate in f.log.rate]
    if rates and rates[-1] < LOWEST_RATE * max(rates):
        return (
            f"Train longer. The learning rate had decayed to {rates[-1]:.2g} by then, so start a new run with more "
            "steps.",
            steps,
        )
    return "Train longer.", f"{resume} {steps}"


def more_patience(f: Findings) -> Advice | None:
    """A run whose metric stood still while its validation loss was still falling."""
    last, patience, metric = f.log.cooldown_from or f.log.steps, f.recipe.training.patience, _metric(f)
    points = [point for point in f.log.valid.get(metric.name, ()) if point[0] <= last]
    losses = {step: loss for step, loss in f.log.valid.get("loss", ()) if step <= last}
    if f.log.ended_by != "patience" or metric.name == "loss" or not points or not losses:
        return None
    best = _best(points, metric)[0]
    if best not in losses or losses[best] - losses[max(losses)] < IMPROVING * losses[best]:
        return None
    return Advice(
        "more patience",
        f"Training ended because the {metric.label} was no better in {patience:,} validations, but the validation loss "
        f"was still falling: {losses[best]:.3f} at step {best:,.0f}, {losses[max(losses)]:.3f} at step "
        f"{max(losses):,.0f}.",
        "Allow more validations without improvement: the run continues from there.",
        f"heed train --out {f.folder} --resume --set training.patience={2 * patience}",
    )


def best_early(f: Findings) -> Advice | None:
    found = _last_quarter(f, f.log.steps)
    if found is None or found.step_of_best > 0.75 * found.last[0] or found.loss_since_best < IMPROVING:
        return None
    if _loss_fell_since(f, found.step_of_best):
        return None  # the model was still learning: early in training, the metric is mostly noise
    patience = f.recipe.training.patience
    return Advice(
        "best early",
        f"The {found.label} was best at step {found.step_of_best:,.0f} ({found.show(found.best)}) and "
        f"{found.show(found.last[1])} at step {found.last[0]:,.0f}: further training did not improve it.",
        "Stop earlier." if patience else "Stop when several validations bring no improvement.",
        f"--set training.patience={max(1, patience // 2) if patience else 3}",
    )


def overfitted(f: Findings) -> Advice | None:
    train, valid = f.log.final_train_loss, f.log.valid.get("loss")
    if train is None or not valid or valid[-1][1] - train < max(LEAST_GAP, GAP * valid[-1][1]):
        return None
    dropout = f.model.get("dropout")
    ways = [f"more dropout (it is {dropout:g})"] if dropout is not None else []
    command = f"--set model.dropout={min(0.5, dropout + 0.1):g}" if dropout is not None and dropout < 0.5 else ""
    if getattr(f.recipe.task.settings, "r_drop", None) == 0:
        ways.append("R-Drop (--set task.r_drop=5)")
    if can_sample_subwords(f):
        ways.append("BPE-dropout (--set subwords.sampling=0.1)")
    return Advice(
        "overfitted",
        f"At the end the training loss was {train:.2f} and the validation loss {valid[-1][1]:.2f}: the model is "
        "overfitting.",
        f"Use {either([*ways, 'more data'])}.",
        command,
    )


def too_small(f: Findings) -> Advice | None:
    train, valid, means = f.log.final_train_loss, f.log.valid.get("loss"), _means(f.log.train)
    if train is None or not valid or len(means) < 8 or train < valid[-1][1]:
        return None
    before = means[3 * len(means) // 4 - 1]
    if before - means[-1] >= IMPROVING * before:
        return None
    dropout = f.model.get("dropout")
    less = f", or less dropout (it is {dropout:g})" if dropout else ""
    return Advice(
        "too small",
        f"The training loss was flat over the last quarter ({before:.2f}, then {means[-1]:.2f}) and is not below the "
        f"validation loss ({valid[-1][1]:.2f}): the model is too small for this text.",
        f"Use a larger model (model.dim is {f.model.get('dim')}){less}.",
    )


def _loss_fell_since(f: Findings, step: float) -> bool:
    """Whether the validation loss was clearly lower at the end than at this step."""
    losses = dict(f.log.valid.get("loss", ()))
    return step in losses and losses[step] - losses[max(losses)] >= IMPROVING * losses[step]


@dataclass(frozen=True)
class _LastQuarter:
    """The chosen metric over the last quarter of training; `gain` and `loss_since_best` are relative."""

    label: str
    decimals: int
    before: tuple[float, float]
    last: tuple[float, float]
    step_of_best: float
    best: float
    gain: float
    loss_since_best: float

    def show(self, value: float) -> str:
        return f"{value:.{self.decimals}f}"


def _metric(f: Findings) -> Metric:
    return next(metric for metric in f.recipe.task.metrics if metric.name == f.metric)


def _best(points: Points, metric: Metric) -> tuple[float, float]:
    """The step and value of the best validation; the first in case of ties."""
    sign = 1 if metric.higher_is_better else -1
    return max(points, key=lambda point: (sign * point[1], -point[0]))


def _last_quarter(f: Findings, last: int) -> _LastQuarter | None:
    """For the steps up to `last`. None with fewer than three validations: two points are not a curve."""
    metric = _metric(f)
    points = [point for point in f.log.valid.get(f.metric, ()) if point[0] <= last]
    sign = 1 if metric.higher_is_better else -1
    if len(points) < 3:
        return None
    before = [point for point in points if point[0] <= 0.75 * points[-1][0]][-1:] or [points[0]]
    best = _best(points, metric)
    gain = sign * (points[-1][1] - before[0][1]) / max(abs(before[0][1]), 1e-9)
    lost = sign * (best[1] - points[-1][1]) / max(abs(best[1]), 1e-9)
    label = "validation loss" if metric.name == "loss" else metric.label
    return _LastQuarter(label, metric.decimals, before[0], points[-1], *best, gain, lost)


def _means(points: Points) -> list[float]:
    """The means of each ten log lines, counted from the end."""
    values = [value for _, value in points]
    values = values[len(values) % LAST :]
    return [sum(values[at : at + LAST]) / LAST for at in range(0, len(values), LAST)]
