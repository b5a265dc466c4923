"""The chain rule in several variables: the example of the lecture notes, by the rule, by autograd and in closed form."""

import math
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from torch import Tensor

from heed.lab import charts
from heed.lab.charts import Table
from heed.lab.colors import ACCENT, INK, WARM
from heed.lab.language import tr

T = 1.7


@dataclass(frozen=True)
class ChainRule:
    """f = sin(x) e^(y z²) along x = t − 1, y = t², z = 1/t: the three values, ∂f/∂·, d·/dt and their products at t.

    `total` is their sum, J_f dx/dt; `middle` is the second line of the lecture notes, whose last term lacks z. The lines are
    df/dt by the rule, by autograd and by that line at each of `times`.
    """

    t: float
    values: list[float]
    partials: list[float]
    rates: list[float]
    products: list[float]
    total: float
    autograd: float
    closed_form: float
    middle: float
    times: list[float]
    by_rule: list[float]
    by_autograd: list[float]
    by_middle: list[float]


def measure(t: float = T) -> ChainRule:
    """Everything in float64."""
    values, partials, rates = parts(t)
    times = [0.4 + 0.1 * step for step in range(27)]
    return ChainRule(
        t, values, partials, rates, [p * r for p, r in zip(partials, rates, strict=True)], by_rule(t), by_autograd(t),
        math.e * math.cos(t - 1), by_middle_line(t), times, [by_rule(one) for one in times],
        [by_autograd(one) for one in times], [by_middle_line(one) for one in times],
    )  # fmt: skip


def parts(t: float) -> tuple[list[float], list[float], list[float]]:
    """x, y, z; the partial derivatives of f, which are the Jacobian J_f, a row; and the derivatives of x, y, z, a column."""
    x, y, z = t - 1, t**2, 1 / t
    power = math.exp(y * z**2)
    partials = [math.cos(x) * power, z**2 * math.sin(x) * power, 2 * y * z * math.sin(x) * power]
    return [x, y, z], partials, [1.0, 2 * t, -1 / t**2]


def by_rule(t: float) -> float:
    """df/dt = J_f · dx/dt: a dot product."""
    _, partials, rates = parts(t)
    return sum(partial * rate for partial, rate in zip(partials, rates, strict=True))


def by_middle_line(t: float) -> float:
    """The second line of the lecture notes, in which ∂f/∂z is 2y sin(x) e^(y z²), without z."""
    (_, _, z), partials, rates = parts(t)
    return partials[0] * rates[0] + partials[1] * rates[1] + partials[2] / z * rates[2]


def by_autograd(t: float) -> float:
    def f(t: Tensor) -> Tensor:
        x, y, z = t - 1, t**2, 1 / t
        return torch.sin(x) * torch.exp(y * z**2)

    at = torch.tensor(t, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(f(at), at)[0].item()


def tables(own: ChainRule) -> list[Table]:
    """The three terms, and their sum compared with the other computations."""
    columns = ["", tr("value"), "∂f/∂·", "d·/dt", tr("product")]
    rows = zip(own.values, own.partials, own.rates, own.products, strict=True)
    terms = charts.table_rows(dict(zip("xyz", rows, strict=True)), ".6f")
    sums = {
        tr("sum of the products, J_f · dx/dt"): own.total,
        tr("autograd"): own.autograd,
        tr("e cos(t − 1), since y z² = 1"): own.closed_form,
        tr("second line of the notes, with z missing in the last term"): own.middle,
    }
    title = tr("Chain rule at t = {t:g}: f = sin(x) e^(y z²), x = t − 1, y = t², z = 1/t", t=own.t)
    return [
        Table(title, columns, terms),
        Table("df/dt", ["", f"t = {own.t:g}"], charts.table_rows({k: [v] for k, v in sums.items()}, ".6f")),
    ]


def draw(panel: Axes, own: ChainRule) -> None:
    """df/dt by the rule and by the second line of the notes; dots are autograd's."""
    charts.style_axes(panel, tr("df/dt of the notes' example:\na z is missing in one line"), "t")
    charts.line(panel, own.times, own.by_middle, WARM)
    charts.line(panel, own.times, own.by_rule, ACCENT)
    panel.plot(own.times[::2], own.by_autograd[::2], "o", color=ACCENT, markersize=3.4)
    panel.plot([own.t, own.t], [own.middle, own.total], color=INK, linewidth=0.8, linestyle=":")
    panel.text(own.t + 0.1, own.total + 0.4, f"{own.total:.3f}", fontsize=9, color=ACCENT)
    panel.text(own.t - 0.1, own.middle - 0.7, f"{own.middle:.3f}", fontsize=9, color=WARM, ha="right")
    panel.set_ylim(-8.5, 3.6)
    charts.note(panel, 0.03, 0.17, tr("line: chain rule, dots: autograd"), color=ACCENT)
    charts.note(panel, 0.03, 0.06, tr("second line of the notes"), color=WARM)
