"""The attention of a translation as one image, PNG or SVG."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heed.lab import attention_map, hidden_states
from heed.lab.attention import PARTS, Look
from heed.lab.canvas import COLORS, Canvas, Inches
from heed.lab.colors import ACCENT, FAINT, INK, MUTED, WARM
from heed.lab.fonts import find_fonts
from heed.lab.words import aligned_words, is_special, label, starts_word, width, words, wrap

MARGIN = 0.55
Line = tuple[str, str, Inches, str, Inches]  # above the maps: name, text, size, colour, height
FIXED_CHARACTERS = " \u25a1\u2423\u00b7\u00d7abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Detail:
    """One map with its tokens on both axes."""

    look: Look
    part: str
    layer: int | None
    head: int | None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.look.rows(self.part)), len(self.look.columns(self.part))

    @property
    def cell(self) -> Inches:
        return min(0.58, max(0.2, 6.8 / max(self.shape)))

    @property
    def letters(self) -> Inches:
        """Return the font size of the tokens in points: small enough that neighbours do not touch."""
        return min(12.0, self.cell * 72 * 0.6)

    @property
    def tilt(self) -> int:
        """Return the angle of the tokens above the map."""
        if _max_width(self.look.columns(self.part)) * self.letters / 72 <= self.cell * 0.95:
            return 0
        return 45 if self.shape[1] <= 24 else 90

    @property
    def left(self) -> Inches:
        """Return the space for the tokens beside the map."""
        return _max_width(self.look.rows(self.part)) * self.letters / 72 + 0.22

    @property
    def above(self) -> Inches:
        """Return the space for the title and for the tokens above the map."""
        tokens = _max_width(self.look.columns(self.part)) * self.letters / 72
        return 0.95 + {0: self.letters / 72, 45: tokens * 0.75, 90: tokens}[self.tilt]

    @property
    def size(self) -> tuple[Inches, Inches]:
        lean = width(label(self.look.columns(self.part)[-1])) * self.letters / 72 * 0.75 if self.tilt == 45 else 0
        across = max(self.left + self.shape[1] * self.cell + lean, 6.9)
        return across, self.above + self.shape[0] * self.cell + 0.6

    def draw(self, canvas: Canvas, x: Inches, y: Inches):
        """Draw it with its top left corner at (x, y)."""
        weights = attention_map.weights(self.look, self.part, self.layer, self.head)
        top = max(float(weights.max()), 1e-6)
        canvas.text(x, y + 0.12, attention_map.title(self.look, self.part, self.layer, self.head), 14)
        canvas.text(x, y + 0.42, attention_map.CAPTIONS[self.part], 9, MUTED)
        left, down = x + self.left, y + self.above
        canvas.cells(left, down, self.cell, weights, top)
        if self.cell >= 0.4:
            self._numbers(canvas, left, down, weights)
        self._row_tokens(canvas, left, down)
        self._column_tokens(canvas, left, down)
        outlined = self.part == "cross" and self._outlines(canvas, left, down)
        _scale(canvas, left, down + self.shape[0] * self.cell + 0.3, top, bool(outlined))

    def _numbers(self, canvas: Canvas, left: Inches, down: Inches, weights: np.ndarray):
        for row, column in zip(*np.nonzero(weights >= 0.095), strict=True):
            share = weights[row, column] / weights.max()
            shown = f"{weights[row, column]:.2f}".removeprefix("0")
            x, y = left + (column + 0.5) * self.cell, down + (row + 0.5) * self.cell
            canvas.text(x, y, shown, 8, "white" if share > 0.45 else INK, anchor="center")

    def _row_tokens(self, canvas: Canvas, left: Inches, down: Inches):
        tokens = self.look.rows(self.part)
        for row in range(len(tokens)):
            y = down + (row + 0.5) * self.cell
            canvas.text(left - 0.13, y, label(tokens[row]), self.letters, _token_color(tokens, row), anchor="right")
        for group in words(tokens):
            if len(group) > 1:
                ends = [down + (group[0] + 0.2) * self.cell, down + (group[-1] + 0.8) * self.cell]
                canvas.line([left - 0.06, left - 0.06], ends, FAINT, 1.6)

    def _column_tokens(self, canvas: Canvas, left: Inches, down: Inches):
        tokens = self.look.columns(self.part)
        for column in range(len(tokens)):
            x, y = left + (column + 0.5) * self.cell, down - (0.13 if self.tilt else 0.2)
            anchor, color = "left" if self.tilt == 45 else "center", _token_color(tokens, column)
            canvas.text(x, y, label(tokens[column]), self.letters, color, anchor=anchor, tilt=self.tilt)
        for group in words(tokens):
            if len(group) > 1:
                ends = [left + (group[0] + 0.2) * self.cell, left + (group[-1] + 0.8) * self.cell]
                canvas.line(ends, [down - 0.06, down - 0.06], FAINT, 1.6)

    def _outlines(self, canvas: Canvas, left: Inches, down: Inches) -> int:
        sources, targets = words(self.look.source), words(self.look.target)
        pairs = aligned_words(self.look)
        for source, target in pairs:
            across, along = sources[source], targets[target]
            corner = left + across[0] * self.cell, down + along[0] * self.cell
            canvas.frame(*corner, len(across) * self.cell, len(along) * self.cell, WARM, 1.1)
        return len(pairs)


@dataclass(frozen=True)
class Grid:
    """All maps of a part as thumbnails, layers down and heads across."""

    look: Look
    part: str
    across: Inches

    @property
    def pitch(self) -> tuple[Inches, Inches]:
        """Return the distances between thumbnails across and down."""
        return self.thumb[0] + self.gap, self.thumb[1] + self.gap

    @property
    def gap(self) -> Inches:
        return 0.09 * min(1.2, self.across / getattr(self.look, self.part).shape[1])

    @property
    def thumb(self) -> tuple[Inches, Inches]:
        """Return the width and height of a thumbnail, with square cells."""
        heads, rows, columns = getattr(self.look, self.part).shape[1:]
        side = min(1.2, (self.across - 0.3) / heads - self.gap)
        return side * min(1, columns / rows), side * min(1, rows / columns)

    @property
    def size(self) -> tuple[Inches, Inches]:
        layers, heads = getattr(self.look, self.part).shape[:2]
        return max(0.3 + heads * self.pitch[0], 2.2), 0.85 + layers * self.pitch[1]

    def draw(self, canvas: Canvas, x: Inches, y: Inches):
        """Draw it with its top left corner at (x, y)."""
        maps = getattr(self.look, self.part)
        layers, heads = maps.shape[:2]
        top = float(maps.max())
        canvas.text(x, y + 0.12, attention_map.TITLES[self.part], 11.5)
        canvas.text(x, y + 0.38, f"{layers} layers down × {heads} heads across", 8.5, MUTED)
        for layer in range(layers):
            down = y + 0.85 + layer * self.pitch[1]
            canvas.text(x + 0.16, down + self.thumb[1] / 2, str(layer + 1), 7.5, MUTED, anchor="right")
            for head in range(heads):
                left = x + 0.3 + head * self.pitch[0]
                canvas.image(left, down, self.thumb, maps[layer, head], top)
                canvas.frame(left, down, *self.thumb)
        for head in range(heads):
            middle = x + 0.3 + head * self.pitch[0] + self.thumb[0] / 2
            canvas.text(middle, y + 0.73, str(head + 1), 7.5, MUTED, anchor="center")


def save(look: Look, path: Path, part: str, layer: int | None, head: int | None) -> str:
    """Draw the mean map of a part next to all maps, or one map if a layer is given; return the characters missing
    from all fonts.
    """
    fonts = find_fonts(_characters(look))
    blocks = _blocks(look, part, layer, head)
    across = max(left + block.size[0] for block, left, _ in blocks) + MARGIN
    lines = _header(look, across - 2 * MARGIN - 1.1)
    if not any(getattr(look, name).size for name in PARTS):
        lines += _paragraph("Attention", wrap(hidden_states.NOTE, 90), 9, MUTED, 0.24)
    start = 0.5 + sum(height for *_, height in lines) + 0.3
    height = max(start + down + block.size[1] for block, _, down in blocks) + 0.35
    canvas = Canvas(across, height, fonts)
    _write_header(canvas, lines)
    canvas.line([MARGIN, across - MARGIN], [start - 0.22, start - 0.22], FAINT, 0.8)
    for block, left, down in blocks:
        block.draw(canvas, left, start + down)
    canvas.save(path)
    return fonts.missing


def _blocks(look: Look, part: str, layer: int | None, head: int | None) -> list[tuple]:
    """Lay out one map, with the states or the thumbnails of all maps beside it unless a layer is given."""
    if not getattr(look, part).size:
        return hidden_states.blocks(look, MARGIN, 0.0, 9.0)
    detail = Detail(look, part, layer, head)
    blocks = [(detail, MARGIN, 0.0)]
    beside = MARGIN + detail.size[0] + 0.6
    if layer is None and look.states is not None:
        blocks += hidden_states.blocks(look, beside, 0.0, 6.0)
    elif layer is None:
        blocks += _overview(look, part, beside, detail.size[1])
    return blocks


def _overview(look: Look, part: str, left: Inches, height: Inches) -> list[tuple]:
    """Lay out the thumbnails of all parts, as large as the height allows."""
    others = [other for other in PARTS if other != part and getattr(look, other).size]
    for across in (7.2, 6.6, 6.0, 5.4):
        main = Grid(look, part, across)
        grids = [Grid(look, other, across * 0.46) for other in others]
        below = main.size[1] + 0.4
        if below + max((grid.size[1] for grid in grids), default=0.0) <= height:
            break
    lefts = [left, left + max(grids[0].size[0] + 0.3, across / 2 + 0.2)] if grids else []
    return [(main, left, 0.0), *((grid, x, below) for grid, x in zip(grids, lefts, strict=False))]


def _header(look: Look, across: Inches) -> list[Line]:
    source, target = (wrap(text, across * 72 / 16) for text in (look.source_text, look.target_text))
    lines = _paragraph("Source", source, 16, INK, 0.36) + _paragraph("Translation", target, 16, ACCENT, 0.36)
    return [*lines, ("Model", look.model, 9, MUTED, 0.36)]


def _paragraph(name: str, lines: list[str], *style: str | Inches) -> list[Line]:
    """Put the name before the first line only."""
    return [("" if number else name, line, *style) for number, line in enumerate(lines)]


def _write_header(canvas: Canvas, lines: list[Line]):
    y = 0.5
    for name, text, size, color, height in lines:
        canvas.text(MARGIN, y, name, 9, MUTED)
        canvas.text(MARGIN + 1.1, y, text, size, color)
        y += height


def _scale(canvas: Canvas, x: Inches, y: Inches, top: Inches, outlined: bool):
    canvas.image(x, y - 0.05, (1.5, 0.1), np.linspace(0, top, COLORS.N)[None], top)
    canvas.text(x - 0.08, y, "0", 8, MUTED, anchor="right")
    canvas.text(x + 1.58, y, f"{top:.2f}", 8, MUTED)
    if outlined:
        canvas.frame(x + 2.3, y - 0.06, 0.12, 0.12, WARM, 1.1)
        canvas.text(x + 2.5, y, "word alignment", 8, MUTED)


def _token_color(tokens: list[str], index: int) -> str:
    return INK if starts_word(tokens, index) and not is_special(tokens[index]) else MUTED


def _max_width(tokens: list[str]) -> Inches:
    return max(width(label(token)) for token in tokens)


def _characters(look: Look) -> str:
    tokens = "".join(label(token) for token in [*look.source, *look.target, *look.inputs])
    return tokens + look.source_text + look.target_text + look.model + FIXED_CHARACTERS
