"""Advice from the curves of a run: whether it learned too little, too much, or too fast."""

from dataclasses import dataclass

from heed.runs.report.findings import Advice, Findings
from heed.runs.report.log import LAST, Points
from heed.runs.report.settings import can_sample_subwords, either

IMPROVING = 0.01  # relative gain over the last quarter of training from which it had not converged
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
        f"Lower the learning rate (its peak was {rate:.2g}) or lengthen the warm-up ({f.recipe.training.warmup:,} steps).",
        f"--set training.rate={f.recipe.training.rate / 2:g}",
    )


def still_improving(f: Findings) -> Advice | None:
    found = _last_quarter(f)
    if found is None or found.step_of_best != found.last[0] or found.gain < IMPROVING:
        return None
    steps = 2 * f.log.steps
    rates = [rate for _, rate in f.log.rate]
    measured = (
        f"The {found.label} was best at the very end: {found.show(found.before[1])} at step {found.before[0]:,.0f}, "
        f"{found.show(found.last[1])} at step {found.last[0]:,.0f}."
    )
    if rates and rates[-1] < LOWEST_RATE * max(rates):
        action = f"Train longer. The learning rate had fallen to {rates[-1]:.2g} by then, so begin a new run with more steps."
        return Advice("still improving", measured, action, f"--set training.steps={steps}")
    command = f"heed train --out {f.folder} --resume --set training.steps={steps}"
    return Advice("still improving", measured, "Train longer.", command)


def best_early(f: Findings) -> Advice | None:
    found = _last_quarter(f)
    if found is None or found.step_of_best > 0.75 * found.last[0] or found.loss_since_best < IMPROVING:
        return None
    patience = f.recipe.training.patience
    return Advice(
        "best early",
        f"The {found.label} was best at step {found.step_of_best:,.0f} ({found.show(found.best)}) and "
        f"{found.show(found.last[1])} at step {found.last[0]:,.0f}: the rest of the training made it no better.",
        "Stop earlier." if patience else "Stop when several validations bring nothing better.",
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
        f"At the end the training loss was {train:.2f} and the validation loss {valid[-1][1]:.2f}: the model knows its "
        "training text better than the language.",
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
        f"The training loss stayed where it was over the last quarter ({before:.2f}, then {means[-1]:.2f}) and is not "
        f"below the validation loss ({valid[-1][1]:.2f}): the model cannot learn more of this text.",
        f"Use a larger model (model.dim is {f.model.get('dim')}){less}.",
    )


@dataclass(frozen=True)
class _LastQuarter:
    """The chosen metric over the last quarter of training; `gain` and `loss_since_best` are in proportion."""

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


def _last_quarter(f: Findings) -> _LastQuarter | None:
    """None with fewer than three validations: two points are no curve."""
    metric = next(metric for metric in f.recipe.task.metrics if metric.name == f.metric)
    points, sign = f.log.valid.get(f.metric, ()), 1 if metric.higher_is_better else -1
    if len(points) < 3:
        return None
    before = [point for point in points if point[0] <= 0.75 * points[-1][0]][-1:] or [points[0]]
    best = max(points, key=lambda point: (sign * point[1], -point[0]))
    gain = sign * (points[-1][1] - before[0][1]) / max(abs(before[0][1]), 1e-9)
    lost = sign * (best[1] - points[-1][1]) / max(abs(best[1]), 1e-9)
    label = "validation loss" if metric.name == "loss" else metric.label
    return _LastQuarter(label, metric.decimals, before[0], points[-1], *best, gain, lost)


def _means(points: Points) -> list[float]:
    """The means of each ten log lines, counted from the end."""
    values = [value for _, value in points]
    values = values[len(values) % LAST :]
    return [sum(values[at : at + LAST]) / LAST for at in range(0, len(values), LAST)]
