"""The plot of the attention experiment."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from heed.lab import charts
from heed.lab.charts import SERIES
from heed.lab.colors import ACCENT, INK, MUTED, WARM
from heed.lab.experiments.attention_results import DICTIONARY, HEADS, AttentionLab, Masks, Similarity, U
from heed.lab.experiments.by_hand import WORDS, Matrix
from heed.lab.language import tr


def draw(result: AttentionLab) -> Figure:
    """Three rows: lookup and similarity; three words by hand; heads, masks and padding."""
    caption = tr(
        "Top: a query is compared with all keys, and the softmax of the results weights the average of the values; as the temperature falls, the "
        "average approaches the dictionary's answer. The dot product grows with the length of v, the cosine does not, and the distance falls as vectors "
        "get closer. Middle: every number of one head over three words, computed by hand; heed.nn.attention gives the same. Bottom: eight heads see the "
        "same words in eight ways. Weights that are set to 0 after the softmax and renormalised equal those masked before it. Padding changes nothing "
        "as long as it is masked."
    )
    fig = charts.new_figure(tr("Attention, from a dictionary to eight heads"), caption, height=11.0)
    grid = fig.add_gridspec(3, 1, height_ratios=[3.0, 2.1, 3.4])
    top = grid[0].subgridspec(1, 3)
    _weights(fig.add_subplot(top[0]), result)
    _values(fig.add_subplot(top[1]), result)
    _vectors(fig.add_subplot(top[2]), result.similarities)
    _by_hand(fig, grid[1], result)
    bottom = grid[2].subgridspec(1, 3, width_ratios=[3.1, 1.9, 1.9])
    _heads(fig, bottom[0], result.heads)
    _masks(fig, bottom[1], result.masks)
    _padding(fig.add_subplot(bottom[2]), result)
    return fig


def _weights(panel: Axes, result: AttentionLab) -> None:
    title = tr("Soft lookup of alpha:\nthe weight of each key")
    charts.style_axes(panel, title, tr("temperature"))
    for number, color in enumerate(SERIES[: len(DICTIONARY)]):
        weights = [row[number] for row in result.look_up.weights]
        style = (0, (1, 2)) if number == 3 else "-"  # delta lies on beta: both are at a right angle to alpha
        charts.line(panel, result.look_up.temperatures, weights, color, style, marker="o")
    _falling(panel)
    charts.label_line_ends(panel, list(DICTIONARY), gap=0.085)


def _falling(panel: Axes) -> None:
    panel.set_xscale("log")
    panel.invert_xaxis()


def _values(panel: Axes, result: AttentionLab) -> None:
    charts.style_axes(panel, tr("The returned value approaches\nthe dictionary's answer"), tr("temperature"))
    own = result.look_up
    for name in ("alpha", "delta"):
        panel.axhline(DICTIONARY[name], color=MUTED, linewidth=0.8, linestyle=":")
    for values, color in ((own.alpha, WARM), (own.halfway, INK), (own.delta, "#12a0b5")):
        charts.line(panel, own.temperatures, values, color, marker="o")
    _falling(panel)
    panel.set_ylim(2008, 2025)
    names = [
        f"alpha\n{own.alpha[-1]:.0f}",
        tr("halfway\n{year:.0f}", year=own.halfway[-1]),
        f"delta\n{own.delta[-1]:.0f}",
    ]
    charts.label_line_ends(panel, names, gap=0.14)


def _vectors(panel: Axes, found: list[Similarity]) -> None:
    """The vectors as arrows, each v with its three numbers."""
    charts.style_axes(panel, tr("u = (2, 1) with five v:\ndistance, cosine, dot product"))
    panel.grid(axis="x", color="#d5dbdb", linewidth=0.7)
    shifts = [(1.75, -0.55), (0.1, 0.45), (-0.2, 0.45), (-0.4, 0.45), (0.3, -0.55)]
    for own, color, (dx, dy) in zip(found, SERIES, shifts, strict=False):
        x, y = own.vector
        wide = 4.2 if own.vector == U else 1.8
        panel.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": wide, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
        text = f"{own.distance:.2f}, {own.cosine:.2f}, {own.dot:g}".replace("-", "−")
        panel.text(x + dx, y + dy, text, ha="center", va="center", fontsize=8.8, color=color)
    panel.annotate("", U, (0, 0), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0})  # fmt: skip
    panel.text(0.95, -0.25, "u", fontsize=11, color=INK, fontweight="bold")
    panel.set_xlim(-3.4, 5.4)
    panel.set_ylim(-2.2, 3.2)
    panel.set_aspect("equal")


def _by_hand(fig: Figure, place: SubplotSpec, result: AttentionLab) -> None:
    """Q, K, V, scores, weights and outputs, each a small map with its numbers."""
    own = result.words
    shown = [
        ("Q = X W_Q", own.q, "g", 3), ("K = X W_K", own.k, "g", 3), ("V = X W_V", own.v, "g", 3), ("Q Kᵀ", own.scores, "g", 3),
        ("softmax(Q Kᵀ/√3)", own.weights, ".3f", 3), (tr("weights · V"), own.mixed, ".3f", 3), ("· W_O", own.output, ".3f", 4),
    ]  # fmt: skip
    grid = place.subgridspec(1, len(shown), width_ratios=[1, 1, 1, 1, 1.35, 1.35, 1.75])
    for number, (title, values, form, columns) in enumerate(shown):
        panel = fig.add_subplot(grid[number])
        top = max(max(map(abs, row)) for row in values)
        _map(panel, values, top, title, form, dark=0.45 * top, size=8.5)
        panel.set_yticks(range(3), WORDS if number == 0 else [""] * 3)
        panel.set_xticks(range(columns), WORDS if title.startswith(("Q K", "softmax")) else [""] * columns)


def _map(panel: Axes, values: Matrix, top: float, title: str, form: str, dark: float, size: float = 7.5) -> None:
    low = -top if any(value < 0 for row in values for value in row) else 0.0
    charts.heatmap(panel, values, charts.RAMP, low, top * 1.25, title)
    panel.title.set_fontsize(9.2)
    if form:
        charts.label_cells(panel, values, form, dark, size=size)


def _heads(fig: Figure, place: SubplotSpec, heads: list[Matrix]) -> None:
    grid = place.subgridspec(2, HEADS // 2)
    for number, weights in enumerate(heads):
        panel = fig.add_subplot(grid[number // 4, number % 4])
        title = tr("Eight heads of width 3\nhead 1") if number == 0 else tr("head {number}", number=number + 1)
        _map(panel, weights, 1.0, title, ".2f", dark=0.55, size=6.8)
        panel.set_yticks(range(3), WORDS if number % 4 == 0 else [""] * 3)
        panel.set_xticks(range(3), WORDS if number >= 4 else [""] * 3, fontsize=7.5)


def _masks(fig: Figure, place: SubplotSpec, own: Masks) -> None:
    grid = place.subgridspec(2, 2)
    titles = [tr("Two ways to mask\nsoftmax"), tr("later words 0"), tr("renormalised"), tr("masked before")]
    for number, values in enumerate((own.weights, own.zeroed, own.after, own.before)):
        panel = fig.add_subplot(grid[number // 2, number % 2])
        _map(panel, values, 1.0, titles[number], ".2f", dark=0.55, size=7.2)
        panel.set_yticks(range(3), WORDS if number % 2 == 0 else [""] * 3)
        panel.set_xticks(range(3), WORDS if number >= 2 else [""] * 3)


def _padding(panel: Axes, result: AttentionLab) -> None:
    own = result.padding
    charts.style_axes(panel, tr("Five words with padding:\nthe largest change in a logit"), tr("length"), log=True)
    floor = 1e-17
    charts.line(panel, own.lengths[1:], own.unmasked[1:], WARM, marker="o")
    charts.line(panel, own.lengths[1:], [max(value, floor) for value in own.masked[1:]], ACCENT, marker="o")
    panel.set_xscale("log", base=2)
    panel.set_xticks(own.lengths[2:], [str(length) for length in own.lengths[2:]])
    panel.set_ylim(floor, 1e3)
    charts.note(panel, 0.04, 0.66, tr("no mask"), color=WARM)
    charts.note(panel, 0.04, 0.27, tr("padding masked:\nonly rounding"), color=ACCENT)
