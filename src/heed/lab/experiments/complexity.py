"""The cost of self-attention, recurrence, convolution and restricted attention, by text length and by vector size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from heed.lab import charts
from heed.lab.charts import SERIES, Numbers, Table
from heed.lab.colors import MUTED
from heed.lab.experiments import costs
from heed.lab.experiments.costs import LAYERS
from heed.lab.language import tr

LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
WIDTHS = (32, 64, 128, 256)
FULL_WEIGHTS = "weights held"  # self-attention that stores the weights of all pairs
TOKENS = {"cpu": 512, "cuda": 4096}  # per pass, split into rows of each length; enough to keep a GPU busy
COMPARED = ("convolution", "GRU")  # both have 6 n d² operations: self-attention has as many at n = d


@dataclass(frozen=True)
class Curves:
    """Multiplications per token, by formula and counted: for each layer a list over lengths, or over sizes d."""

    places: list[int]
    formula: dict[str, list[float]]
    counted: dict[str, list[float]]


@dataclass(frozen=True)
class Timing:
    """Milliseconds of forward and backward for `tokens` tokens, and bytes saved per token for the backward pass."""

    places: list[int]
    milliseconds: dict[str, list[float]]
    bytes_a_token: dict[str, list[float]]


@dataclass(frozen=True)
class Device:
    """The measurements on one device."""

    name: str
    threads: int
    tokens: int
    over_length: Timing
    over_width: Timing


@dataclass(frozen=True)
class Complexity:
    """Costs over n at d = dim and over d at n = length, the longest path over n, and the timings of devices."""

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
    """Count and time the layers of `heed.nn` on `tokens` tokens per pass (0: a number that suits the device)."""
    if dim < costs.HEADS or dim % costs.HEADS:
        raise ValueError(f"dim is {dim}; it must be a multiple of {costs.HEADS}, the number of heads")
    for name, value in (("length", length), ("rounds", rounds)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    torch.manual_seed(seed)
    measured = [_device(name, dim, length, rounds, tokens) for name in devices]
    lengths = max((device.over_length.places for device in measured), key=len)
    over_length = _curves([(n, dim) for n in lengths], lengths)
    over_width = _curves([(length, d) for d in WIDTHS], WIDTHS)
    steps = {name: [kind.steps(n) for n in lengths] for name, kind in LAYERS.items()}
    path = {name: [kind.path(n) for n in lengths] for name, kind in LAYERS.items()}
    return Complexity(dim, length, seed, over_length, over_width, steps, path, measured)


def crossing(x: Numbers, rising: Numbers, other: Numbers) -> float | None:
    """Where one curve rises above another for good, on logarithmic axes; None if it never does, or starts above."""
    over = [math.log(a / b) for a, b in zip(rising, other, strict=True)]
    for i in range(len(over) - 1, 0, -1):
        if over[i] > 0 >= over[i - 1]:
            part = over[i - 1] / (over[i - 1] - over[i])
            return float(x[i - 1] * (x[i] / x[i - 1]) ** part)
    return None


def _curves(sizes: list[tuple[int, int]], x: Sequence[int]) -> Curves:
    formula = {name: [kind.operations(n, d) / n for n, d in sizes] for name, kind in LAYERS.items()}
    few = [(n, d) for n, d in sizes if n * n * d <= 2**24]  # counting runs the layer: too slow for larger sizes
    counted = {name: [costs.multiplications(kind.build(d), n, d) / n for n, d in few] for name, kind in LAYERS.items()}
    return Curves(list(x), formula, counted)


def _device(name: str, dim: int, length: int, rounds: int, tokens: int) -> Device:
    tokens = tokens or TOKENS.get(torch.device(name).type, TOKENS["cuda"])
    lengths = [n for n in LENGTHS if n <= tokens]
    if len(lengths) < 2:
        raise ValueError(f"tokens is {tokens}; it must be at least {LENGTHS[1]}, or there are no lengths to compare")
    if length > tokens:
        raise ValueError(f"length is {length}; it must be at most {tokens}, the tokens per batch")
    over_length = _timing([(n, dim) for n in lengths], lengths, name, tokens, rounds)
    over_width = _timing([(length, d) for d in WIDTHS], WIDTHS, name, tokens, rounds)
    return Device(name, torch.get_num_threads(), tokens, over_length, over_width)


def _timing(sizes: list[tuple[int, int]], x_values: Sequence[int], device: str, tokens: int, rounds: int) -> Timing:
    milliseconds: dict[str, list[float]] = {name: [] for name in LAYERS}
    saved: dict[str, list[float]] = {name: [] for name in (*LAYERS, FULL_WEIGHTS)}
    for n, d in sizes:
        layers = {name: kind.build(d).to(device) for name, kind in LAYERS.items()}
        x = torch.randn(max(1, tokens // n), n, d, device=device)
        for name, seconds in costs.time_layers(layers, x, rounds).items():
            milliseconds[name].append(seconds * 1000)
        for name, layer in layers.items():
            saved[name].append(costs.saved_bytes(layer, x) / (len(x) * n))
        saved[FULL_WEIGHTS].append(costs.saved_bytes(layers["self-attention"], x, full_weights=True) / (len(x) * n))
    return Timing(list(x_values), milliseconds, saved)


def summary(result: Complexity) -> str:
    """The result in one sentence."""
    curves = result.over_length
    where = _exceeds_from(curves.places, curves.formula, "GRU")
    text = tr(
        "With d = {dim}, self-attention needs more operations than a GRU or a convolution with kernel 3 {where}",
        dim=result.dim,
        where=where,
    )
    for device in result.devices:
        places, times = device.over_length.places, device.over_length.milliseconds
        convolution, recurrence = (_exceeds_from(places, times, name) for name in COMPARED)
        text += tr(
            "; on {device} it is slower than the convolution {convolution} and than the GRU {recurrence}",
            device=device.name,
            convolution=convolution,
            recurrence=recurrence,
        )
    return text + tr(": the steps of a GRU have to wait for each other.")


def shown_name(name: str) -> str:
    """The name of a layer for readers."""
    names = {
        "self-attention": tr("self-attention"),
        "restricted": tr("restricted"),
        "convolution": tr("convolution"),
        FULL_WEIGHTS: tr("weights stored"),
    }
    return names.get(name, name)


def _exceeds_from(x: Numbers, values: dict[str, list[float]], other: str) -> str:
    """The n from which self-attention costs more than another layer."""
    ours, theirs = values["self-attention"], values[other]
    if ours[-1] <= theirs[-1]:
        return tr("at no n up to {last}", last=x[-1])
    where = crossing(x, ours, theirs)
    return tr("at every n from {first}", first=x[0]) if where is None else tr("from n = {where:.0f} on", where=where)


def tables(result: Complexity) -> list[Table]:
    """Costs by formula, and timings of each device."""
    last = result.over_length.places[-1]
    formulas = [
        [shown_name(name), kind.table, kind.exact, str(kind.steps(last)), str(kind.path(last))]
        for name, kind in LAYERS.items()
    ]
    columns = [tr("layer"), tr("operations"), tr("multiplications in Heed"), tr("steps, n = {last}", last=last), tr("longest path")]  # fmt: skip
    found = [Table(tr("Costs by formula: n positions of width d"), columns, formulas)]
    for device in result.devices:
        times, wide = device.over_length, device.over_width
        title = tr("Milliseconds on {device} for {tokens} tokens, forward and backward", device=device.name, tokens=device.tokens)  # fmt: skip
        by_n, by_d = tr("d = {dim}, by n", dim=result.dim), tr("n = {length}, by d", length=result.length)
        kilobytes = {name: [value / 1000 for value in own] for name, own in times.bytes_a_token.items()}
        found += [
            _table(f"{title}: {by_n}", times.places, times.milliseconds),
            _table(f"{title}: {by_d}", wide.places, wide.milliseconds),
            _table(tr("Kilobytes stored per token, d = {dim}, by n", dim=result.dim), times.places, kilobytes),
        ]
    return found


def _table(title: str, sizes: list[int], values: dict[str, list[float]]) -> Table:
    named = {shown_name(name): numbers for name, numbers in values.items()}
    return Table(title, [tr("layer"), *map(str, sizes)], charts.table_rows(named, ".1f"))


def figure(result: Complexity) -> Figure:
    """Counts in the first row, timings of each device in the next ones."""
    caption = tr(
        "Top: lines are formulas, dots are what torch counts in the layers themselves: multiplications, including projections. With 6 n d², a GRU and a "
        "convolution with kernel 3 need as many as self-attention at n = d; self-attention needs fewer below that, and more above. Timings tell more: "
        "every layer gets the same number of tokens in rows of n, forward and backward. Recurrence loses time, because its n steps have to wait for "
        "each other. Self-attention costs memory if the weights of all pairs are stored (dashed); the kernel that the models use stores none. "
        "Restricted attention copies each window here, so it saves operations but not memory."
    )
    fig = charts.new_figure(tr("What a layer costs"), caption, height=4.4 + 3.3 * len(result.devices))
    panels = fig.subplots(1 + len(result.devices), 3)
    by_n = tr("Multiplications per token by n, d = {dim}", dim=result.dim)
    by_d = tr("Multiplications per token by d, n = {length}", length=result.length)
    _operations(panels[0][0], result.over_length, by_n, "n", result.dim)
    _operations(panels[0][1], result.over_width, by_d, "d", result.length)
    _lines(panels[0][2], result.over_length.places, result.path, tr("Longest path between two words"), "n")
    for row, device in zip(panels[1:], result.devices, strict=True):
        over, wide = device.over_length, device.over_width
        where = "CPU" if device.name == "cpu" else "GPU"
        by_n = tr("{where}: ms for {tokens:,} tokens by n", where=where, tokens=device.tokens)
        by_d = tr("{where}: ms for {tokens:,} tokens by d", where=where, tokens=device.tokens)
        kept = tr("{where}: bytes stored per token by n", where=where)
        _lines(row[0], over.places, over.milliseconds, by_n, "n", result.dim)
        _lines(row[1], wide.places, wide.milliseconds, by_d, "d", result.length)
        _lines(row[2], over.places, over.bytes_a_token, kept, "n", result.dim)
    return fig


def _axis_number(value: int | float, _) -> str:
    """A tick label, in thousands and millions."""
    for size, name in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{name}"
    return f"{value:g}"


def _operations(panel: Axes, curves: Curves, title: str, xlabel: str, mark: int) -> None:
    _lines(panel, curves.places, curves.formula, title, xlabel, mark)
    for color, own in zip(SERIES, curves.counted.values(), strict=False):
        panel.plot(curves.places[: len(own)], own, "o", color=color, markersize=3.6)


def _lines(panel: Axes, x: list[int], values: dict, title: str, xlabel: str, mark: int | None = None) -> None:
    charts.style_axes(panel, title, xlabel, log=True)
    panel.set_xscale("log", base=2)
    if mark is not None:
        panel.axvline(mark, color=MUTED, linewidth=0.8)
        blended = panel.get_xaxis_transform()
        panel.text(mark, 0.99, "n = d ", transform=blended, va="top", ha="right", fontsize=8.5, color=MUTED)
    for color, (name, own) in zip((*SERIES[: len(LAYERS)], SERIES[0]), values.items(), strict=False):
        charts.line(panel, x, own, color, (0, (4, 2)) if name == FULL_WEIGHTS else "-")
    panel.margins(y=0.13)
    panel.set_xticks(x[::2], [str(value) for value in x[::2]])
    few_decades = max(map(max, values.values())) < 300 * min(map(min, values.values()))
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few_decades else (1,)))
    panel.yaxis.set_major_formatter(FuncFormatter(_axis_number))
    panel.minorticks_off()
    charts.label_line_ends(
        panel, [tr("attention") if name == "self-attention" else shown_name(name) for name in values]
    )
