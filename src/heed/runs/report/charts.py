"""Charts of a report: lines as SVG, bars as tables. They use the page's colours, and so follow light and dark mode."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape

from heed.runs.report.log import Points

WIDTH, HEIGHT = 400, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 10, 26
MOST_POINTS = 150  # of a line; more are averaged
_LOG_TICKS = (1, 1.5, 2, 3, 4, 5, 7)


@dataclass(frozen=True)
class Line:
    """One line of a chart; `style` is its class in the style sheet, and `marked` lines have a dot at each point."""

    name: str
    points: Points
    style: str
    marked: bool = True


@dataclass(frozen=True)
class Bar:
    """One row of bars: a label, values of 0 to 100 with their texts, and a note such as how many there are."""

    label: str
    values: Sequence[tuple[float, str]]
    note: str


def line_chart(title: str, lines: Sequence[Line], show: Callable[[float], str], *, logarithmic: bool = False) -> str:
    """Return a chart of values by step, under its title and the last value of each line."""
    lines = [replace(line, points=[point for point in line.points if math.isfinite(point[1])]) for line in lines]
    lines = [line for line in lines if line.points]
    if not lines:
        return ""
    values = [value for line in lines for _, value in line.points]
    last = max(step for line in lines for step, _ in line.points)
    logarithmic = logarithmic and min(values) > 0 and max(values) > 2 * min(values)
    ticks = _log_ticks(min(values), max(values)) if logarithmic else _ticks(max(values), low=min(values))
    low, high = min([*ticks, *values]), max([*ticks, *values])
    scale = math.log if logarithmic else float

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(last, 1)

    def y(value: float) -> float:
        share = (scale(value) - scale(low)) / ((scale(high) - scale(low)) or 1)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    grid = [
        f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/><text x="{LEFT - 7}" y="{y(tick) + 3.5:.1f}" '
        f'text-anchor="end">{_plain(tick)}</text>'
        for tick in ticks
    ]
    steps = [f'<text x="{x(t):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{t:,.0f}</text>' for t in _ticks(last, 4)]
    drawn = "".join(_drawn(line, x, y, show) for line in lines)
    summary = "; ".join(f"{one.name} from {show(one.points[0][1])} to {show(one.points[-1][1])}" for one in lines)
    keys = "".join(
        f'<li class="{one.style}"><i></i>{escape(one.name)} <b>{show(one.points[-1][1])}</b></li>' for one in lines
    )
    return (
        f'<figure class="chart"><figcaption><h3>{escape(title)}</h3><ul class="keys">{keys}</ul></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(f"{title} by step: {summary}")}">'
        f"{''.join(grid)}{''.join(steps)}{drawn}</svg></figure>"
    )


def bar_table(caption: str, heads: tuple[str, Sequence[str], str], bars: Sequence[Bar]) -> str:
    """Return rows of bars as a table; `heads` are those of the label, of each series of bars, and of the note."""
    label, series, note = heads
    keys = "".join(f'<span class="key{number}">{escape(name)}</span>' for number, name in enumerate(series))
    names = f'<th scope="col">{escape(label)}</th><th scope="col">{keys}</th><th scope="col">{escape(note)}</th>'
    rows = []
    for bar in bars:
        cells = "".join(
            f'<div class="bar s{number}"><i style="width:{min(max(value, 0), 100):.1f}%"></i><b>{escape(text)}</b></div>'
            for number, (value, text) in enumerate(bar.values)
        )
        first = f'<th scope="row">{escape(bar.label)}</th>'
        rows.append(f'<tr>{first}<td>{cells}</td><td class="note">{escape(bar.note)}</td></tr>')
    head, body = f"<thead><tr>{names}</tr></thead>", f"<tbody>{''.join(rows)}</tbody>"
    return f'<table class="bars"><caption>{escape(caption)}</caption>{head}{body}</table>'


def _drawn(line: Line, x: Callable[[float], float], y: Callable[[float], float], show: Callable[[float], str]) -> str:
    points = thinned(line.points)
    path = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in points)
    dots = [
        f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="3"><title>step {step:,.0f}: {show(value)}</title></circle>'
        for step, value in (points if line.marked and len(points) <= 40 else points[-1:])
    ]
    return f'<g class="{line.style}"><polyline points="{path}"/>{"".join(dots)}</g>'


def thinned(points: Points) -> Points:
    """At most `MOST_POINTS` points: neighbours are averaged, so that a long log stays readable."""
    size = -(-len(points) // MOST_POINTS)
    if size <= 1:
        return points
    groups = [points[at : at + size] for at in range(0, len(points), size)]
    return [tuple(sum(side) / len(group) for side in zip(*group, strict=True)) for group in groups]


def _ticks(high: float, count: int = 5, low: float = 0.0) -> list[float]:
    """Round numbers from `low`, or 0 if that is lower, to `high`, about `count` of them."""
    low, high = min(low, 0.0), max(high, 0.0)
    rough = (high - low) / count or 1.0
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    return [step * number for number in range(math.ceil(low / step - 1e-9), int(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Round numbers on a logarithmic axis, no more than six."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [tick * 10.0**decade for decade in decades for tick in _LOG_TICKS]
    ticks = [tick for tick in ticks if low <= tick <= high]
    while len(ticks) > 6:
        ticks = ticks[::2]
    return ticks or [low, high]


def _plain(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e-") if 0 < abs(value) < 0.001 else f"{value:,.6g}"
