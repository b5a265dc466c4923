"""∂E/∂W of an RNN term by term: the sum over t, the double sum over t and k, and the three coloured terms at t = 3."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from torch import Tensor

from heed.lab import charts
from heed.lab.charts import Table
from heed.lab.colors import INK
from heed.lab.experiments.by_hand import Matrix
from heed.lab.language import tr
from heed.nn.recurrent import RNN, State

DIM, VOCABULARY, STEPS = 3, 5, 5
SHOWN = 3  # the t of the lecture notes
QUIET = 0.5  # the size of inputs: with larger ones tanh is flat, and the yellow term too small to be seen
COLORS = {"red": "#c0392b", "blue": "#2c6fbb", "yellow": "#b58900"}  # k = 3, 2, 1


@dataclass(frozen=True)
class WeightTerms:
    """`terms` are ∂E_3/∂W at k = 3, 2, 1 (red, blue, yellow), `sum` their sum; `norms` those of all terms, by t and k.

    `zero_norms` are the norms at t = 3 if h(0) = 0. The errors are the largest differences from autograd: of single
    terms, of the sums over k, of the double sum, and of one Jacobian diag f′ W.
    """

    terms: dict[str, Matrix]
    sum: Matrix
    norms: list[list[float]]
    zero_norms: dict[str, float]
    term_error: float
    sum_error: float
    total_error: float
    jacobian_error: float


@dataclass(frozen=True)
class Example:
    """A small RNN language model with its inputs, initial state, output matrix and the words that come."""

    net: RNN
    inputs: Tensor
    start: Tensor
    output: Tensor
    words: Tensor


def measure(seed: int = 0) -> WeightTerms:
    """Each term by the formula of the notes, compared with autograd in float64."""
    example = _example(seed)
    by_formula = terms(example, example.start)
    by_autograd, sums, total = autograd_terms(example, example.start)
    found = [by_formula[SHOWN - 1][k] for k in range(SHOWN - 1, -1, -1)]
    zero = terms(example, torch.zeros_like(example.start))[SHOWN - 1]
    return WeightTerms(
        terms=dict(zip(COLORS, [term.tolist() for term in found], strict=True)),
        sum=sum(found).tolist(),
        norms=[[term.norm().item() for term in row] for row in by_formula],
        zero_norms={name: zero[SHOWN - 1 - i].norm().item() for i, name in enumerate(COLORS)},
        term_error=max(_error(a, b) for ours, theirs in zip(by_formula, by_autograd, strict=True) for a, b in zip(ours, theirs, strict=True)),
        sum_error=max(_error(sum(row), own) for row, own in zip(by_formula, sums, strict=True)),
        total_error=_error(sum(sum(row) for row in by_formula), total),
        jacobian_error=_jacobian_error(example),
    )  # fmt: skip


def _error(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()


def _example(seed: int) -> Example:
    torch.manual_seed(seed)
    net = RNN(DIM, DIM).double().requires_grad_(False)
    return Example(
        net, QUIET * torch.randn(STEPS, DIM, dtype=torch.float64), torch.randn(1, DIM, dtype=torch.float64),
        torch.randn(VOCABULARY, DIM, dtype=torch.float64), torch.randint(VOCABULARY, (STEPS,)),
    )  # fmt: skip


def _states(example: Example, start: Tensor) -> list[Tensor]:
    """h(0), h(1), …, by Heed's RNN."""
    state, states = State([(start,)]), [start[0]]
    for x in example.inputs:
        h, state = example.net.step(x[None], state)
        states.append(h[0])
    return states


def terms(example: Example, start: Tensor) -> list[list[Tensor]]:
    """∂E_t/∂ŷ_t ∂ŷ_t/∂h_t (∏ ∂h_j/∂h_{j−1} over j = k+1, …, t) ∂h_k/∂W for each t and each k up to it.

    With h_{k−1} held fixed, ∂h_k/∂W times a row g is diag f′ gᵀ h_{k−1}ᵀ: so the term is 0 where h_{k−1} is.
    """
    weight, states = example.net.layers[0].weight_hh_l0, _states(example, start)
    rows = []
    for t in range(1, STEPS + 1):
        guess = (example.output @ states[t]).softmax(0)
        g = example.output.mT @ (guess - F.one_hot(example.words[t - 1], VOCABULARY))  # ∂E_t/∂h_t
        row = []
        for k in range(t, 0, -1):
            inner = (1 - states[k].square()) * g  # diag f′ of step k
            row.append(torch.outer(inner, states[k - 1]))
            g = weight.mT @ inner  # one more Wᵀ diag f′: ∂E_t/∂h_{k−1}
        rows.append(row[::-1])
    return rows


def autograd_terms(example: Example, start: Tensor) -> tuple[list[list[Tensor]], list[Tensor], Tensor]:
    """The same by autograd: every step has its own copy of W, whose gradient is one term; and ∂E_t/∂W, ∂E/∂W."""
    nets = [copy.deepcopy(example.net).requires_grad_() for _ in range(STEPS)]
    losses = _losses(example, nets, start)
    weights = [net.layers[0].weight_hh_l0 for net in nets]
    rows = [torch.autograd.grad(loss, weights[:t], retain_graph=True) for t, loss in enumerate(losses, 1)]
    net = copy.deepcopy(example.net).requires_grad_()
    losses, weight = _losses(example, [net] * STEPS, start), net.layers[0].weight_hh_l0
    sums = [torch.autograd.grad(loss, weight, retain_graph=True)[0] for loss in losses]
    return [list(row) for row in rows], sums, torch.autograd.grad(sum(losses), weight)[0]


