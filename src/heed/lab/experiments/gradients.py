"""How far a gradient reaches: through the steps of recurrent networks, and across the sentence by self-attention."""

import math
import re
from dataclasses import dataclass

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from heed.lab import charts
from heed.lab.charts import SERIES, Table
from heed.lab.colors import ACCENT, INK, MUTED, WARM
from heed.lab.experiments import chain_rule, jacobians, weight_terms
from heed.lab.experiments.jacobians import HEADS, NAMES
from heed.lab.language import title_weight, tr
from heed.nn.recurrent import RNN, Recurrent

# The two sentences of the lecture notes (theirs are those of Stanford's CS224n); the next word is the answer.
SENTENCES = (
    "Jane walked into the room. John walked in too. Jane said hi to",
    "Jane walked into the room. John walked in too. It was late in the day, and everyone was walking home after a long "
    "day at work. Jane said hi to",
)
ANSWER = "John"
SINGULAR_VALUES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0)
SMALL = 0.05  # the size of inputs for which tanh is nearly linear, so that only W matters


@dataclass(frozen=True)
class Sentence:
    """The gradient of the loss of the answer at each word, by network; `said` is the last position of the answer's word."""

    words: list[str]
    said: int
    gradients: dict[str, list[float]]

    def gradient_at_answer(self, name: str) -> float:
        return self.gradients[name][self.said]

    @property
    def distance(self) -> int:
        """How many words before the last that position is."""
        return len(self.words) - 1 - self.said


@dataclass(frozen=True)
class Sweep:
    """An RNN whose W has this largest singular value: ‖∂h_t/∂h_k‖ by distance, with small (`quiet`) inputs and with words."""

    largest: float
    quiet: list[float]
    words: list[float]


@dataclass(frozen=True)
class Gradients:
    """Geometric means over `draws` initializations. Lists by distance begin with distance 1."""

    dim: int
    length: int
    seed: int
    draws: int
    states: dict[str, list[float]]
    product: list[float]
    product_error: float
    sweep: list[Sweep]
    sentences: list[Sentence]
    chain_rule: chain_rule.ChainRule
    weight_terms: weight_terms.WeightTerms


def measure(dim: int = 32, length: int = 41, seed: int = 0, draws: int = 6) -> Gradients:
    """Measure everything in float64 by autograd; the RNN also by the product of the lecture notes."""
    if dim < HEADS or dim % HEADS:
        raise ValueError(f"dim is {dim}; it must be a multiple of {HEADS}, the number of heads")
    if not 3 <= length <= 500:  # beyond that, powers of singular values overflow or underflow float64
        raise ValueError(f"length is {length}; it must be from 3 to 500")
    if draws < 1:
        raise ValueError(f"draws is {draws}; it must be at least 1")
    torch.manual_seed(seed)
    states: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    products, error = [], 0.0
    for _ in range(draws):
        inputs = torch.randn(length, dim, dtype=torch.float64)
        for name in NAMES:
            net = jacobians.build_network(name, dim, length)
            of_network = jacobians.of_recurrent if isinstance(net, Recurrent) else jacobians.of_attention
            by_autograd = torch.stack(of_network(net, inputs))
            states[name].append(_norms(by_autograd))
            if isinstance(net, RNN):
                by_formula = torch.stack(jacobians.by_product(net, inputs))
                products.append(_norms(by_formula))
                error = max(error, (by_autograd - by_formula).abs().max().item())
    means = {name: _geometric_mean(norms) for name, norms in states.items()}
    sweep = [_sweep(largest, dim, length, seed) for largest in SINGULAR_VALUES]
    sentences = [_sentence(text, dim, seed, draws) for text in SENTENCES]
    by_rule, terms = chain_rule.measure(), weight_terms.measure(seed)
    product = _geometric_mean(products)
    return Gradients(dim, length, seed, draws, means, product, error, sweep, sentences, by_rule, terms)


def tokens(text: str) -> list[str]:
    """The words and punctuation marks of a text."""
    return re.findall(r"\w+|[^\w\s]", text)


