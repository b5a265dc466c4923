"""Why scores are divided by √d_k: q·k has deviation √d_k, and a softmax of widely spread scores has no gradient."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from heed.lab import charts
from heed.lab.charts import Table
from heed.lab.colors import ACCENT, WARM
from heed.lab.language import tr
from heed.nn.attention import mix

# Three scores, and the same divided by ten, with their softmax as printed in the lecture notes.
NOTES_SCORES = ([100.0, 50.0, 50.0], [10.0, 5.0, 5.0])
NOTES_WEIGHTS = (
    [1.0, 1.9287498479639e-22, 1.9287498479639e-22],
    [0.98670329104227, 0.006648354478866, 0.006648354478866],
)
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class SoftmaxStats:
    """For each width: variance of the scores, mean entropy of the weights, and their gradient at the median query."""

    variance: list[float]
    entropy: list[float]
    gradient: list[float]


@dataclass(frozen=True)
class Example:
    """A few scores, their softmax, and the derivative of the first weight with respect to its score."""

    scores: list[float]
    weights: list[float]
    notes: list[float]
    gradient: float


@dataclass(frozen=True)
class Scaling:
    """For each width of q and k: plain scores, and scores divided by its root."""

    widths: list[int]
    keys: int
    queries: int
    seed: int
    plain: SoftmaxStats
    scaled: SoftmaxStats
    examples: list[Example]


def measure(keys: int = 64, seed: int = 0, groups: int = 128, queries: int = 32) -> Scaling:
    """Draw q and k from N(0, 1), with separate keys for each group of queries, and apply the softmax of `heed.nn`."""
    if keys < 2:
        raise ValueError(f"keys is {keys}; it must be at least 2, or there is nothing to choose from")
    generator = torch.Generator().manual_seed(seed)
    stats: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    for width in WIDTHS:
        q = torch.randn(groups, queries, width, generator=generator)
        k = torch.randn(groups, keys, width, generator=generator)
        scores = (q @ k.mT).double()
        for scaled, rows in stats.items():
            rows.append(_describe(scores / math.sqrt(width) if scaled else scores))
    plain, divided = (SoftmaxStats(*map(list, zip(*rows, strict=True))) for rows in stats.values())
    examples = [_example(*pair) for pair in zip(NOTES_SCORES, NOTES_WEIGHTS, strict=True)]
    return Scaling(list(WIDTHS), keys, groups * queries, seed, plain, divided, examples)


def attention_weights(scores: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows k"]:
    """The softmax of these scores, as our attention computes it."""
    return mix(scores, torch.eye(scores.shape[-1], dtype=scores.dtype))[1]


def jacobian_norm(weights: Float[Tensor, "*rows k"]) -> Float[Tensor, "*rows"]:
    """The Frobenius norm of the softmax's Jacobian diag(w) - w wᵀ, without building the matrix."""
    two, three = weights.square().sum(-1), weights.pow(3).sum(-1)
    return (two - 2 * three + two.square()).clamp(min=0).sqrt()


def _describe(scores: Float[Tensor, "g q k"]) -> tuple[float, float, float]:
    weights = attention_weights(scores)
    entropy = torch.special.entr(weights).sum(-1).mean() / math.log(2)
    return scores.var().item(), entropy.item(), jacobian_norm(weights).median().item()


def _example(scores: list[float], notes: list[float]) -> Example:
    weights = attention_weights(torch.tensor(scores, dtype=torch.float64))
    others = weights[1:].sum().item()  # 1 - w of the first, which would underflow to 0 in float64
    return Example(scores, weights.tolist(), notes, weights[0].item() * others)


def summary(result: Scaling) -> str:
    """The result in one sentence."""
    plain, scaled = result.plain, result.scaled
    return tr(
        "The variance of q·k grows with d_k ({variance:.0f} at {width}); without division, the entropy of the weights over {keys} keys falls from "
        "{first:.1f} to {last:.1f} bits and their gradient to {gradient:.1g}, while divided by √d_k they stay at {kept:.1f} bits and "
        "{gradient_kept:.2f}.",
        variance=plain.variance[-1],
        width=result.widths[-1],
        keys=result.keys,
        first=plain.entropy[0],
        last=plain.entropy[-1],
        gradient=plain.gradient[-1],
        kept=scaled.entropy[-1],
        gradient_kept=scaled.gradient[-1],
    )