def _losses(example: Example, nets: Sequence[RNN], start: Tensor) -> list[Tensor]:
    """E_1, E_2, …, with one network for each step."""
    state, losses = State([(start,)]), []
    for net, x, word in zip(nets, example.inputs, example.words, strict=True):
        h, state = net.step(x[None], state)
        losses.append(F.cross_entropy(h @ example.output.mT, word[None]))
    return losses


def _jacobian_error(example: Example) -> float:
    """∂h_{j,i}/∂h_{j−1,m} is row i, column m of diag f′ W, a D×D matrix; the notes' Wᵀ diag f′ is its transpose."""
    weight, states = example.net.layers[0].weight_hh_l0, _states(example, example.start)

    def step(h: Tensor) -> Tensor:
        return example.net.step(example.inputs[:1], State([(h[None],)]))[0][0]

    by_autograd = torch.autograd.functional.jacobian(step, example.start[0])
    return _error((weight.mT @ torch.diag(1 - states[1].square())).mT, by_autograd)


def tables(own: WeightTerms) -> list[Table]:
    """The three terms at t = 3, all terms by t and k, and the differences from autograd."""
    names = {"red": tr("red, k = 3"), "blue": tr("blue, k = 2"), "yellow": tr("yellow, k = 1")}
    formulas = {
        "red": "∂E₃/∂ŷ₃ ∂ŷ₃/∂h₃ ∂h₃/∂W",
        "blue": "∂E₃/∂ŷ₃ ∂ŷ₃/∂h₃ ∂h₃/∂h₂ ∂h₂/∂W",
        "yellow": "∂E₃/∂ŷ₃ ∂ŷ₃/∂h₃ ∂h₃/∂h₂ ∂h₂/∂h₁ ∂h₁/∂W",
    }
    norms = dict(zip(COLORS, own.norms[SHOWN - 1][::-1], strict=True))
    coloured = [[names[name], formulas[name], f"{norms[name]:.6f}", f"{own.zero_norms[name]:.6f}"] for name in COLORS]
    by_step = [
        [f"t = {t}", *(f"{norm:.4f}" for norm in row), *["0"] * (STEPS - t)] for t, row in enumerate(own.norms, 1)
    ]
    errors = {
        tr("one term (t, k)"): own.term_error,
        tr("∂E_t/∂W = Σ_k"): own.sum_error,
        tr("∂E/∂W = Σ_t Σ_k"): own.total_error,
        tr("one Jacobian ∂h₁/∂h₀ = diag f′ W, D×D"): own.jacobian_error,
    }
    return [
        Table(tr("∂E₃/∂W = red + blue + yellow"), ["", "", tr("its norm"), tr("norm if h(0) = 0")], coloured),
        Table(tr("Norms of all terms of ∂E/∂W"), ["", *(f"k = {k}" for k in range(1, STEPS + 1))], by_step),
        Table(
            tr("Largest difference from autograd"),
            ["", ""],
            charts.table_rows({k: [v] for k, v in errors.items()}, ".1e"),
        ),
    ]


def draw(fig: Figure, place: SubplotSpec, own: WeightTerms) -> None:
    """Red + blue + yellow = ∂E₃/∂W as matrices, then the norms of all terms."""
    grid = place.subgridspec(1, 5, width_ratios=[1, 1, 1, 1, 1.7])
    top = max(abs(value) for matrix in (own.sum, *own.terms.values()) for row in matrix for value in row)
    titles = {"red": tr("red: k = 3"), "blue": tr("+ blue: k = 2"), "yellow": tr("+ yellow: k = 1")}
    shown = [(titles[name], own.terms[name], COLORS[name]) for name in COLORS] + [("= ∂E₃/∂W", own.sum, INK)]
    for number, (title, matrix, color) in enumerate(shown):
        panel = fig.add_subplot(grid[number])
        charts.heatmap(panel, matrix, charts.DIVERGING, -1.5 * top, 1.5 * top, title)
        charts.label_cells(panel, matrix, ".2f", 0.75 * top)
        panel.set_title(title, loc="left", color=color, fontsize=9.2)
        panel.set_xticks([])
        panel.set_yticks([])
    panel = fig.add_subplot(grid[4])
    cells = [[*row, *[float("nan")] * (STEPS - len(row))] for row in own.norms]
    high = max(max(row) for row in own.norms)
    charts.heatmap(panel, cells, charts.RAMP, 0.0, high, tr("Norms by t and k"))
    charts.label_cells(panel, cells, ".2f", 0.45 * high)
    panel.set_xticks(range(STEPS), [f"k={k}" for k in range(1, STEPS + 1)])
    panel.set_yticks(range(STEPS), [f"t={t}" for t in range(1, STEPS + 1)])
