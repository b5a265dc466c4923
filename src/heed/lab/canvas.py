"""A canvas to draw on, with coordinates in inches from the top left."""

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from heed.files import atomic_file
from heed.lab.colors import FAINT, INK, LIGHT_RAMP
from heed.lab.fonts import Fonts, families
from heed.lab.words import one_line

COLORS = LinearSegmentedColormap.from_list("heed", LIGHT_RAMP)
DPI = 150
Inches = int | float


class Canvas:
    """A figure with axes that cover it, so that all coordinates are in inches."""

    def __init__(self, width: Inches, height: Inches, fonts: Fonts):
        self.figure = Figure(figsize=(width, height), facecolor="white")
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.families = families(fonts)
        self.squares = str.maketrans({char: "\u25a1" for char in fonts.missing})
        self.width, self.height = width, height

    def text(
        self, x: Inches, y: Inches, text: str, size: Inches, color: str = INK, *, anchor: str = "left", tilt: Inches = 0
    ):
        """Write text literally (no math mode); `anchor` is left, center or right; `tilt` in degrees."""
        clean = one_line(text).translate(self.squares)
        font = {"fontsize": size, "color": color, "family": self.families, "parse_math": False}
        vertical, mode = {0: ("center", "anchor"), 90: ("bottom", "default")}.get(tilt, ("baseline", "anchor"))
        self.axes.text(x, y, clean, ha=anchor, va=vertical, rotation=tilt, rotation_mode=mode, **font)

    def line(self, x: list[Inches], y: list[Inches], color: str, thickness: Inches):
        self.axes.plot(x, y, color=color, linewidth=thickness, solid_capstyle="round")

    def frame(self, x: Inches, y: Inches, width: Inches, height: Inches, color: str = FAINT, thickness: Inches = 0.6):
        self.axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=color, linewidth=thickness))

    def cells(self, x: Inches, y: Inches, cell: Inches, weights: np.ndarray, top: Inches):
        """Draw a map of square cells as vector graphics."""
        rows, columns = weights.shape
        across, down = x + cell * np.arange(columns + 1), y + cell * np.arange(rows + 1)
        norm = Normalize(0, top, clip=True)
        self.axes.pcolormesh(across, down, weights, cmap=COLORS, norm=norm, edgecolors="white", linewidth=cell * 2.2)

    def image(self, x: Inches, y: Inches, size: tuple[Inches, Inches], weights: np.ndarray, top: Inches):
        """Draw a map as a small image."""
        extent = (x, x + size[0], y + size[1], y)
        norm = Normalize(0, top, clip=True)
        self.axes.imshow(weights, extent=extent, cmap=COLORS, norm=norm, interpolation="none", aspect="auto")

    def save(self, path: Path):
        """Write PNG or SVG by the suffix; the same drawing gives the same bytes."""
        self.axes.set_xlim(0, self.width)
        self.axes.set_ylim(self.height, 0)
        format = path.suffix[1:].lower()
        metadata = {"Date": None, "Creator": "heed look"} if format == "svg" else {"Software": "heed look"}
        settings = {"svg.fonttype": "path", "svg.hashsalt": "heed", "svg.image_inline": True}
        with rc_context(settings), atomic_file(path) as part:
            self.figure.savefig(part, format=format, dpi=DPI, metadata=metadata, facecolor="white")