def _join(values: list[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def tables(result: Scaling) -> list[Table]:
    """By width, and the example of the lecture notes."""
    rows = []
    for i, width in enumerate(result.widths):
        row = [str(width)]
        for own in (result.plain, result.scaled):
            row += [f"{own.variance[i]:.2f}", f"{own.entropy[i]:.2f}", f"{own.gradient[i]:.2g}"]
        rows.append(row)
    notes = [
        [_join(own.scores, "g"), _join(own.weights, ".5g"), _join(own.notes, ".5g"), f"{own.gradient:.3g}"]
        for own in result.examples
    ]
    both = [tr("bits"), tr("gradient")]
    columns = ["d_k", tr("q·k: variance"), *both, tr("q·k/√d_k: variance"), *both]
    columns_of_notes = [tr("scores"), "softmax", tr("lecture notes"), tr("gradient of the first")]
    return [
        Table(tr("Softmax over {keys} keys", keys=result.keys), columns, rows),
        Table(tr("Three scores"), columns_of_notes, notes),
    ]


def figure(result: Scaling) -> Figure:
    """Variance, entropy and gradient by width, and the example of the lecture notes."""
    caption = tr(
        "q and k are drawn from N(0, 1), {queries:,} queries over {keys} keys each. A sum of dₖ products has variance dₖ: the wider a head, the further "
        "apart its scores, until the softmax picks one key and all but ignores the rest. There its gradient is close to zero, and the scores cannot be "
        "learned. Dividing by √dₖ keeps the variance at 1 for any width. In the lecture notes' example, dividing by ten (the root of 100) takes the "
        "gradient from 10⁻²² to 10⁻².",
        queries=result.queries,
        keys=result.keys,
    )
    fig = charts.new_figure(tr("Why scores are divided by √dₖ"), caption)
    panels, most = fig.subplots(2, 2), math.log2(result.keys)
    _curves(panels[0, 0], result, "variance", tr("Variance of the scores"))
    title = tr("Entropy of the weights, bits (uniform over {keys}: {most:g})", keys=result.keys, most=most)
    _curves(panels[0, 1], result, "entropy", title, most)
    _curves(panels[1, 0], result, "gradient", tr("Gradient of the softmax at the median query"))
    _example_bars(panels[1, 1], result)
    return fig


def _curves(panel, result: Scaling, what: str, title: str, top: float | None = None) -> None:
    """One measure by width; on a logarithmic axis, or from 0 to `top`."""
    charts.style_axes(panel, title, tr("dₖ, the width of q and k"))
    panel.set_xscale("log", base=2)
    ticks = result.widths[::2]
    panel.set_xticks(ticks, [str(width) for width in ticks])
    panel.minorticks_off()
    charts.line(panel, result.widths, getattr(result.plain, what), WARM, marker="o")
    charts.line(panel, result.widths, getattr(result.scaled, what), ACCENT, marker="o")
    if top is None:
        panel.set_yscale("log", base=10)
    else:
        panel.set_ylim(0, top)
    charts.label_line_ends(panel, ["q·k", "q·k / √dₖ"])


def _example_bars(panel, result: Scaling) -> None:
    """Weights of the second key and gradients, as bars on a logarithmic axis that begins at 10^-24."""
    charts.style_axes(panel, tr("The lecture notes' example"))
    panel.grid(False)
    panel.set_xscale("log")
    panel.set_xlim(1e-24, 1e4)
    for own, color, top in zip(result.examples, (WARM, ACCENT), (0.0, -4.5), strict=True):
        text = f"softmax ({_join(own.scores, 'g')})"
        panel.text(1e-24, top + 0.8, text, va="center", fontsize=9, color=color)
        for row, value in enumerate((own.weights[0], own.weights[1], own.gradient)):
            panel.barh(top - row, value - 1e-24, left=1e-24, height=0.72, color=color, alpha=1.0 if row == 2 else 0.55)
            panel.text(value * 2.2, top - row, f"{value:.4g}", va="center", fontsize=8.8, color=color)
    panel.set_yticks([0, -1, -2, -4.5, -5.5, -6.5], [tr("first weight"), tr("second, third"), tr("gradient")] * 2)
    panel.set_ylim(-7.2, 1.6)
    panel.set_xticks([1e-24, 1e-18, 1e-12, 1e-6, 1.0])
    panel.minorticks_off()