def _sentence(text: str, dim: int, seed: int, draws: int) -> Sentence:
    words = tokens(text)
    vocabulary = sorted(set(words) | {ANSWER})
    ids = torch.tensor([vocabulary.index(word) for word in words])
    gradients: dict[str, list[list[float]]] = {name: [] for name in NAMES}
    torch.manual_seed(seed)
    for _ in range(draws):
        table = torch.randn(len(vocabulary), dim, dtype=torch.float64)
        output = torch.randn(len(vocabulary), dim, dtype=torch.float64) / math.sqrt(dim)
        for name in NAMES:
            net = jacobians.build_network(name, dim, len(words))
            gradients[name].append(jacobians.loss_gradients(net, table[ids], output, vocabulary.index(ANSWER)))
    said = len(words) - 1 - words[::-1].index(ANSWER)
    return Sentence(words, said, {name: _geometric_mean(draws) for name, draws in gradients.items()})


def _sweep(largest: float, dim: int, length: int, seed: int) -> Sweep:
    torch.manual_seed(seed)
    net, inputs = jacobians.scaled_rnn(largest, dim), torch.randn(length, dim, dtype=torch.float64)
    return Sweep(largest, *(_norms(torch.stack(jacobians.by_product(net, inputs * size))) for size in (SMALL, 1.0)))


def _norms(jacobians: Float[Tensor, "distance dim state"]) -> list[float]:
    """The largest singular value of each."""
    return torch.linalg.matrix_norm(jacobians, ord=2).tolist()


def _geometric_mean(rows: list[list[float]]) -> list[float]:
    return torch.tensor(rows, dtype=torch.float64).log().mean(0).exp().tolist()


def summary(result: Gradients) -> str:
    """The result in one sentence."""
    short, long = result.sentences
    factor = {name: short.gradient_at_answer(name) / long.gradient_at_answer(name) for name in NAMES}
    return tr(
        "With {name} {far} words back instead of {near}, the gradient at that word is {rnn:,.0f} times smaller in the RNN, {gru:,.0f} in the GRU, "
        "{lstm:,.0f} in the LSTM and {attention:.1f} with self-attention; the product ∏ Wᵀ diag f′ differs from autograd by at most {error:.0e}.",
        name=ANSWER,
        far=long.distance,
        near=short.distance,
        rnn=factor["RNN"],
        gru=factor["GRU"],
        lstm=factor["LSTM"],
        attention=factor["self-attention"],
        error=result.product_error,
    )


def shown_name(name: str) -> str:
    """The name of a network for readers."""
    return {"self-attention": tr("self-attention"), "no residuals": tr("no residuals")}.get(name, name)


def tables(result: Gradients) -> list[Table]:
    """By distance, by sentence, and by the largest singular value of W."""
    distances = [distance for distance in (1, 5, 10, 20, 40, 80, 160) if distance < result.length]
    by_network = {name: [result.states[name][distance - 1] for distance in distances] for name in NAMES}
    for name, values in by_network.items():
        values += [sentence.gradient_at_answer(name) for sentence in result.sentences]
    columns = ["t - k", *(str(distance) for distance in distances)]
    columns += [tr("{name}, {far} back", name=ANSWER, far=sentence.distance) for sentence in result.sentences]
    title = tr("‖∂h_t/∂h_k‖ by distance, and the gradient of the loss at {name}", name=ANSWER)
    far = result.length - 2
    sweep = charts.table_rows({f"{own.largest:g}": (own.quiet[far], own.words[far]) for own in result.sweep}, ".2g")
    sweep_columns = [tr("largest singular value of W"), tr("small inputs"), tr("words")]
    return [
        Table(title, columns, charts.table_rows({shown_name(name): own for name, own in by_network.items()}, ".2g")),
        Table(tr("RNN, ‖∂h_t/∂h_k‖ at distance {far}", far=far + 1), sweep_columns, sweep),
        *chain_rule.tables(result.chain_rule),
        *weight_terms.tables(result.weight_terms),
    ]


def figure(result: Gradients) -> Figure:
    """Gradients by distance, by the singular values of W, and word by word."""
    caption = tr(
        "h_k: the state of a recurrent network at position k, or the input of the first of six self-attention layers there. No network is trained, and "
        "each line is the mean over several initializations. Each step back multiplies by Wᵀ diag f′ once more, so a recurrent gradient shrinks or "
        "grows exponentially; gates slow this down. With self-attention any two words are one step apart; without residuals every layer reduces the "
        "gradient, and a word's own position is lost among the others. Dots: the product in the lecture notes, which matches autograd to {error:.0e}. "
        "Last row: the chain rule of the notes, and ∂E₃/∂W of a small RNN as the sum of its three terms.",
        error=result.product_error,
    )
    fig = charts.new_figure(tr("How far a gradient reaches"), caption, height=12.8)
    grid = fig.add_gridspec(4, 6, height_ratios=[3.4, 1.5, 1.5, 2.6])
    _by_distance(fig.add_subplot(grid[0, :2]), result)
    _by_singular_value(fig.add_subplot(grid[0, 2:4]), result)
    _around_one(fig.add_subplot(grid[0, 4:]), result)
    for row, sentence in enumerate(result.sentences, 1):
        _word_heatmap(fig.add_subplot(grid[row, :]), sentence, max(len(own.words) for own in result.sentences))
    last = grid[3, :].subgridspec(1, 2, width_ratios=[1, 2.4])
    chain_rule.draw(fig.add_subplot(last[0]), result.chain_rule)
    weight_terms.draw(fig, last[1], result.weight_terms)
    return fig


