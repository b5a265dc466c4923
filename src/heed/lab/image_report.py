"""Plots for an image classifier: confusion matrix, calibration, and worst mistakes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib import rc_context
from matplotlib.figure import Figure

from heed.files import atomic_file
from heed.lab.charts import RAMP, heatmap, label_cells, new_figure, save, style_axes
from heed.lab.colors import ACCENT, MUTED, WARM
from heed.lab.fonts import families, find_fonts

MISTAKES = 40  # images on a sheet
WRITTEN = 20  # classes up to which the cells of a confusion matrix have numbers
SHOWN = 60  # classes up to which a confusion matrix has names


class Mistakes(NamedTuple):
    """Images (n, h, w, c), their true classes, the predictions and their probabilities."""

    images: np.ndarray
    right: list[str]
    told: list[str]
    sure: list[float]


def confusion_figure(table: Float[np.ndarray, "l l"], labels: Sequence[str]) -> Figure:
    """The confusion matrix: per cent of the images of each class (row) that were predicted as each class (column)."""
    shares = 100 * table / np.maximum(1, table.sum(axis=1, keepdims=True))
    side = min(16.0, 3.2 + 0.42 * len(labels))
    total, right = int(table.sum()), 100 * np.trace(table) / max(1, table.sum())
    caption = f"Each row: of 100 images of a class, how many were predicted as each class. {total:,} images, {right:.2f} % correct."
    figure = new_figure("Confusion matrix", caption, side + 0.8, side + 0.6)
    panel = figure.add_subplot()
    heatmap(panel, shares, RAMP, 0, 100, "", "predicted class", "true class")
    if len(labels) <= SHOWN:
        panel.set_xticks(range(len(labels)), labels, rotation=60, ha="right", rotation_mode="anchor")
        panel.set_yticks(range(len(labels)), labels)
    if len(labels) <= WRITTEN:
        label_cells(panel, np.where(shares >= 0.05, shares, np.nan).tolist(), ".1f", 55)
    return figure


def calibration_figure(counts: np.ndarray, confidence: np.ndarray, accuracy: np.ndarray, error: float) -> Figure:
    """Accuracy of predictions by their probability."""
    caption = f"Images grouped by the probability of the predicted class. On the line the model is perfectly calibrated; below it is overconfident, above it underconfident. Expected calibration error {100 * error:.2f} %."
    figure = new_figure("Calibration", caption, 6.6, 7.2)
    above, below = figure.subplots(2, 1, height_ratios=[3, 1], sharex=True)
    used = counts > 0
    style_axes(above, "", "", "correct, per cent")
    above.plot([0, 100], [0, 100], color=MUTED, linewidth=1, linestyle=":")
    above.plot(100 * confidence[used], 100 * accuracy[used], color=ACCENT, marker="o", markersize=5, linewidth=1.6)
    style_axes(below, "", "probability of the predicted class, per cent", "images")
    width = 100 / len(counts)
    below.bar(width * (np.arange(len(counts)) + 0.5), counts, width * 0.9, color=ACCENT)
    above.set_xlim(0, 100)
    above.set_ylim(0, 101)
    return figure


def mistakes_figure(found: Mistakes, total: int) -> Figure:
    """A grid of the most confident mistakes."""
    columns = 8
    rows = max(1, -(-len(found.images) // columns))
    caption = f"The {len(found.images)} of {total:,} mistakes with the highest confidence: the true class, and below it the prediction."
    figure = new_figure("The worst mistakes", caption, 11.0, 1.2 + 1.85 * rows)
    panels = np.array(figure.subplots(rows, columns)).reshape(-1)
    for panel in panels:
        panel.set_axis_off()
    for panel, image, right, told, sure in zip(panels, *found, strict=False):
        grey = {"cmap": "gray", "vmin": 0, "vmax": 255} if image.shape[2] == 1 else {}
        panel.imshow(image[..., 0] if image.shape[2] == 1 else image, interpolation="nearest", **grey)
        panel.text(
            0.5, -0.06, _short(right), transform=panel.transAxes, ha="center", va="top", fontsize=8, color=ACCENT
        )
        below = f"{_short(told)} {100 * sure:.0f} %"
        panel.text(0.5, -0.21, below, transform=panel.transAxes, ha="center", va="top", fontsize=8, color=WARM)
    return figure


def _short(text: str) -> str:
    return text if len(text) < 18 else text[:16] + "…"


def worst_mistakes(
    probabilities: Float[np.ndarray, "n l"], labels: Int[np.ndarray, " n"], pixels: Any, names: Sequence[str]
) -> tuple[Mistakes, int]:
    """The most confident mistakes, and the number of all mistakes."""
    wrong, told = mistaken(probabilities, labels)
    rows = wrong[:MISTAKES]
    chosen = [names[i] for i in labels[rows]], [names[i] for i in told[rows]], probabilities[rows, told[rows]].tolist()
    return Mistakes(np.asarray(pixels[rows]), *chosen), len(wrong)


def mistaken(
    probabilities: Float[np.ndarray, "n l"], labels: Int[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " n"]]:
    """The rows of all mistakes, the most confident first, and the predictions of all rows."""
    told = probabilities.argmax(axis=1)
    wrong = np.flatnonzero(told != labels)
    return wrong[np.argsort(-probabilities[wrong, told[wrong]], kind="stable")], told


def write_figures(folder: Path, figures: Mapping[str, Callable[[], Figure]], text: str) -> list[Path]:
    """Write plots as PNG files by name, in fonts that have the characters of `text`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with rc_context({"font.family": families(find_fonts(text))}):
        for name, draw in figures.items():
            with atomic_file(folder / name) as part:
                save(draw(), part)
            paths.append(folder / name)
    return paths
