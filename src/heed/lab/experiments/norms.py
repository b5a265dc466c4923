"""What norms and residuals are for: layer norm against batch norm, and the gradient through a deep stack of layers."""

import math
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from heed.lab import charts
from heed.lab.charts import SERIES, Table
from heed.lab.colors import ACCENT, INK, WARM
from heed.lab.experiments import norms_notes, stacks
from heed.lab.experiments.norms_notes import NotesNumber
from heed.lab.language import tr

# The lecture notes normalize a word whose numbers begin with 4 and 2, with mean 3.5 and deviation 1.11; of four integers
# only 4, 2, 3, 5 fit. The other words of the batch are ours.
WORD = [4.0, 2.0, 3.0, 5.0]
FIRST_OTHERS = [[1.0, 3.0, 0.0, 2.0], [6.0, 1.0, 2.0, 3.0]]
SECOND_OTHERS = [[9.0, 3.0, 8.0, 0.0], [6.0, 7.0, 2.0, 9.0]]
HEADS = 4


@dataclass(frozen=True)
class Example:
    """A batch of three words of four numbers, normalized both ways; only the first word is the same in both examples."""

    batch: list[list[float]]
    layer: list[list[float]]
    by_batch: list[list[float]]


@dataclass(frozen=True)
class DepthProfile:
    """By depth: the norm of the gradient at each layer's input (last: at the output of the stack) and at its weights, and
    how similar the words of a text are there (their mean cosine).
    """

    gradient: list[float]
    weights: list[float]
    alike: list[float]


@dataclass(frozen=True)
class Norms:
    """The example, and profiles of stacks by their wrappers; geometric means over `draws` initializations."""

    dim: int
    layers: int
    length: int
    seed: int
    draws: int
    mean: float
    deviation: float
    notes: list[NotesNumber]
    examples: list[Example]
    stacks: dict[str, DepthProfile]


def measure(dim: int = 64, layers: int = 24, length: int = 16, seed: int = 0, draws: int = 3) -> Norms:
    """Compute the example with torch's norms, and the gradients through stacks of our layers by autograd."""
    if dim < HEADS or dim % HEADS:
        raise ValueError(f"dim is {dim}; it must be a multiple of {HEADS}, the number of heads")
    for name, value, least in (("layers", layers, 2), ("length", length, 2), ("draws", draws, 1)):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    word = torch.tensor(WORD, dtype=torch.float64)
    profiles: dict[str, list[DepthProfile]] = {kind: [] for kind in stacks.WRAPPERS}
    for draw in range(draws):
        for kind, drawn in profiles.items():
            torch.manual_seed(seed * 1000 + draw)
            drawn.append(measure_stack(stacks.build_stack(kind, dim, HEADS, layers), dim, length))
    examples = [example([WORD, *others]) for others in (FIRST_OTHERS, SECOND_OTHERS)]
    mean, deviation, notes = word.mean().item(), word.std(correction=0).item(), norms_notes.compare(WORD)
    means = {kind: _mean(drawn) for kind, drawn in profiles.items()}
    return Norms(dim, layers, length, seed, draws, mean, deviation, notes, examples, means)


def example(batch: list[list[float]]) -> Example:
    """Layer norm normalizes each word (row), batch norm each column over the words of the batch."""
    x = torch.tensor(batch, dtype=torch.float64)
    layer = nn.LayerNorm(x.shape[1], eps=1e-12, dtype=torch.float64)
    by_batch = nn.BatchNorm1d(x.shape[1], eps=1e-12, dtype=torch.float64)
    return Example(batch, layer(x).tolist(), by_batch(x).tolist())


def measure_stack(stack: nn.Module, dim: int, length: int, rows: int = 4, vocabulary: int = 500) -> DepthProfile:
    """One forward and backward pass from random words, with the loss of random next words."""
    output = torch.randn(vocabulary, dim) / math.sqrt(dim)
    inputs: list[Tensor] = []
    hooks = [layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0])) for layer in stack.layers]
    y = stack(torch.randn(rows, length, dim, requires_grad=True))
    for hook in hooks:
        hook.remove()
    logits = (y @ output.T).flatten(0, 1)
    loss = F.cross_entropy(logits, torch.randint(vocabulary, (rows * length,)))
    weights = [layer.mlp.body.down.weight for layer in stack.layers]
    grads = [grad.norm().item() for grad in torch.autograd.grad(loss, [*inputs, y, *weights])]
    alike = [_mean_cosine(x.detach()) for x in (*inputs, y)]
    return DepthProfile(grads[: len(inputs) + 1], grads[len(inputs) + 1 :], alike)


def _mean_cosine(x: Float[Tensor, "b t dim"]) -> float:
    """The mean cosine between two different words of one text."""
    x = F.normalize(x, dim=-1)
    cosine, words = x @ x.mT, x.shape[1]
    return ((cosine.sum() - cosine.diagonal(dim1=1, dim2=2).sum()) / (len(x) * words * (words - 1))).item()


def _mean(draws: list[DepthProfile]) -> DepthProfile:
    """Geometric means of the gradients, the mean of the cosines."""
    rows = ([getattr(own, field.name) for own in draws] for field in fields(DepthProfile))
    gradient, weights, alike = (torch.tensor(values, dtype=torch.float64) for values in rows)
    means = [values.log().mean(0).exp().tolist() for values in (gradient, weights)]
    return DepthProfile(*means, alike.mean(0).tolist())


