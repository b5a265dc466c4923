"""Why the learning rate warms up: four schedules, with post-norm and with pre-norm, on a task that is learned in seconds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from heed.lab import charts
from heed.lab.charts import SERIES, Table
from heed.lab.colors import ACCENT, WARM
from heed.lab.language import tr
from heed.lab.small_models import without_onednn
from heed.models.transformer import Transformer, TransformerConfig
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.loop import train
from heed.training.loss import Loss, smoothed_cross_entropy
from heed.training.schedule import Schedule, constant, cosine, inverse_root

SYMBOLS, LENGTH, ROWS = 16, 8, 32  # a batch of the task: rows of symbols, to be written backwards
START = SYMBOLS  # the first token of every target
HEADS = 4
EARLY = 10  # steps: the gradient norms and the losses of this many are averaged
COLORS = (SERIES[2], WARM, SERIES[4], ACCENT)


@dataclass(frozen=True)
class Course:
    """One training run: the loss and gradient norm at each step, the final loss, and whether it learned anything."""

    loss: list[float]
    gradient: list[float]
    final: float
    learned: bool


@dataclass(frozen=True)
class Schedules:
    """The learning rate of each schedule at each step, and its run for each placement of the norm."""

    layers: int
    dim: int
    steps: int
    warmup: int
    peak: float
    seed: int
    chance: float  # the loss of guessing
    rates: dict[str, list[float]]
    courses: dict[str, dict[str, Course]]


def measure(
    layers: int = 6, dim: int = 32, steps: int = 140, warmup: int = 35, peak: float = 0.01, seed: int = 0
) -> Schedules:
    """Train Heed's Transformer from the same weights on the same batches, once per schedule and placement of the
    norm.
    """
    if dim < HEADS or dim % HEADS:
        raise ValueError(f"dim is {dim}; it must be a multiple of {HEADS}, the number of heads")
    for name, value, least in (("layers", layers, 1), ("warmup", warmup, 1), ("steps", steps, EARLY)):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    if warmup >= steps:
        raise ValueError(f"warmup is {warmup}; it must be less than steps, {steps}")
    if not 0 < peak < math.inf:
        raise ValueError(f"peak is {peak}; it must be above 0")
    schedules = make_schedules(peak, warmup, steps)
    rates = {name: [own(step) for step in range(1, steps + 1)] for name, own in schedules.items()}
    courses = {
        norm: {name: run(norm, own, layers, dim, steps, seed) for name, own in schedules.items()}
        for norm in ("post", "pre")
    }
    return Schedules(layers, dim, steps, warmup, peak, seed, math.log(SYMBOLS), rates, courses)


def make_schedules(peak: float, warmup: int, steps: int) -> dict[str, Schedule]:
    """Heed's schedules: two that begin at the peak, and two that rise to it."""
    return {
        "constant": constant(peak, 0),
        "high, then low": cosine(peak, 0, steps),
        "warm-up, inverse root": inverse_root(peak, warmup),
        "warm-up, cosine": cosine(peak, warmup, steps),
    }


@without_onednn()
def run(norm: str, schedule: Schedule, layers: int, dim: int, steps: int, seed: int) -> Course:
    """Train one model with the loop and the optimizer of `heed train`, without clipping."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        SYMBOLS + 1, dim=dim, heads=HEADS, hidden=4 * dim, encoder_layers=layers, decoder_layers=layers,
        max_length=LENGTH, dropout=0.0, norm=norm,
    )  # fmt: skip
    model, losses, gradients = Transformer(config), [], []

    def keep(step) -> None:
        losses.append(step.nll.item() / step.count)
        gradients.append(step.gradient_norm.item())

    optimizer = make_optimizer(TrainingConfig(), model.parameters())
    train(model, reversals(seed), _loss, optimizer, schedule, steps=range(1, steps + 1), seed=seed, after_step=[keep])
    final = sum(losses[-EARLY:]) / EARLY
    return Course(losses, gradients, final, final < 0.95 * math.log(SYMBOLS))


def reversals(seed: int) -> Iterator[tuple[None, Tensor]]:
    """Batches of random symbols."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield None, torch.randint(SYMBOLS, (ROWS, LENGTH), generator=generator)


def _loss(model: nn.Module, source: Tensor) -> Loss:
    """The loss of writing the source backwards."""
    target = source.flip(1)
    before = torch.cat([torch.full_like(target[:, :1], START), target[:, :-1]], dim=1)
    return smoothed_cross_entropy(model(source, before).flatten(0, 1), target.flatten(), 0.0)[0]


def _names() -> dict[str, str]:
    """The schedules and norms in the current language."""
    return {
        "constant": tr("constant"),
        "high, then low": tr("high, then low"),
        "warm-up, inverse root": tr("warm-up, inverse root"),
        "warm-up, cosine": tr("warm-up, cosine"),
        "post": tr("post-norm"),
        "pre": tr("pre-norm"),
    }


