"""The worked numbers of the lecture notes on normalization, each compared with that of torch's layer norm."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from heed.lab.charts import Table
from heed.lab.language import tr

FIRST = (3.0, 1.0)  # scale and shift of the notes' first node: y = 3x + 1
MOVED = (2.0, 3.0)  # of their example for any x: y = 2x + 3


@dataclass(frozen=True)
class NotesNumber:
    """A number of the lecture notes, and Heed's for the same."""

    formula: str
    notes: float
    heed: float

    @property
    def deviation(self) -> float:
        return self.notes - self.heed


def compare(word: Sequence[float]) -> list[NotesNumber]:
    """Every number of the notes' layer norm example, whose word has these numbers."""
    x = torch.tensor(word, dtype=torch.float64)
    normed, scaled, moved = (_norm(x, *own).tolist() for own in ((1.0, 0.0), FIRST, MOVED))
    moved = torch.tensor(moved, dtype=torch.float64)
    return [
        NotesNumber("μ", 3.5, x.mean().item()),
        NotesNumber("σ", 1.11, x.std(correction=0).item()),
        NotesNumber("(4 − μ) / σ", 0.65, normed[0]),
        NotesNumber("(2 − μ) / σ", -0.45, normed[1]),
        NotesNumber("3 (4 − μ) / σ + 1", 2.95, scaled[0]),
        NotesNumber("3 · 0.7 + 1", 3.1, FIRST[0] * 0.7 + FIRST[1]),
        NotesNumber("mean (2x + 3)", 3.0, moved.mean().item()),
        NotesNumber("var (2x + 3)", 2.0, moved.var(correction=0).item()),
    ]


def _norm(x: torch.Tensor, scale: float, shift: float) -> torch.Tensor:
    """Layer norm whose learned scale and shift are these: α (x − μ) / σ + β."""
    norm = nn.LayerNorm(len(x), eps=1e-12, dtype=torch.float64)
    with torch.no_grad():
        norm.weight.fill_(scale)
        norm.bias.fill_(shift)
        return norm(x)


def table(numbers: Sequence[NotesNumber]) -> Table:
    """The notes' numbers, Heed's, their difference, and why."""
    why = {
        "σ": tr("√1.25, truncated to two decimals"),
        "(4 − μ) / σ": tr("0.5 / 1.118"),
        "(2 − μ) / σ": tr("−0.45 is the value for the 3"),
        "3 (4 − μ) / σ + 1": tr("follows from their 0.65"),
        "3 · 0.7 + 1": tr("correct; but no feature of this word becomes 0.7, so it is from another word"),
        "var (2x + 3)": tr("2 is the standard deviation: the variance is multiplied by 2²"),
    }
    rows = [
        [
            one.formula,
            f"{one.notes:g}",
            f"{one.heed:.2f}",
            f"{_zero(one.deviation):+.2f}",
            why.get(one.formula, tr("the same")),
        ]
        for one in numbers
    ]
    columns = ["", tr("lecture notes"), "Heed", tr("difference"), tr("why")]
    return Table(tr("The numbers in the lecture notes, and Heed's"), columns, rows)


def _zero(value: float) -> float:
    """A deviation that is only rounding does not count."""
    return 0.0 if abs(value) < 1e-9 else value