def summary(result: Norms) -> str:
    """The result in one sentence."""
    factor = {kind: own.gradient[0] / own.gradient[-1] for kind, own in result.stacks.items()}
    return tr(
        "Through {layers} layers the gradient is multiplied by {neither:.0e} with neither residual nor norm, by {residual:.0e} with residuals alone, by "
        "{post:.1f} with post-norm and {pre:.1f} with pre-norm; layer norm gives a word the same result whatever else is in its batch, batch norm does "
        "not.",
        layers=result.layers,
        neither=factor["neither"],
        residual=factor["residual alone"],
        post=factor["post-norm"],
        pre=factor["pre-norm"],
    )


def shown_name(kind: str) -> str:
    """The name of a kind of stack for readers."""
    names = {
        "neither": tr("neither"),
        "norm alone": tr("norm alone"),
        "residual alone": tr("residual alone"),
        "post-norm": tr("post-norm"),
        "pre-norm": tr("pre-norm"),
    }
    return names[kind]


def tables(result: Norms) -> list[Table]:
    """The example, and the stacks."""
    first, second = result.examples
    words = {
        tr("the word"): first.batch[0],
        tr("layer norm"): first.layer[0],
        tr("batch norm, first batch"): first.by_batch[0],
        tr("batch norm, second batch"): second.by_batch[0],
    }
    depth, middle = [], result.layers // 2
    for kind, own in result.stacks.items():
        gradients = own.gradient[0], own.gradient[middle], own.gradient[-1], own.weights[0], own.weights[-1]
        depth.append([shown_name(kind), *(f"{value:.2g}" for value in gradients), f"{own.alike[-1]:.3f}"])
    title = tr(
        "A word with mean {mean:g} and standard deviation {deviation:.3f}", mean=result.mean, deviation=result.deviation
    )
    columns = [tr("gradient at the bottom"), tr("middle"), tr("top"), tr("of first weights"), tr("of last weights")]
    stack_title = tr("{layers} layers, dim {dim}, nothing trained", layers=result.layers, dim=result.dim)
    return [
        Table(title, ["", "1", "2", "3", "4"], charts.table_rows(words, ".3f")),
        norms_notes.table(result.notes),
        Table(stack_title, ["", *columns, tr("similarity of words")], depth),
    ]


def figure(result: Norms) -> Figure:
    """The example as heatmaps, the stacks as lines."""
    caption = tr(
        "Top: layer norm computes mean and standard deviation over the features of a word (a row), batch norm over the words of a batch (a column); in "
        "the second batch only the first word is the same. Bottom: random words in, the loss of random next words out, nothing trained. With neither "
        "residuals nor norms, each layer reduces the gradient; residuals alone let the sum grow layer by layer, and the gradient with it. A norm alone "
        "preserves the scale, but within three layers all words of a text become the same vector: then even a large gradient says nothing about any one "
        "of them. With both, the gradient is preserved; and with the norm inside the residual branch (pre-norm), words stay distinct through many more "
        "layers than with the norm after it (post-norm)."
    )
    fig = charts.new_figure(tr("What norms and residuals are for"), caption, height=8.6)
    above, below = fig.subfigures(2, 1, height_ratios=[1.0, 2.1])
    small, large = above.subplots(1, 4), below.subplots(1, 3)
    first, second = result.examples
    cells = [
        (tr("Three words"), first.batch, 9.0),
        (tr("Layer norm"), first.layer, 2.0),
        (tr("Batch norm"), first.by_batch, 2.0),
        (tr("Batch norm, other words"), second.by_batch, 2.0),
    ]
    for panel, (title, values, top) in zip(small, cells, strict=True):
        _cells(panel, title, values, top)
    _lines(large[0], result, "gradient", tr("Gradient at a layer's input"))
    _lines(large[1], result, "weights", tr("Gradient of its weights"))
    _lines(large[2], result, "alike", tr("Similarity of words (cosine)"))
    return fig


def _cells(panel: Axes, title: str, values: list[list[float]], top: float) -> None:
    charts.heatmap(panel, values, charts.DIVERGING, -1.6 * top, 1.6 * top, title)
    charts.label_cells(panel, values, "g" if top > 2 else ".2f", math.inf, size=9.5)
    panel.set_xticks([])
    panel.set_yticks(range(3), [tr("first"), tr("second"), tr("third")] if top > 2 else [""] * 3)
    panel.add_patch(Rectangle((-0.5, -0.5), 4, 1, fill=False, edgecolor=INK, linewidth=1.6, clip_on=False))


def _lines(panel: Axes, result: Norms, what: str, title: str) -> None:
    forward = what == "alike"
    xlabel = tr("after this many layers") if forward else tr("layers back from the loss")
    charts.style_axes(panel, title, xlabel, log=not forward)
    colors = (SERIES[4], SERIES[2], SERIES[5], WARM, ACCENT)
    for color, own in zip(colors, result.stacks.values(), strict=True):
        values = getattr(own, what)
        charts.line(panel, range(len(values)), values if forward else values[::-1], color)
    short = {"norm alone": tr("norm"), "residual alone": tr("residual")}
    charts.label_line_ends(panel, [short.get(kind) or shown_name(kind) for kind in result.stacks])