def summary(result: Schedules) -> str:
    """The result in one sentence."""
    names = _names()
    stuck = [
        f"{names[norm]} / {names[name]}"
        for norm, courses in result.courses.items()
        for name, own in courses.items()
        if not own.learned
    ]
    if not stuck:
        return tr("At a peak of {peak:g} every schedule learns, with post-norm and with pre-norm.", peak=result.peak)
    return tr(
        "At a peak of {peak:g}, {count} of {all} runs stay at the loss of guessing, {chance:.2f}: {stuck}; the others learn.",
        peak=result.peak, count=len(stuck), all=sum(map(len, result.courses.values())), chance=result.chance,
        stuck=", ".join(stuck),
    )  # fmt: skip


def tables(result: Schedules) -> list[Table]:
    """For each run: the first and the largest gradient norm, and the loss halfway and at the end."""
    names, rows = _names(), []
    for norm, courses in result.courses.items():
        for name, own in courses.items():
            early, half = sum(own.gradient[:EARLY]) / EARLY, own.loss[len(own.loss) // 2]
            rate = result.rates[name][0]
            rows.append(
                [
                    f"{names[norm]}, {names[name]}",
                    f"{rate:.2g}",
                    f"{early:.2f}",
                    f"{max(own.gradient):.2f}",
                    f"{half:.2f}",
                    f"{own.final:.2f}",
                ]
            )
    columns = ["", tr("first rate"), tr("first gradients"), tr("largest"), tr("loss halfway"), tr("at the end")]
    title = tr(
        "{layers} + {layers} layers, dim {dim}, {steps} steps, peak {peak:g} (guessing: {chance:.2f})",
        layers=result.layers, dim=result.dim, steps=result.steps, peak=result.peak, chance=result.chance,
    )  # fmt: skip
    return [Table(title, columns, rows)]


def figure(result: Schedules) -> Figure:
    """The schedules; below, losses and gradients with post-norm and with pre-norm."""
    caption = tr(
        "A Transformer of {layers} + {layers} layers learns to write {length} symbols backwards; initial weights and batches are the same in all runs, "
        "and gradients are not clipped. The lecture notes start with a high rate and lower it. Adam's first steps are as large as the learning rate, "
        "whatever the gradient; in a post-norm stack they move all layers at once, and the model stays at the loss of guessing, however far the rate "
        "falls later. Starting low and rising over {warmup} steps avoids this. With the norm inside the residual branch (pre-norm), all of these "
        "schedules work.",
        layers=result.layers, length=LENGTH, warmup=result.warmup,
    )  # fmt: skip
    fig = charts.new_figure(tr("Why the learning rate warms up"), caption, height=8.8)
    panels = fig.subplots(3, 2, gridspec_kw={"height_ratios": [0.75, 1.2, 1.0]})
    names = _names()
    _draw(panels[0, 0], result.rates, tr("Learning rate"), names)
    _draw_final(panels[0, 1], result, names)
    for column, norm in enumerate(result.courses):
        losses = {name: own.loss for name, own in result.courses[norm].items()}
        top = max(result.chance * 1.3, max(own[0] for own in losses.values()))
        _draw(panels[1, column], losses, tr("Loss, {norm}", norm=names[norm]), names, top=top)
        panels[1, column].axhline(result.chance, color=SERIES[-1], linewidth=0.8, linestyle=":")
        gradients = {name: own.gradient for name, own in result.courses[norm].items()}
        _draw(panels[2, column], gradients, tr("Norm of the gradient, {norm}", norm=names[norm]), {})
        panels[2, column].set_yscale("log", base=2)
        panels[2, column].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panels[2, column].set_xlabel(tr("step"))
    return fig


def _draw(panel: Axes, values: dict[str, list[float]], title: str, names: dict[str, str], top: float = 0.0) -> None:
    """Lines by step, with their names if any; `top` is the upper limit of the axis, which then starts at 0."""
    charts.style_axes(panel, title)
    for color, own in zip(COLORS, values.values(), strict=True):
        charts.line(panel, range(1, len(own) + 1), own, color)
    if top:
        panel.set_ylim(0, top)
    if names:
        charts.label_line_ends(panel, [names[name] for name in values], gap=0.11)


def _draw_final(panel: Axes, result: Schedules, names: dict[str, str]) -> None:
    charts.style_axes(panel, tr("Loss at the end"))
    for at, courses in enumerate(result.courses.values()):
        for place, (color, own) in enumerate(zip(COLORS, courses.values(), strict=True)):
            x = at + (place - 1.5) * 0.21
            panel.bar(x, own.final, 0.2, color=color)
            panel.text(x, own.final + 0.04, f"{own.final:.2f}", ha="center", fontsize=8, color=color)
    panel.axhline(result.chance, color=SERIES[-1], linewidth=0.8, linestyle=":")
    panel.set_ylim(0, result.chance * 1.2)
    panel.set_xticks(range(len(result.courses)), [names[norm] for norm in result.courses])
