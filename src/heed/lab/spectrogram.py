"""Synthesized speech as one image: its spectrogram and, below it, the attention of each frame."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heed.lab.canvas import Canvas
from heed.lab.colors import MUTED
from heed.lab.fonts import find_fonts

LEFT, RIGHT, TOP, HEIGHT, GAP = 0.9, 0.35, 0.75, 1.9, 0.65
SMALL = 7.0  # points: the smallest letters


def draw_speech(
    path: Path, frames: np.ndarray, seconds: float, attention: np.ndarray, pieces: Sequence[str], title: str
) -> None:
    """Draw frames (t, size), `seconds` apart, and attention (steps, tokens) over `pieces`; PNG or SVG by the suffix."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"{path.name!r} must end in .png or .svg")
    labels = ["␣" if piece == "▁" else piece for piece in pieces]
    cell = max(0.13, min(0.25, 5.0 / len(labels)))
    width, rows = max(5.0, min(14.0, 3.0 * len(frames) * seconds)), cell * len(labels)
    canvas = Canvas(
        LEFT + width + RIGHT, TOP + HEIGHT + GAP + rows + 0.6, find_fonts(title + "".join(labels) + "0123456789 s")
    )
    canvas.text(LEFT, 0.35, title, 13)
    low, high = np.percentile(frames, [1, 99.5])
    canvas.image(LEFT, TOP, (width, HEIGHT), frames.T[::-1] - low, max(1e-6, float(high - low)))
    canvas.frame(LEFT, TOP, width, HEIGHT)
    canvas.text(LEFT - 0.1, TOP + HEIGHT / 2, "mel", 9, MUTED, anchor="right")
    below = TOP + HEIGHT + GAP
    canvas.image(LEFT, below, (width, rows), attention.T, max(1e-6, float(attention.max())))
    canvas.frame(LEFT, below, width, rows)
    for i, label in enumerate(labels):
        canvas.text(LEFT - 0.1, below + (i + 0.5) * cell, label, max(SMALL, min(10, cell * 50)), anchor="right")
    total = len(frames) * seconds
    for tick in np.arange(0, total, 0.5 if total < 8 else 2.0):
        at = LEFT + width * tick / total
        canvas.text(at, TOP + HEIGHT + 0.18, f"{tick:g} s", 8, MUTED, anchor="center")
    canvas.save(path)
