"""Inductive bias: convolution, recurrence and attention with equally many weights, on tasks that favour each."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

from heed.lab import charts
from heed.lab.charts import Table
from heed.lab.colors import ACCENT, INK, MUTED, WARM
from heed.lab.experiments.bias_tasks import BODIES, HEADS, TASKS, Batch, Network, Task
from heed.lab.language import tr
from heed.lab.small_models import without_onednn
from heed.training import schedule
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.loop import train
from heed.training.loss import Loss, smoothed_cross_entropy

BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # a number: the line of chance does not cross it
TESTED = 500  # rows of a test
COLORS = {"convolution": WARM, "recurrence": "#7d5ba6", "attention": ACCENT}


@dataclass(frozen=True)
class Accuracy:
    """The share of correct answers in situations as in training, and in new ones."""

    seen: float
    new: float


@dataclass(frozen=True)
class Bias:
    """The weights of each body, and its accuracy on each task."""

    dim: int
    steps: int
    rows: int
    seed: int
    weights: dict[str, int]
    chance: dict[str, float]
    accuracy: dict[str, dict[str, Accuracy]]


def measure(dim: int = 32, steps: int = 200, rows: int = 64, seed: int = 0) -> Bias:
    """Train every network on every task, and test it in trained and in new situations."""
    if dim < HEADS or dim % HEADS or dim % 2:
        raise ValueError(f"dim is {dim}; it must be a multiple of {HEADS}, the number of heads")
    for name, value in (("steps", steps), ("rows", rows)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    accuracy = {
        name: {body: run(task, body, dim, steps, rows, seed) for body in BODIES} for name, task in TASKS.items()
    }
    weights = {name: sum(part.numel() for part in build(dim).parameters()) for name, build in BODIES.items()}
    chance = {name: 1 / task.labels for name, task in TASKS.items()}
    return Bias(dim, steps, rows, seed, weights, chance, accuracy)


@without_onednn()
def run(task: Task, body: str, dim: int, steps: int, rows: int, seed: int) -> Accuracy:
    """Train one network on one task."""
    torch.manual_seed(seed)
    network = Network(BODIES[body](dim), task.symbols, task.labels, dim, task.pooled)
    optimizer = make_optimizer(TrainingConfig(), network.parameters())
    rates = schedule.cosine(5e-3, max(1, steps // 10), steps)
    train(network, _batches(task, rows, seed), _loss, optimizer, rates, steps=range(1, steps + 1), clip=1.0, seed=seed)
    return Accuracy(*(_accuracy(network, task, new, seed) for new in (False, True)))


def _batches(task: Task, rows: int, seed: int) -> Iterator[tuple[None, Batch]]:
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield None, task.draw(rows, False, generator)


def _loss(network: nn.Module, batch: Batch) -> Loss:
    tokens, labels = batch
    known = labels >= 0
    return smoothed_cross_entropy(network(tokens)[known], labels[known], 0.0)[0]


@torch.no_grad()
def _accuracy(network: nn.Module, task: Task, new: bool, seed: int) -> float:
    """The share of correct answers in rows never drawn in training."""
    network.eval()
    tokens, labels = task.draw(TESTED, new, torch.Generator().manual_seed(seed + 1_000_003))
    known = labels >= 0
    return (network(tokens)[known].argmax(-1) == labels[known]).double().mean().item()


def _names() -> dict[str, str]:
    """Networks and tasks in the current language."""
    return {
        "convolution": tr("convolution"),
        "recurrence": tr("recurrence"),
        "attention": tr("attention"),
        "shifted pattern": tr("shifted pattern"),
        "running state": tr("running state"),
        "recall": tr("recall"),
    }


def _situations() -> dict[str, tuple[str, str]]:
    """The training situation and the new situation, by task."""
    return {
        "shifted pattern": (tr("begins early"), tr("begins late")),
        "running state": (tr("16 symbols"), tr("32 symbols")),
        "recall": (tr("6 pairs"), tr("12 pairs")),
    }


def best(result: Bias, task: str) -> str:
    """The network that is correct most often in the new situation."""
    return max(result.accuracy[task], key=lambda body: result.accuracy[task][body].new)


def summary(result: Bias) -> str:
    """The result in one sentence."""
    names = _names()
    winners = [
        tr("{task}: {body} ({right:.0%})", task=names[task], body=names[best(result, task)], right=result.accuracy[task][best(result, task)].new)
        for task in TASKS
    ]  # fmt: skip
    return tr("Best in situations not seen in training: {winners}.", winners=", ".join(winners))


def tables(result: Bias) -> list[Table]:
    """Accuracies by task and network, with what was expected."""
    names, situations, rows = _names(), _situations(), []
    for task, bodies in result.accuracy.items():
        for body, own in bodies.items():
            expected = tr("yes") if body in TASKS[task].favours else tr("no")
            seen, new = situations[task]
            rows.append(
                [
                    f"{names[task]}, {names[body]}",
                    expected,
                    f"{own.seen:.1%} ({seen})",
                    f"{own.new:.1%} ({new})",
                    f"{result.chance[task]:.0%}",
                ]
            )
    columns = ["", tr("expected to do well"), tr("as in training"), tr("new situation"), tr("by chance")]
    title = tr("Accuracy after {steps} steps with batches of {rows} rows", steps=result.steps, rows=result.rows)
    weights = [[names[body], f"{count:,}"] for body, count in result.weights.items()]
    return [Table(title, columns, rows), Table(tr("Weights"), ["", tr("count")], weights)]


def figure(result: Bias) -> Figure:
    """A panel for each task: the accuracy of each network in both situations."""
    caption = tr(
        "Three networks with nearly the same number of weights learn three tasks; each is tested in situations as in training (pale) and in new ones "
        "(full colour): recognizing a pattern where it never occurred in training, keeping a running state over twice the length, and recalling one of "
        "twelve pairs after training with six. The lecture notes name the bias of recurrence: temporal invariance and locality, from its Markov "
        "structure. The same step is applied everywhere, and only the previous state matters. The dotted line is chance.",
    )  # fmt: skip
    fig = charts.new_figure(tr("Inductive bias: what a network assumes before training"), caption, height=5.6)
    names, situations = _names(), _situations()
    for panel, (task, bodies) in zip(fig.subplots(1, 3, sharey=True), result.accuracy.items(), strict=True):
        charts.style_axes(panel, names[task], " → ".join(situations[task]))
        _bars(panel, [names[body] for body in bodies], {COLORS[body]: own for body, own in bodies.items()})
        panel.axhline(result.chance[task], color=INK, linewidth=0.9, linestyle=":")
    return fig


def _bars(panel: Axes, names: list[str], accuracies: dict[str, Accuracy]) -> None:
    for at, (color, own) in enumerate(accuracies.items()):
        for x, value, alpha in ((at - 0.2, own.seen, 0.35), (at + 0.2, own.new, 1.0)):
            panel.bar(x, value, 0.38, color=color, alpha=alpha)
            panel.text(x, value + 0.012, f"{value:.0%}", ha="center", fontsize=8.2, color=MUTED, bbox=BEHIND, zorder=3)
    panel.set_xticks(range(len(names)), names)
    panel.set_ylim(0, 1.08)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
