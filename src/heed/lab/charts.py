"""Shared by the plots and tables of the lab: layout, axes, labels at line ends, numbers in cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import isnan
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image

from heed.lab.colors import ACCENT, FAINT, INK, LIGHT_RAMP, MUTED, WARM
from heed.lab.language import title_weight
from heed.lab.words import wrap

# The colours differ in lightness too: for colour-blind readers, and for print.
SERIES = (WARM, ACCENT, "#7d5ba6", "#12a0b5", "#8a8f2a", "#b3446c", INK)
RAMP = LinearSegmentedColormap.from_list("heed", LIGHT_RAMP)
DIVERGING = LinearSegmentedColormap.from_list("heed both ways", ["#8f3a0a", WARM, "#f0c9a8", "#fcfcfc", "#9fdbd8", ACCENT, "#0b3f5c"])  # fmt: skip
DPI = 110
Number = int | float
Numbers = Sequence[int | float]


@dataclass(frozen=True)
class Table:
    """A table to print, with formatted numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def new_figure(title: str, caption: str, width: Number = 11.0, height: Number = 7.4) -> Figure:
    """An empty figure with a title above and a caption below."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1, wspace=0.05, hspace=0.06)
    figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight=title_weight(), color=INK)
    lines = "\n".join(wrap(caption, width * 8.2))
    figure.supxlabel(lines, x=0.012, ha="left", fontsize=9.5, color=INK, linespacing=1.45)
    return figure


def style_axes(panel: Axes, title: str, xlabel: str = "", ylabel: str = "", *, log: bool = False) -> None:
    """Set title, labels and a light grid of a line panel, and with `log` a logarithmic y-axis."""
    _set_labels(panel, title, xlabel, ylabel)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color(FAINT)
    panel.grid(axis="y", color=FAINT, linewidth=0.7)
    panel.set_axisbelow(True)
    if log:
        panel.set_yscale("log")


def _set_labels(panel: Axes, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    panel.set_title(title, loc="left", fontsize=10.5, fontweight=title_weight(), color=INK, pad=8)
    panel.set_xlabel(xlabel, fontsize=9, color=MUTED)
    panel.set_ylabel(ylabel, fontsize=9, color=MUTED)
    panel.tick_params(which="both", length=0, labelsize=8.5, labelcolor=MUTED)


def line(panel: Axes, x: Numbers, y: Numbers, color: str, style: str | tuple = "-", marker: str = ""):
    """Draw a line; `marker` shows its points."""
    return panel.plot(x, y, color=color, linestyle=style, linewidth=1.9, marker=marker, markersize=4.2)[0]


def label_line_ends(panel: Axes, names: Sequence[str], gap: float = 0.062) -> None:
    """Write the name of each line next to its end, moved if two names would overlap."""
    lines = list(panel.lines)[-len(names) :]
    height_of = panel.yaxis.get_transform().transform  # of a value, on an axis that may be logarithmic
    low, high = height_of(np.asarray(panel.get_ylim(), float))
    ends = [(height_of(_last(one)) - low) / (high - low) for one in lines]
    for name, one, height in zip(names, lines, _spread(ends, gap), strict=True):
        panel.text(1.015, height, name, transform=panel.transAxes, va="center", fontsize=9, color=one.get_color())


def _last(one) -> float:
    """The last finite value of a line."""
    y = np.asarray(one.get_ydata(), float)
    return y[np.flatnonzero(np.isfinite(y))[-1]]


def _spread(heights: list[float], gap: float) -> list[float]:
    """The heights, moved apart until they differ by `gap` and stay within the panel."""
    order = np.argsort(heights)
    moved = np.clip(np.array(heights)[order], 0.0, 1.0)
    for _ in range(200):
        for i in range(len(moved) - 1):
            short = gap - (moved[i + 1] - moved[i])
            if short > 0:
                moved[i], moved[i + 1] = moved[i] - short / 2, moved[i + 1] + short / 2
        moved = moved + max(0.0, -moved[0]) - max(0.0, moved[-1] - 1.0)
    return [float(moved[np.flatnonzero(order == i)[0]]) for i in range(len(heights))]


def table_rows(values: Mapping[str, Numbers], form: str) -> list[list[str]]:
    """One row per name, with formatted numbers."""
    return [[name, *(format(value, form) for value in numbers)] for name, numbers in values.items()]


def heatmap(panel: Axes, values: Sequence[Numbers], colors: Colormap, low: Number, high: Number, *labels: str) -> None:
    """Draw values as colours; `labels` are the title and the names of both axes."""
    panel.imshow(np.asarray(values, float), cmap=colors, vmin=low, vmax=high, aspect="auto", interpolation="none")
    panel.spines[:].set_visible(False)
    _set_labels(panel, *labels)


def label_cells(panel: Axes, values: Sequence[Numbers], form: str, dark: Number, size: Number = 7.5) -> None:
    """Write each value into its cell of a heatmap, in white above `dark`."""
    for row, cells in enumerate(values):
        for column, value in enumerate(cells):
            if not isnan(value):
                text, color = format(value, form), "white" if value > dark else INK
                text = text.replace("-", "" if float(text) == 0 else "−")
                panel.text(column, row, text, ha="center", va="center", fontsize=size, color=color)


def note(panel: Axes, x: Number, y: Number, text: str, *, color: str = MUTED, size: Number = 8.8, anchor: str = "left"):
    """Text within a panel, in axes coordinates from 0 to 1."""
    style = {"fontsize": size, "color": color, "ha": anchor, "va": "center", "linespacing": 1.4}
    panel.text(x, y, text, transform=panel.transAxes, **style)


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG; the same numbers give the same bytes."""
    png = BytesIO()
    figure.savefig(png, format="png", metadata={"Software": "heed lab"})
    png.seek(0)
    _fewer_colors(Image.open(png).convert("RGB")).save(path, format="PNG", optimize=True)


def _fewer_colors(image: Image.Image) -> Image.Image:
    """Reduce to 256 colours, a third of the bytes: the most common ones exactly, so that no line or cell changes
    colour.
    """
    rest = np.array(image.quantize(96, Image.Quantize.MAXCOVERAGE).getpalette()).reshape(-1, 3)
    pixels = np.asarray(image).astype(np.int64) @ [1 << 16, 1 << 8, 1]
    distinct, index, count = np.unique(pixels, return_inverse=True, return_counts=True)
    colors = np.stack([distinct >> 16, distinct >> 8 & 255, distinct & 255], axis=1)
    palette = np.concatenate([colors[np.argsort(-count, kind="stable")[:160]], rest])
    nearest = np.square(colors[:, None] - palette[None]).sum(-1).argmin(1)
    small = Image.fromarray(nearest[index].reshape(pixels.shape).astype(np.uint8))
    small.putpalette(palette.astype(np.uint8).tobytes())
    return small
