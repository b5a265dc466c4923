"""A plot of word vectors: their first two principal components."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from heed.files import atomic_file
from heed.lab.colors import ACCENT, FAINT, INK, MUTED, WARM
from heed.lab.fonts import families, find_fonts
from heed.lab.words import one_line

SUFFIXES = (".png", ".svg")
# Where a label may be, relative to its point.
OFFSETS = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]
HORIZONTAL, VERTICAL = {1: "left", 0: "center", -1: "right"}, {1: "bottom", 0: "center", -1: "top"}
MIN_WORDS = 3
Arrows = Sequence[tuple[int, int]]  # from word to word, by index


def project(matrix: Float[np.ndarray, "words dim"]) -> tuple[Float[np.ndarray, "words 2"], Float[np.ndarray, " 2"]]:
    """The coordinates of all words, and the share of variance that each component explains."""
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    rows = matrix / np.where(lengths > 0, lengths, 1)
    rows = rows - rows.mean(axis=0)
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    axes = directions[:2]  # of which SVD leaves the signs open
    axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1))
    points = np.zeros((len(rows), 2))
    points[:, : len(axes)] = rows @ axes.T
    shares = np.zeros(2)
    shares[: len(axes)] = (sizes**2 / max(float((sizes**2).sum()), 1e-30))[:2]
    return points, shares


def draw(
    path: Path, words: Sequence[str], matrix: Float[np.ndarray, "words dim"], arrows: Arrows = (), title: str = ""
) -> str:
    """Write a plot to a file, with arrows between words; return the characters missing from all fonts."""
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"The file {path.name!r} must end in {' or '.join(SUFFIXES)}, which selects the format.")
    if len(words) < MIN_WORDS:
        raise ValueError(f"A plot needs at least {MIN_WORDS} words, and there are {len(words)}: add more with --words.")
    import matplotlib
    from matplotlib.figure import Figure

    points, shares = project(matrix)
    fonts = find_fonts("".join(words) + title)
    with matplotlib.rc_context({"font.family": families(fonts), "axes.unicode_minus": False, "svg.fonttype": "path"}):
        figure = Figure(figsize=(8.6, 7.2), dpi=130, facecolor="white")
        panel = figure.add_axes((0.05, 0.06, 0.92, 0.87))
        _style_axes(panel, title, shares)
        panel.scatter(*points.T, s=18, color=ACCENT, zorder=3)
        panel.margins(0.12)
        for start, end in arrows:
            panel.annotate("", points[end], points[start], arrowprops={"arrowstyle": "->", "color": WARM, "lw": 1.3,
                           "shrinkA": 5, "shrinkB": 5}, zorder=2)  # fmt: skip
        _label_points(figure, panel, [one_line(word) for word in words], points, arrows)
        with atomic_file(path) as part:
            figure.savefig(part, format=path.suffix[1:].lower() or None)
    return fonts.missing


def _style_axes(panel, title: str, shares: Float[np.ndarray, " 2"]) -> None:
    panel.set_title(one_line(title), loc="left", fontsize=12, color=INK, pad=10)
    for axis, share, side in ((panel.xaxis, shares[0], "first"), (panel.yaxis, shares[1], "second")):
        axis.set_label_text(f"{side} component: {100 * share:.0f} % of the variance", fontsize=9, color=MUTED)
        axis.set_ticks([])
    for spine in panel.spines.values():
        spine.set_color(FAINT)


def _label_points(figure, panel, words: Sequence[str], points: Float[np.ndarray, "words 2"], arrows: Arrows) -> None:
    """Write each word next to its point, on the side where it overlaps least."""
    figure.draw_without_rendering()  # so that coordinates are known
    lines = [(points[start], points[end] - points[start]) for start, end in arrows]
    on_arrows = [start + part * line for start, line in lines for part in np.arange(0.1, 1, 0.1)]
    dots = panel.transData.transform([*points, *on_arrows])
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in dots]
    size = 11 if len(words) <= 40 else 8.5
    inside = tuple(panel.get_window_extent().extents)
    for word, point in zip(words, points, strict=True):
        text = panel.annotate(word, point, (0, 0), textcoords="offset points", fontsize=size, color=INK, zorder=4)
        best = None
        for right, up in OFFSETS:
            place = {"position": (6 * right, 6 * up), "ha": HORIZONTAL[right], "va": VERTICAL[up]}
            text.set(**place)
            box = tuple(text.get_window_extent().extents)
            cover = sum(_overlap(box, other) for other in taken) + _overlap(box, box) - _overlap(box, inside)
            if best is None or cover < best[0]:
                best = cover, place, box
        text.set(**best[1])
        taken.append(best[2])


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The area of the intersection of two boxes."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    up = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, float(across)) * max(0.0, float(up))
