"""The plot of the order experiment."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from heed.lab import charts
from heed.lab.charts import SERIES
from heed.lab.colors import INK, MUTED
from heed.lab.experiments.by_hand import Matrix

from heed.lab.experiments.order_results import (  # isort: skip
    DIRECTIONS, POSITIONS, SENTENCE, WORDS, Order, direction_names, position_names,
)  # fmt: skip
from heed.lab.fonts import families, find_fonts
from heed.lab.language import title_weight, tr


def draw(result: Order) -> Figure:
    """Three rows: outputs for two orders, x + position, and the translations of twins by trained models."""
    caption = tr(
        "Top: without positions each word has the same output in both orders, whatever row it is in; with sinusoids it does not. Middle: the input of "
        "the first layer is the embedding times √d plus the position. Bottom: each sentence says what one person feels about another, and has a twin in "
        "which the two are swapped. English distinguishes them by word order alone, so a model without positions is right half of the time. Plain "
        "Korean marks the roles with particles on the names, and nothing is lost; polite Korean attaches them to “ssi”, which follows a name, and only "
        "word order tells whose “ssi” it is."
    )
    fig = charts.new_figure(tr("A bag of words, or a sentence"), caption, height=10.6)
    grid = fig.add_gridspec(3, 1, height_ratios=[2.3, 2.4, 3.2])
    _outputs(fig, grid[0], result)
    _sum(fig, grid[1], result)
    bottom = grid[2].subgridspec(1, 2, width_ratios=[1.0, 1.15])
    _scores(fig.add_subplot(bottom[0]), result)
    _examples(fig.add_subplot(bottom[1]), result)
    return fig


def _map(panel: Axes, values: Matrix, top: float, title: str, rows: list[str] | tuple[str, ...]) -> None:
    charts.heatmap(panel, values, charts.DIVERGING, -top, top, title)
    panel.set_xticks([])
    panel.set_yticks(range(len(rows)), rows, fontfamily=families(find_fonts("".join(rows))))


def _outputs(fig: Figure, place: SubplotSpec, result: Order) -> None:
    """The encoder's output for both orders, and the difference with the same words aligned."""
    grid = place.subgridspec(2, 3)
    own = result.outputs
    titles = [
        [tr("No positions: “I go home”"), tr("“home go I”"), tr("Difference, word by word: 0")],
        [tr("Sinusoids: “I go home”"), tr("“home go I”"), tr("Difference, word by word")],
    ]
    for row, (first, second) in enumerate((own.none, own.waves)):
        top = max(abs(value) for words in (*first, *second) for value in words)
        pairs = zip(first, second[::-1], strict=True)
        change = [[a - b for a, b in zip(one, other, strict=True)] for one, other in pairs]
        for column, (values, words) in enumerate(((first, WORDS), (second, WORDS[::-1]), (change, WORDS))):
            _map(fig.add_subplot(grid[row, column]), values, top, titles[row][column], words)


def _sum(fig: Figure, place: SubplotSpec, result: Order) -> None:
    grid, own = place.subgridspec(1, 3), result.sum
    top = max(abs(value) for row in own.total for value in row)
    titles = [tr("x: embeddings times √d"), tr("+ positions"), tr("= input of the first layer")]
    for column, values in enumerate((own.embedding, own.position, own.total)):
        _map(fig.add_subplot(grid[column]), values, top, titles[column], SENTENCE if column == 0 else [""] * 5)


def _scores(panel: Axes, result: Order) -> None:
    title = tr("BLEU after {steps} steps, by positions", steps=result.steps)
    charts.style_axes(panel, title)
    panel.grid(axis="y", visible=False)
    names, kinds = direction_names(), position_names()
    bleu = {(own.direction, own.positions): own.bleu for own in result.scores}
    ticks = []
    for row, direction in enumerate(DIRECTIONS):
        ticks.append(4.2 * row + 1)
        for number, positions in enumerate(POSITIONS):
            value = bleu[direction, positions]
            panel.barh(4.2 * row + number, value, height=0.86, color=SERIES[number])
            panel.text(value + 1.5, 4.2 * row + number, f"{value:.1f}", va="center", fontsize=8.8, color=SERIES[number])
            inside = value > 30
            style = {"va": "center", "fontsize": 8.5, "color": "white" if inside else INK}
            panel.text(2 if inside else value + 16, 4.2 * row + number, kinds[positions], **style)
    panel.set_yticks(ticks, [names[direction].replace(" → ", " →\n") for direction in DIRECTIONS])
    panel.set_xlim(0, 112)
    panel.invert_yaxis()


def _examples(panel: Axes, result: Order) -> None:
    """A twin of each direction, and its translation by the model without positions."""
    panel.set_axis_off()
    panel.set_title(
        tr("The same twins without positions"), loc="left", fontsize=10.5, fontweight=title_weight(), color=INK
    )
    names = direction_names()
    for row, direction in enumerate(DIRECTIONS):
        top = 0.97 - row * 0.35
        charts.note(panel, 0.0, top, names[direction], color=MUTED, size=8.5)
        for number, own in enumerate(one for one in result.examples if one.direction == direction):
            said = own.outputs["none"]
            right = said == own.expected
            text = f"{own.source}  →  {said}  {'✓' if right else '✗'}"
            panel.text(
                0.02, top - 0.1 - 0.1 * number, text, transform=panel.transAxes, va="center", fontsize=9.5,
                color=INK if right else SERIES[0], fontfamily=families(find_fonts(text)),
            )  # fmt: skip
