"""The hidden states of a recurrent model as an image: one row per token, one column per unit."""

from dataclasses import dataclass

from matplotlib.colors import LinearSegmentedColormap, Normalize

from heed.lab.attention import Look
from heed.lab.canvas import Canvas, Inches
from heed.lab.colors import ACCENT, FAINT, INK, MUTED, WARM
from heed.lab.words import label, width

COLORS = LinearSegmentedColormap.from_list("heed states", [WARM, "#fcfcfc", ACCENT])
TITLES = {"encoder": "Encoder states", "decoder": "Decoder states"}
NOTE = "This model has no attention: its decoder knows only the final state of the encoder."


@dataclass(frozen=True)
class StatesPanel:
    """The hidden states of the encoder or the decoder; units saturate towards -1 and 1."""

    look: Look
    part: str
    across: Inches

    @property
    def tokens(self) -> list[str]:
        return self.look.source if self.part == "encoder" else self.look.inputs

    @property
    def row(self) -> Inches:
        return min(0.24, max(0.11, 4.5 / len(self.tokens)))

    @property
    def letters(self) -> Inches:
        """Return the size of the tokens in points."""
        return min(9.5, self.row * 72 * 0.6)

    @property
    def left(self) -> Inches:
        """Return the space for the tokens beside the states."""
        return max(width(label(token)) for token in self.tokens) * self.letters / 72 + 0.18

    @property
    def size(self) -> tuple[Inches, Inches]:
        return self.across, 0.6 + len(self.tokens) * self.row + 0.3

    def draw(self, canvas: Canvas, x: Inches, y: Inches):
        """Draw it with its top left corner at (x, y)."""
        states = self.look.states[self.part]
        rows, units = states.shape
        left, top, right, bottom = x + self.left, y + 0.6, x + self.across, y + 0.6 + rows * self.row
        canvas.text(x, y + 0.12, TITLES[self.part], 11.5)
        canvas.text(
            x, y + 0.38, f"one row per token, one column for each of {units} units; -1 orange, 1 blue", 8.5, MUTED
        )
        canvas.axes.imshow(
            states, extent=(left, right, bottom, top), cmap=COLORS, norm=Normalize(-1, 1, clip=True), aspect="auto",
            interpolation="none",
        )  # fmt: skip
        canvas.frame(left, top, right - left, bottom - top, FAINT)
        for number, token in enumerate(self.tokens):
            canvas.text(left - 0.1, top + (number + 0.5) * self.row, label(token), self.letters, INK, anchor="right")


def blocks(look: Look, left: Inches, down: Inches, across: Inches) -> list[tuple]:
    """Lay out the states of both parts, one below the other."""
    panels = []
    for part in look.states or {}:
        panels.append((StatesPanel(look, part, across), left, down))
        down += panels[-1][0].size[1] + 0.2
    return panels