def _by_distance(panel: Axes, result: Gradients) -> None:
    charts.style_axes(panel, tr("‖∂h_t/∂h_k‖ by distance,\nbefore training"), "t − k", log=True)
    distances = range(1, result.length)
    for name, color in zip(NAMES, SERIES, strict=False):
        charts.line(panel, distances, result.states[name], color)
    charts.label_line_ends(panel, [shown_name(name) for name in NAMES])
    panel.plot(distances[::3], result.product[::3], "o", color=SERIES[0], markersize=3.4)
    panel.set_xlim(0, result.length)


def _by_singular_value(panel: Axes, result: Gradients) -> None:
    charts.style_axes(panel, tr("RNN by the largest singular\nvalue of W, small inputs"), "t − k", log=True)
    shown = [own for own in result.sweep if own.largest in (0.5, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0)]
    for own in shown:
        color = INK if own.largest == 1 else ACCENT if own.largest < 1 else WARM
        charts.line(panel, range(1, result.length), own.quiet, color)
    charts.label_line_ends(panel, [f"{own.largest:g}" for own in shown])


def _around_one(panel: Axes, result: Gradients) -> None:
    far = result.length - 2
    title = tr("RNN over {far} steps, as that\nvalue passes through 1", far=far + 1)
    charts.style_axes(panel, title, tr("largest singular value of W"), log=True)
    largest = [own.largest for own in result.sweep]
    panel.axvline(1, color=MUTED, linewidth=0.8)
    panel.axhline(1, color=MUTED, linewidth=0.8)
    charts.line(panel, largest, [value ** (far + 1) for value in largest], MUTED, ":")
    charts.line(panel, largest, [own.quiet[far] for own in result.sweep], WARM, marker="o")
    charts.line(panel, largest, [own.words[far] for own in result.sweep], ACCENT, marker="o")
    charts.label_line_ends(panel, ["f′ = 1", tr("small\ninputs"), tr("words")], gap=0.1)


def _word_heatmap(panel: Axes, sentence: Sentence, columns: int) -> None:
    """The gradient at each word, with the ends of both sentences aligned."""
    empty = columns - len(sentence.words)
    values = [[math.nan] * empty + [math.log10(value) for value in sentence.gradients[name]] for name in NAMES]
    charts.heatmap(panel, values, charts.RAMP, -6.5, 0.0)
    charts.label_cells(panel, values, ".0f", -2.8, size=7)
    title = (
        tr("{name} {far} words back", name=ANSWER, far=sentence.distance)
        if empty
        else tr(
            "The gradient of the loss at each word, in powers of ten, with {name} {far} words back",
            name=ANSWER,
            far=sentence.distance,
        )
    )
    panel.text(empty - 0.5, -0.85, title, fontsize=10.5, fontweight=title_weight(), color=INK)
    if empty:
        text = tr(
            "What comes next? The gradient of the loss\nhas to reach the word “{name}”.\nThe further back that is, the less of it\ngets through a "
            "recurrent network.",
            name=ANSWER,
        )
        charts.note(panel, 0.0, 0.5, text, color=INK, size=9.5)
    panel.set_yticks(range(len(NAMES)), [""] * len(NAMES) if empty else [shown_name(name) for name in NAMES])
    for row, name in enumerate(NAMES if empty else ()):
        panel.text(empty - 0.7, row, shown_name(name), ha="right", va="center", fontsize=8.5, color=MUTED)
    panel.set_xticks(range(empty, columns), sentence.words, rotation=50, ha="right", rotation_mode="anchor")
    panel.get_xticklabels()[sentence.said].set(color=WARM, fontweight="bold")
