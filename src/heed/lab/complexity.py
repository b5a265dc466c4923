"""What self-attention costs beside recurrence, convolution and restricted attention, as texts grow and as vectors do."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from heed.lab import charts, costs
from heed.lab.charts import SERIES, Numbers, Table
from heed.lab.colors import MUTED
from heed.lab.costs import KINDS

LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
WIDTHS = (32, 64, 128, 256)
HELD = "weights held"  # self-attention that keeps the weight of every pair
TOKENS = {"cpu": 512, "cuda": 4096}  # at once, in rows of each length: as many on a GPU as keep it busy
RIVALS = ("convolution", "GRU")  # both have 6 n d² operations: self-attention has as many at n = d


@dataclass(frozen=True)
class Curves:
    """Multiplications a token, by formula and counted: by name of a layer one for each length, or for each width."""

    places: list[int]
    formula: dict[str, list[float]]
    counted: dict[str, list[float]]


@dataclass(frozen=True)
class Clock:
    """Milliseconds there and back for `tokens` tokens, and bytes kept for the way back of each, in rows of each size."""

    places: list[int]
    milliseconds: dict[str, list[float]]
    bytes_a_token: dict[str, list[float]]


@dataclass(frozen=True)
class Device:
    """What was measured on one device."""

    name: str
    threads: int
    tokens: int
    over_length: Clock
    over_width: Clock


@dataclass(frozen=True)
class Complexity:
    """Costs over n at d = dim and over d at n = length, the longest path over n, and what devices took."""

    dim: int
    length: int
    seed: int
    over_length: Curves
    over_width: Curves
    steps: dict[str, list[int]]
    path: dict[str, list[int]]
    devices: list[Device]


def measure(
    dim: int = 128,
    length: int = 128,
    devices: Sequence[str] = ("cpu",),
    seed: int = 0,
    rounds: int = 3,
    tokens: int = 0,
) -> Complexity:
    """Count and time the layers of the house, given so many tokens at once (0: as many as suit the device)."""
    if dim < costs.HEADS or dim % costs.HEADS:
        raise ValueError(f"dim is {dim}; it must be a multiple of {costs.HEADS}, the heads of the attention")
    for name, value in (("length", length), ("rounds", rounds)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    torch.manual_seed(seed)
    found = [
        _device(name, dim, length, rounds, tokens or TOKENS.get(torch.device(name).type, TOKENS["cuda"]))
        for name in devices
    ]
    lengths = max((device.over_length.places for device in found), key=len)
    return Complexity(
        dim=dim,
        length=length,
        seed=seed,
        over_length=_curves([(n, dim) for n in lengths], lengths),
        over_width=_curves([(length, d) for d in WIDTHS], list(WIDTHS)),
        steps={name: [kind.steps(n) for n in lengths] for name, kind in KINDS.items()},
        path={name: [kind.path(n) for n in lengths] for name, kind in KINDS.items()},
        devices=found,
    )


def crossing(places: Numbers, rising: Numbers, other: Numbers) -> float | None:
    """Where one curve rises above another for good, on logarithmic axes; none if it does not, or begins above."""
    over = [math.log(a / b) for a, b in zip(rising, other, strict=True)]
    for at in range(len(over) - 1, 0, -1):
        if over[at] > 0 >= over[at - 1]:
            part = over[at - 1] / (over[at - 1] - over[at])
            return float(places[at - 1] * (places[at] / places[at - 1]) ** part)
    return None


def _curves(sizes: list[tuple[int, int]], places: list[int]) -> Curves:
    formula = {name: [kind.operations(n, d) / n for n, d in sizes] for name, kind in KINDS.items()}
    few = [
        (n, d) for n, d in sizes if n * n * d <= 2**24
    ]  # counting is computing: what takes long is left to the formula
    counted = {name: [costs.count(kind.build(d), n, d) / n for n, d in few] for name, kind in KINDS.items()}
    return Curves(places, formula, counted)


def _device(name: str, dim: int, length: int, rounds: int, tokens: int) -> Device:
    lengths = [n for n in LENGTHS if n <= tokens]
    if len(lengths) < 2:
        raise ValueError(f"tokens is {tokens}; it must be at least {LENGTHS[1]}, or there are no lengths to compare")
    if length > tokens:
        raise ValueError(f"length is {length}; it must be at most {tokens}, the tokens that are given at once")
    over_length = _clock([(n, dim) for n in lengths], lengths, name, tokens, rounds)
    over_width = _clock([(length, d) for d in WIDTHS], list(WIDTHS), name, tokens, rounds)
    return Device(name, torch.get_num_threads(), tokens, over_length, over_width)


def _clock(sizes: list[tuple[int, int]], places: list[int], device: str, tokens: int, rounds: int) -> Clock:
    took: dict[str, list[float]] = {name: [] for name in KINDS}
    kept: dict[str, list[float]] = {name: [] for name in (*KINDS, HELD)}
    for n, d in sizes:
        layers = {name: kind.build(d).to(device) for name, kind in KINDS.items()}
        x = torch.randn(max(1, tokens // n), n, d, device=device)
        for name, own in costs.seconds(layers, x, rounds).items():
            took[name].append(own * 1000)
        for name, layer in layers.items():
            kept[name].append(costs.kept(layer, x) / (len(x) * n))
        kept[HELD].append(costs.kept(layers["self-attention"], x, held=True) / (len(x) * n))
    return Clock(places, took, kept)


def says(result: Complexity) -> str:
    """What is to be seen, in one sentence."""
    own = result.over_length
    text = f"With d = {result.dim} self-attention has more operations than a GRU or a convolution of three {_since(own.places, own.formula, 'GRU')}"
    for device in result.devices:
        clock = device.over_length
        slower = [f"than the {name} {_since(clock.places, clock.milliseconds, name)}" for name in RIVALS]
        text += f"; on {device.name} it is slower {' and '.join(slower)}"
    return text + ": the steps of a GRU have to wait for each other."


def _since(places: Numbers, values: dict[str, list[float]], other: str) -> str:
    """From where on self-attention has more than another layer."""
    ours, theirs = values["self-attention"], values[other]
    if ours[-1] <= theirs[-1]:
        return f"at no n up to {places[-1]}"
    where = crossing(places, ours, theirs)
    return f"at every n from {places[0]}" if where is None else f"from n = {where:.0f} on"


def tables(result: Complexity) -> list[Table]:
    """By formula, and by the clock of each device."""
    last = result.over_length.places[-1]
    formulas = [
        [name, kind.table, kind.exact, str(kind.steps(last)), str(kind.path(last))] for name, kind in KINDS.items()
    ]
    columns = ["layer", "operations", "multiplications here", f"steps, n = {last}", "longest path"]
    found = [Table("Costs by formula: n places of width d", columns, formulas)]
    for device in result.devices:
        for clock, title in (
            (device.over_length, f"d = {result.dim}, by n"),
            (device.over_width, f"n = {result.length}, by d"),
        ):
            rows = [[name, *(f"{value:.1f}" for value in own)] for name, own in clock.milliseconds.items()]
            title = f"Milliseconds on {device.name} for {device.tokens} tokens, there and back: {title}"
            found.append(Table(title, ["layer", *map(str, clock.places)], rows))
        clock = device.over_length
        rows = [[name, *(f"{value / 1000:.1f}" for value in own)] for name, own in clock.bytes_a_token.items()]
        found.append(Table(f"Kilobytes kept a token, d = {result.dim}, by n", ["layer", *map(str, clock.places)], rows))
    return found


def figure(result: Complexity) -> Figure:
    """By count in the first row, by the clock of each device in the next ones."""
    caption = (
        "Lines above are formulas, dots what torch counts in the layers themselves: multiplications, projections included. With 6 n d² a GRU and a convolution of three have as many as self-attention at n = d, "
        "below which self-attention has fewer, above which more. The clock says more: the same number of tokens is given in rows of n, forward and back. What recurrence loses is time: its n steps have "
        "to wait for each other. What self-attention would cost is memory, where the weights of all pairs are held (dashed); the kernel that models use keeps none. Restricted attention here copies each "
        "window, so it is cheap in operations and not in memory."
    )
    paper = charts.paper("What a layer costs", caption, height=4.4 + 3.3 * len(result.devices))
    panels = paper.subplots(1 + len(result.devices), 3)
    _operations(panels[0][0], result.over_length, f"Multiplications a token by n, d = {result.dim}", "n", result.dim)
    _operations(
        panels[0][1], result.over_width, f"Multiplications a token by d, n = {result.length}", "d", result.length
    )
    _lines(panels[0][2], result.over_length.places, result.path, "Longest path between two words", "n")
    for row, device in zip(panels[1:], result.devices, strict=True):
        over, wide = device.over_length, device.over_width
        where = device.name.upper() if device.name == "cpu" else "GPU"
        _lines(
            row[0], over.places, over.milliseconds, f"{where}: ms for {device.tokens:,} tokens by n", "n", result.dim
        )
        _lines(
            row[1], wide.places, wide.milliseconds, f"{where}: ms for {device.tokens:,} tokens by d", "d", result.length
        )
        _lines(row[2], over.places, over.bytes_a_token, f"{where}: bytes kept a token by n", "n", result.dim)
    return paper


def _short(value: int | float, _) -> str:
    """A number on an axis, in thousands and millions."""
    for size, name in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"


def _operations(panel: Axes, curves: Curves, title: str, across: str, mark: int) -> None:
    _lines(panel, curves.places, curves.formula, title, across, mark)
    for color, own in zip(SERIES, curves.counted.values(), strict=False):
        panel.plot(curves.places[: len(own)], own, "o", color=color, markersize=3.6)


def _lines(panel: Axes, places: list[int], values: dict, title: str, across: str, mark: int | None = None) -> None:
    charts.dress(panel, title, across)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    if mark is not None:
        panel.axvline(mark, color=MUTED, linewidth=0.8)
        across_up = panel.get_xaxis_transform()
        panel.text(mark, 0.99, "n = d ", transform=across_up, va="top", ha="right", fontsize=8.5, color=MUTED)
    for color, (name, own) in zip((*SERIES[: len(KINDS)], SERIES[0]), values.items(), strict=False):
        charts.line(panel, places, own, color, (0, (4, 2)) if name == HELD else "-")
    panel.margins(y=0.13)
    panel.set_xticks(places[::2], [str(place) for place in places[::2]])
    panel.yaxis.set_major_locator(
        LogLocator(subs=(1, 2, 5) if max(map(max, values.values())) < 300 * min(map(min, values.values())) else (1,))
    )
    panel.yaxis.set_major_formatter(FuncFormatter(_short))
    panel.minorticks_off()
    charts.name_ends(panel, ["attention" if name == "self-attention" else name for name in values])
