"""What the pictures and tables of the lab share: paper, panels, names at the ends of lines, numbers in cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from math import isnan
from pathlib import Path
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image

from heed.lab.colors import ACCENT, FAINT, INK, LIGHT_RAMP, MUTED, WARM

# Lines are told apart by lightness too: for eyes that see few colours, and for paper.
SERIES = (WARM, ACCENT, "#7d5ba6", "#12a0b5", "#8a8f2a", "#b3446c", INK)
RAMP = LinearSegmentedColormap.from_list("heed", LIGHT_RAMP)
BOTH_WAYS = LinearSegmentedColormap.from_list("heed both ways", ["#8f3a0a", WARM, "#f0c9a8", "#fcfcfc", "#9fdbd8", ACCENT, "#0b3f5c"])  # fmt: skip
DPI = 110
Number = int | float
Numbers = Sequence[int | float]


@dataclass(frozen=True)
class Table:
    """What is printed: words and numbers already written out."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def paper(title: str, caption: str, width: Number = 11.0, height: Number = 7.4) -> Figure:
    """An empty figure: what it shows stands above, what is to be seen in it below."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1, wspace=0.05, hspace=0.06)
    figure.suptitle(title, x=0.012, ha="left", fontsize=14, fontweight="bold", color=INK)
    lines = "\n".join(wrap(caption, round(width * 13.3)))
    figure.supxlabel(lines, x=0.012, ha="left", fontsize=9.5, color=INK, linespacing=1.45)
    return figure


def dress(panel: Axes, title: str, across: str = "", up: str = "") -> None:
    """Give a panel of lines its title, its names and a light grid."""
    head(panel, title)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color(FAINT)
    panel.tick_params(which="both", length=0, labelsize=8.5, labelcolor=MUTED)
    panel.grid(axis="y", color=FAINT, linewidth=0.7)
    panel.set_axisbelow(True)
    panel.set_xlabel(across, fontsize=9, color=MUTED)
    panel.set_ylabel(up, fontsize=9, color=MUTED)


def head(panel: Axes, title: str) -> None:
    """The title of a panel."""
    panel.set_title(title, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=8)


def line(panel: Axes, x: Numbers, y: Numbers, color: str, style: str | tuple = "-", mark: str = ""):
    """Draw a line; `mark` shows its points."""
    return panel.plot(x, y, color=color, linestyle=style, linewidth=1.9, marker=mark, markersize=4.2)[0]


def name_ends(panel: Axes, names: Sequence[str], gap: float = 0.062) -> None:
    """Write the name of each line beside its end, one line's height apart at least."""
    lines = list(panel.lines)[-len(names) :]
    low, high = _height(panel, panel.get_ylim())
    ends = [(_height(panel, _last(one)) - low) / (high - low) for one in lines]
    places = _apart(ends, gap)
    for name, one, place in zip(names, lines, places, strict=True):
        panel.text(1.015, place, name, transform=panel.transAxes, va="center", fontsize=9, color=one.get_color())


def _height(panel: Axes, y):
    """How high a value stands on an axis that may be logarithmic."""
    return panel.yaxis.get_transform().transform(np.asarray(y, float))


def _last(one) -> float:
    """The last value of a line that is a number."""
    y = np.asarray(one.get_ydata(), float)
    return y[np.flatnonzero(np.isfinite(y))[-1]]


def _apart(places: list[float], gap: float) -> list[float]:
    """The places, moved as little as it takes to be a gap from each other and within the panel."""
    order = np.argsort(places)
    clear = np.clip(np.array(places)[order], 0.0, 1.0)
    for _ in range(200):
        for i in range(len(clear) - 1):
            short = gap - (clear[i + 1] - clear[i])
            if short > 0:
                clear[i], clear[i + 1] = clear[i] - short / 2, clear[i + 1] + short / 2
        clear = clear + max(0.0, -clear[0]) - max(0.0, clear[-1] - 1.0)
    return [float(clear[np.flatnonzero(order == i)[0]]) for i in range(len(places))]


def heat(panel: Axes, values: Sequence[Numbers], colors: Colormap, low: Number, high: Number) -> None:
    """A map, a cell for each value."""
    panel.imshow(np.asarray(values, float), cmap=colors, vmin=low, vmax=high, aspect="auto", interpolation="none")
    panel.spines[:].set_visible(False)
    panel.tick_params(which="both", length=0, labelsize=8.5, labelcolor=MUTED)


def numbers(panel: Axes, values: Sequence[Numbers], form: str, dark: Number, size: Number = 7.5) -> None:
    """Write each value into its cell, white where the cell is darker than `dark` is."""
    for row, own in enumerate(values):
        for column, value in enumerate(own):
            if isnan(value):
                continue
            color = "white" if value > dark else INK
            text = format(value, form).replace("-", "−")
            panel.text(
                column,
                row,
                text.replace("−0", "0") if float(format(value, form)) == 0 else text,
                ha="center",
                va="center",
                fontsize=size,
                color=color,
            )


def note(panel: Axes, x: Number, y: Number, text: str, *, color: str = MUTED, size: Number = 8.8, anchor: str = "left"):
    """A remark within a panel, at a place of its axes from 0 to 1."""
    panel.text(
        x, y, text, transform=panel.transAxes, fontsize=size, color=color, ha=anchor, va="center", linespacing=1.4
    )


def save(figure: Figure, path: Path) -> None:
    """Write the picture; the same numbers give the same bytes."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": "heed lab"})
    drawn.seek(0)
    _fewer_colors(Image.open(drawn).convert("RGB")).save(path, format="PNG", optimize=True)


def _fewer_colors(image: Image.Image) -> Image.Image:
    """With 256 colours, in a third of the bytes: the commonest as they are, so that no line and no cell changes its own."""
    rest = np.array(image.quantize(96, Image.Quantize.MAXCOVERAGE).getpalette()).reshape(-1, 3)
    pixels = np.asarray(image).astype(np.int64) @ [1 << 16, 1 << 8, 1]
    found, of_pixel, count = np.unique(pixels, return_inverse=True, return_counts=True)
    colors = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    palette = np.concatenate([colors[np.argsort(-count, kind="stable")[:160]], rest])
    nearest = np.square(colors[:, None] - palette[None]).sum(-1).argmin(1)
    small = Image.fromarray(nearest[of_pixel].reshape(pixels.shape).astype(np.uint8))
    small.putpalette(palette.astype(np.uint8).tobytes())
    return small
