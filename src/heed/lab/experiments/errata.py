"""Every worked number in the lecture notes compared with Heed's: how far apart they are, and why."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heed.lab import charts
from heed.lab.charts import Table
from heed.lab.colors import ACCENT, FAINT, INK, MUTED, WARM
from heed.lab.experiments import worked
from heed.lab.experiments.errata_texts import slips, texts
from heed.lab.experiments.worked import Claim
from heed.lab.language import tr

SMALLEST = 1e-18  # where the bars of the picture begin


@dataclass(frozen=True)
class Errata:
    """All claims in the order of the notes, and which of them agree to the printed digits."""

    dim: int
    heads: int
    tokens: int
    seed: int
    claims: list[Claim]
    agree: list[bool]


def measure(dim: int = 512, heads: int = 8, tokens: int = 256, seed: int = 0) -> Errata:
    """Compute each number with Heed's modules; `dim`, `heads` and `tokens` are those of equation (6)."""
    for name, value, least in (("dim", dim, 1), ("heads", heads, 1), ("tokens", tokens, 2)):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    claims = worked.claims(dim, heads, tokens, seed)
    return Errata(dim, heads, tokens, seed, claims, [claim.agrees for claim in claims])


def summary(result: Errata) -> str:
    """The result in one sentence."""
    return tr(
        "Of {count} numbers in the notes, {agree} match Heed's to every digit printed; {differ} differ, each for a reason given above.",
        count=len(result.claims), agree=sum(result.agree), differ=len(result.claims) - sum(result.agree),
    )  # fmt: skip


def tables(result: Errata) -> list[Table]:
    """All numbers; the reasons for those that differ; slips without a number."""
    said = texts()
    rows, reasons = [], []
    for claim, agrees in zip(result.claims, result.agree, strict=True):
        part, what, why = said[claim.key]
        deviation = "0" if claim.deviation == 0 else f"{claim.deviation:.0e}" if agrees else _number(claim.deviation)
        rows.append([f"{part}  {what}", _number(claim.notes), _number(claim.heed), deviation, "=" if agrees else "≠"])
        if not agrees:
            reasons.append([f"{part}  {what}", why])
    return [
        Table(
            tr("The numbers in the notes, and Heed's"),
            ["", tr("notes"), "Heed", tr("diff."), ""],
            rows,
        ),
        Table(tr("Why they differ"), ["", tr("reason")], reasons),
        Table(tr("Slips that involve no number"), ["", tr("the notes"), tr("it should be")], slips()),
    ]


def _number(value: float) -> str:
    """Integers as they are; other numbers with four digits, very small ones with two."""
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.2g}"


def figure(result: Errata) -> Figure:
    """The table, with a bar for the size of each deviation."""
    caption = tr(
        "Each row is a number that the lecture notes print, or that follows from one of their formulas, and the same number computed with the modules "
        "that Heed's models are built from. The bar is the difference relative to the larger of the two, on a logarithmic axis; without a bar the two "
        "are equal. Teal: equal to every digit that the notes print. Orange: different."
    )
    rows = len(result.claims)
    fig = charts.new_figure(
        tr("The numbers in the lecture notes, checked"), caption, width=12.0, height=0.215 * rows + 1.7
    )
    words, bars = fig.subplots(1, 2, width_ratios=[2.1, 1.0])
    _write_rows(words, result)
    charts.style_axes(bars, tr("Relative difference"))
    bars.grid(False)
    bars.grid(axis="x", color=FAINT, linewidth=0.7)
    bars.set_xscale("log")
    bars.set_xlim(SMALLEST, 3.0)
    bars.set_yticks([])
    for panel in (words, bars):
        panel.set_ylim(rows - 0.4, -0.6)
    for row, (claim, agrees) in enumerate(zip(result.claims, result.agree, strict=True)):
        size = relative(claim)
        if size > SMALLEST:
            bars.barh(row, size - SMALLEST, left=SMALLEST, height=0.66, color=ACCENT if agrees else WARM)
    return fig


def relative(claim: Claim) -> float:
    """The difference as a share of the larger number; of a claimed zero, the number itself."""
    largest = max(abs(claim.notes), abs(claim.heed))
    return abs(claim.deviation) / (largest if claim.notes and largest else 1.0)


def _write_rows(panel: Axes, result: Errata) -> None:
    said = texts()
    panel.axis("off")
    panel.set_xlim(0, 1)
    for x, head, side in ((0.76, tr("notes"), "right"), (0.985, "Heed", "right")):
        panel.text(x, -0.9, head, ha=side, va="bottom", fontsize=9, color=MUTED)
    for row, (claim, agrees) in enumerate(zip(result.claims, result.agree, strict=True)):
        part, what, _ = said[claim.key]
        style = {"va": "center", "fontsize": 8.8}
        panel.text(0.0, row, part, color=MUTED, **style)
        panel.text(0.1, row, what, color=INK, **style)
        panel.text(0.76, row, _number(claim.notes), ha="right", color=INK, **style)
        panel.text(0.985, row, _number(claim.heed), ha="right", color=ACCENT if agrees else WARM, **style)
