"""Positions: the properties of the sinusoids of Vaswani et al. (2017), compared with learned positions."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from heed.lab import charts
from heed.lab.charts import Table
from heed.lab.colors import ACCENT, INK, WARM
from heed.lab.language import tr
from heed.nn.positions import Sinusoidal

# Distances between ten positions of width ten, as the lecture notes print them.
NOTES = [
    [0.000, 1.275, 2.167, 2.823, 3.361, 3.508, 3.392, 3.440, 3.417, 3.266],
    [1.275, 0.000, 1.104, 2.195, 3.135, 3.511, 3.452, 3.442, 3.387, 3.308],
    [2.167, 1.104, 0.000, 1.296, 2.468, 3.067, 3.256, 3.464, 3.498, 3.371],
    [2.823, 2.195, 1.296, 0.000, 1.275, 2.110, 2.746, 3.399, 3.624, 3.399],
    [3.361, 3.135, 2.468, 1.275, 0.000, 1.057, 2.176, 3.242, 3.659, 3.434],
    [3.508, 3.511, 3.067, 2.110, 1.057, 0.000, 1.333, 2.601, 3.169, 3.118],
    [3.392, 3.452, 3.256, 2.746, 2.176, 1.333, 0.000, 1.338, 2.063, 2.429],
    [3.440, 3.442, 3.464, 3.399, 3.242, 2.601, 1.338, 0.000, 0.912, 1.891],
    [3.417, 3.387, 3.498, 3.624, 3.659, 3.169, 2.063, 0.912, 0.000, 1.277],
    [3.266, 3.308, 3.371, 3.399, 3.434, 3.118, 2.429, 1.891, 1.277, 0.000],
]


@dataclass(frozen=True)
class VectorStats:
    """Position vectors, their norms, and the least, mean and greatest distance between two by offset."""

    values: list[list[float]]
    norms: list[float]
    least: list[float]
    mean: list[float]
    greatest: list[float]


@dataclass(frozen=True)
class Positions:
    """The sinusoids (`waves`) at `dim`; the distances of the lecture notes, by the formula, and `rebuilt` as theirs were."""

    dim: int
    length: int
    waves: VectorStats
    expected_norm: float
    notes: list[list[float]]
    formula: list[list[float]]
    rebuilt: list[list[float]]
    notes_norms: list[float]
    learned: VectorStats | None
    model: str | None

    @property
    def rises_until(self) -> int:
        """The offset up to which the mean distance grows with every step."""
        steps = zip(self.waves.mean, self.waves.mean[1:], strict=False)
        return next((offset for offset, (near, far) in enumerate(steps) if far <= near), len(self.waves.mean) - 1)


def measure(
    dim: int = 64, length: int = 64, learned: Float[Tensor, "positions width"] | None = None, model: str | None = None
) -> Positions:
    """Norms and distances of the sinusoids, and of `learned` positions if given."""
    if dim < 2 or dim % 2:
        raise ValueError(f"dim is {dim}; it must be even: one sine and one cosine per frequency")
    if length < 2:
        raise ValueError(f"length is {length}; it must be at least 2, or there are no distances")
    notes = notes_vectors(10, 10)
    return Positions(
        dim=dim,
        length=length,
        waves=describe(Sinusoidal(length, dim)(0, length).double()),
        expected_norm=math.sqrt(dim / 2),
        notes=NOTES,
        formula=distances(Sinusoidal(10, 10)(0, 10).double()).tolist(),
        rebuilt=distances(notes).tolist(),
        notes_norms=notes.norm(dim=1).tolist(),
        learned=None if learned is None else describe(learned[:length].double()),
        model=model,
    )


def describe(vectors: Float[Tensor, "t dim"]) -> VectorStats:
    """The norms and distances of position vectors."""
    table = distances(vectors)
    by_offset = [table.diagonal(offset) for offset in range(len(vectors))]
    stats = ([statistic(values).item() for values in by_offset] for statistic in (torch.min, torch.mean, torch.max))
    return VectorStats(vectors.tolist(), vectors.norm(dim=1).tolist(), *stats)


def distances(vectors: Float[Tensor, "t dim"]) -> Float[Tensor, "t t"]:
    """The distances between all vectors; from differences, since torch's cdist may use squares and lose digits."""
    return (vectors[:, None] - vectors[None]).norm(dim=-1)


def notes_vectors(length: int, columns: int) -> Float[Tensor, "length columns"]:
    """The vectors whose distances the lecture notes print: each column j has its own frequency, 10000^(-2j/100).

    In the formula, columns 2i and 2i + 1 are sine and cosine of one frequency, and the exponent is 2i/10.
    """
    j = torch.arange(columns, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (-2 * j / 100)
    return torch.where(j % 2 == 0, angle.sin(), angle.cos())


def summary(result: Positions) -> str:
    """The result in one sentence."""
    text = tr(
        "Every position vector has the norm √({dim}/2) = {norm:.3f}, and the distance between two depends only on their offset; it grows up to offset "
        "{offset}.",
        dim=result.dim,
        norm=result.expected_norm,
        offset=result.rises_until,
    )
    if result.learned is not None:
        low, high = min(result.learned.norms), max(result.learned.norms)
        learned = tr(
            "The learned positions of {model} have norms from {low:.3f} to {high:.3f}.",
            model=result.model,
            low=low,
            high=high,
        )
        text = f"{text} {learned}"
    return text


def tables(result: Positions) -> list[Table]:
    """Distances by offset, and the first row of the lecture notes' table against the formula."""
    offsets = [offset for offset in (1, 2, 3, 4, 8, 16, 32, 64, 128, 256) if offset < result.length]
    columns = [tr("offset"), tr("sinusoids: minimum"), tr("maximum")]
    rows = [[str(o), f"{result.waves.least[o]:.4f}", f"{result.waves.greatest[o]:.4f}"] for o in offsets]
    if result.learned is not None:
        columns += [tr("learned: minimum"), tr("mean"), tr("maximum")]
        stats = (result.learned.least, result.learned.mean, result.learned.greatest)
        for row, o in zip(rows, offsets, strict=True):
            row += [f"{values[o]:.4f}" if o < len(values) else "" for values in stats]
    columns_of_first = [
        tr("positions"),
        tr("lecture notes"),
        tr("frequency 10000^(-2j/100) in column j"),
        tr("formula"),
    ]
    first_rows = zip(result.notes[0], result.rebuilt[0], result.formula[0], strict=True)
    first = charts.table_rows({tr("1 to {k}", k=k): distances for k, distances in enumerate(first_rows, 1)}, ".3f")
    return [
        Table(tr("Distance between two positions, dim {dim}", dim=result.dim), columns, rows),
        Table(tr("Ten positions, dim 10: the first row"), columns_of_first, first),
    ]


def figure(result: Positions) -> Figure:
    """Sinusoids, norms and distances; the two tables of ten positions; learned positions if there are any."""
    rows = 3 if result.learned is not None else 2
    caption = tr(
        "Each column of the map is a wave, from high frequencies on the left to low ones on the right. The sine and cosine of one frequency are a point "
        "on a circle: so all norms are equal, and shifting both positions rotates the circle and leaves their distance unchanged. In the table of the "
        "lecture notes each column has its own frequency, so there are no circles, and norms and distances vary. All its 100 cells follow if column j "
        "is sin or cos(position · 10000^(−2j/100)); by the formula it would be the table on the right."
    )
    if result.learned is not None:
        below = tr("Bottom: positions that a model has learned; those that few training texts reached are still close to their initial values.")  # fmt: skip
        caption = f"{caption} {below}"
    fig = charts.new_figure(tr("Positions as waves"), caption, height=4.1 * rows)
    grid = fig.add_gridspec(rows, 6)
    title = tr("Sinusoids, {length} positions × {dim} columns", length=result.length, dim=result.dim)
    _heatmap(fig.add_subplot(grid[0, :2]), result.waves, title)
    _norms(fig.add_subplot(grid[0, 2:4]), result)
    _offsets(fig.add_subplot(grid[0, 4:]), result)
    _cells(fig.add_subplot(grid[1, :3]), result.notes, tr("Ten positions, dim 10: the lecture notes"))
    _cells(fig.add_subplot(grid[1, 3:]), result.formula, tr("The same by the formula: one value per diagonal"))
    if result.learned is not None:
        _learned(fig, grid, result)
    return fig


def _heatmap(panel, vectors: VectorStats, title: str) -> None:
    top = max(abs(value) for row in vectors.values for value in row)
    charts.heatmap(panel, vectors.values, charts.DIVERGING, -top, top, title, tr("column"), tr("position"))


def _norms(panel, result: Positions) -> None:
    charts.style_axes(panel, tr("Norm by position, dim 10"), tr("position"))
    charts.line(panel, range(10), [math.sqrt(5)] * 10, ACCENT, marker="o")
    charts.line(panel, range(10), result.notes_norms, WARM, marker="o")
    panel.set_ylim(1.8, 2.5)
    charts.note(panel, 0.04, 0.80, tr("formula: √(10/2) everywhere"), color=ACCENT)
    charts.note(panel, 0.04, 0.06, tr("frequencies of the notes' table"), color=WARM)


def _offsets(panel, result: Positions) -> None:
    charts.style_axes(panel, tr("Distance by offset, dim {dim}", dim=result.dim), tr("offset"))
    offsets = range(result.length)
    panel.fill_between(offsets, result.waves.least, result.waves.greatest, color=ACCENT, alpha=0.2, linewidth=0)
    charts.line(panel, offsets, result.waves.mean, ACCENT)
    panel.set_ylim(bottom=0)
    charts.note(
        panel, 0.97, 0.12, tr("minimum and maximum over all\npairs lie on the line"), color=ACCENT, anchor="right"
    )


def _cells(panel, table: list[list[float]], title: str) -> None:
    charts.heatmap(panel, table, charts.RAMP, 0.0, 5.2, title)
    charts.label_cells(panel, table, ".3f", 2.6)
    names = [f"X{k + 1}" for k in range(10)]
    panel.set_xticks(range(10), names)
    panel.set_yticks(range(10), names)


def _learned(fig: Figure, grid, result: Positions) -> None:
    own = result.learned
    assert own is not None
    _heatmap(fig.add_subplot(grid[2, :2]), own, tr("Learned: {model}", model=result.model))
    panel = fig.add_subplot(grid[2, 2:4])
    charts.style_axes(panel, tr("Norm by position, learned"), tr("position"))
    charts.line(panel, range(len(own.norms)), own.norms, INK)
    panel.set_ylim(bottom=0)
    panel = fig.add_subplot(grid[2, 4:])
    table = distances(torch.tensor(own.values)).tolist()
    title = tr("Distance between two positions, learned")
    charts.heatmap(panel, table, charts.RAMP, 0.0, max(map(max, table)), title, tr("position"))
