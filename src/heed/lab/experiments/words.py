"""What words learn from their context: co-occurrence ratios, vectors trained here, and the next word by three
models.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heed.data.synthetic import world
from heed.data.vectors.similarity import unit_rows
from heed.data.vectors.word_text import WordText, read_words
from heed.lab import charts
from heed.lab.charts import SERIES, Table
from heed.lab.colors import ACCENT, INK, MUTED, WARM
from heed.lab.experiments import next_words, word_spaces
from heed.lab.experiments.word_spaces import Ratio, Space
from heed.lab.language import tr
from heed.training.word_vectors import Trained, train_vectors
from heed.training.word_vectors_config import WordVectorsConfig

WINDOW = 5
TRAINED_ON = 20_000  # sentences, for vectors; counting is quicker and takes all
RATE, GLOVE_RATE = (
    0.2,
    0.1,
)  # with 0.2 GloVe fits its counts to the last digit, chance included, and solves fewer analogies
METHODS = {"skip-gram": "skipgram", "GloVe": "glove", "fastText": "fasttext"}
# The sentence of the lecture notes (theirs is that of Stanford's CS224n), and the same with words between.
PROMPTS = ("the students opened their", "the students who had waited for a long time opened their")
ORDERS = (3, 5)
ANSWERS = 5  # of a model are in the table
OBJECTS = {word for words in world.OPENED.values() for word in words}  # of which the probabilities are kept


@dataclass(frozen=True)
class Blank:
    """A sentence to continue: the probabilities by the rules of the corpus and, for each model, those of its most
    likely words and of all objects of "open", most likely first.
    """

    prompt: str
    rule: dict[str, float]
    models: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Words:
    """Everything that was counted and trained."""

    sentences: int
    trained_on: int
    dim: int
    seed: int
    running_words: int
    ratios: list[Ratio]
    glove: dict[str, tuple[float, float]]  # the ratios by the counts that GloVe saw, and by its vectors
    spaces: dict[str, Space]
    unseen: dict[str, list[tuple[str, float]]]
    map: dict[str, tuple[float, float]]
    blanks: list[Blank]


def measure(sentences: int = 100_000, dim: int = 32, epochs: int = 2, heard: int = 12_800, seed: int = 0) -> Words:
    """Count words in `sentences` sentences of the small world, train vectors on the first of them, and language
    models on `heard` others.
    """
    for name, value, least in (
        ("sentences", sentences, 5000),
        ("dim", dim, 2),
        ("epochs", epochs, 1),
        ("heard", heard, 1),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    if dim % 2:
        raise ValueError(f"dim is {dim}; it must be even: the Transformer is twice as wide and has four heads")
    trained_on = min(TRAINED_ON, sentences)
    lines = list(world.sentences(sentences, seed))
    everything, text = read_words(lines, cut="spaces"), read_words(lines[:trained_on], cut="spaces")
    trained = {name: train_vectors(text, _settings(name, dim, epochs, seed)) for name in METHODS}
    glove = {word: word_spaces.glove_ratio(text, WINDOW, trained["GloVe"], word) for word in word_spaces.PROBES}
    spaces = {name: word_spaces.describe(text.words, own) for name, own in trained.items()}
    unseen = {world.UNSEEN: word_spaces.unseen(text.words, trained["fastText"], world.UNSEEN)}
    return Words(
        sentences, trained_on, dim, seed, len(everything.ids), word_spaces.count_ratios(everything, WINDOW), glove,
        spaces, unseen, _map(text, trained["skip-gram"]), fill_blanks(heard, dim, seed),
    )  # fmt: skip


def _settings(name: str, dim: int, epochs: int, seed: int) -> WordVectorsConfig:
    """Small batches, since the vocabulary is small; GloVe has few counts and needs many epochs."""
    if name == "GloVe":
        return WordVectorsConfig(
            "glove", dim=dim, window=WINDOW, epochs=40 * epochs, rate=GLOVE_RATE, batch=128, seed=seed
        )
    return WordVectorsConfig(
        METHODS[name], dim=dim, window=WINDOW, epochs=epochs, rate=RATE, batch=512, subsample=1e-2, seed=seed
    )


def fill_blanks(heard: int, dim: int, seed: int) -> list[Blank]:
    """The next word of each prompt by n-grams, a recurrent network and a Transformer, trained on the same sentences."""
    text = [line.split() for line in world.sentences(max(heard * 5 // 8, 100), seed, kinds=("opened",))]
    models = {f"{order}-gram": next_words.Ngrams(text, order) for order in ORDERS}
    models |= {name: next_words.learn(name, text, heard, 2 * dim, seed) for name in ("RNN", "Transformer")}
    rule = world.OPENED["students"]
    return [
        Blank(prompt, rule, {name: _likeliest(own.next_words(prompt.split())) for name, own in models.items()})
        for prompt in PROMPTS
    ]


def _likeliest(words: dict[str, float]) -> dict[str, float]:
    ranked = sorted(words.items(), key=lambda pair: -pair[1])
    return {word: value for rank, (word, value) in enumerate(ranked) if rank < ANSWERS or word in OBJECTS}


def _map(text: WordText, trained: Trained) -> dict[str, tuple[float, float]]:
    """The men and women of the corpus: along the mean direction from man to woman, and along the one in which they differ most otherwise."""
    people = [word for pair in world.PEOPLE for word in pair]
    rows = unit_rows(trained.matrix[[text.words.index(word) for word in people]])
    step = (rows[1::2] - rows[::2]).mean(axis=0)
    step /= np.linalg.norm(step)
    across = rows @ step
    rest = rows - across[:, None] * step
    up = np.linalg.svd(rest - rest.mean(axis=0))[2][0]
    up = up * np.sign(up[np.abs(up).argmax()])  # of which SVD leaves the sign open
    return {word: (float(x), float(y)) for word, x, y in zip(people, across, rest @ up, strict=True)}


def summary(result: Words) -> str:
    """The result in one sentence."""
    solid, gas, water, fashion = (own.ratio for own in result.ratios)
    near, far = (_share(blank, "Transformer") for blank in result.blanks)
    _, lost = (_share(blank, f"{ORDERS[-1]}-gram") for blank in result.blanks)
    right, asked = result.spaces["skip-gram"].analogies["man and woman"]
    return tr(
        "By counting, solid {solid:.1f} and gas {gas:.2f} distinguish ice from steam, water {water:.2f} and fashion {fashion:.2f} do not; skip-gram "
        "solves {right} of {asked} analogies of men and women; a Transformer expects what students open ({near:.0%} of the probability, {far:.0%} with "
        "words in between), while a {order}-gram model forgets who opened it ({lost:.0%}).",
        solid=solid, gas=gas, water=water, fashion=fashion, right=right, asked=asked, near=near, far=far,
        order=ORDERS[-1], lost=lost,
    )  # fmt: skip


def _share(blank: Blank, model: str) -> float:
    """How much probability is on the objects that students open."""
    return sum(value for word, value in blank.models[model].items() if word in blank.rule)


def tables(result: Words) -> list[Table]:
    """Ratios, neighbours, analogies, and the next word."""
    return [
        _ratio_table(result),
        _reading_table(result),
        _near_table(result),
        _analogy_table(result),
        *map(_blank_table, result.blanks),
    ]


def _ratio_table(result: Words) -> Table:
    rows = [
        [f"P(k | {name})", *(f"{getattr(own, name):.2g} ({own.notes[at]:.2g})" for own in result.ratios)]
        for at, name in enumerate(("ice", "steam"))
    ]
    rows.append([tr("ratio"), *(f"{own.ratio:.3g} ({own.notes[2]:.3g})" for own in result.ratios)])
    rows.append([tr("by the rules"), *(f"{own.rule:.3g}" for own in result.ratios)])
    rows.append([tr("GloVe: counts"), *(f"{result.glove[own.word][0]:.3g}" for own in result.ratios)])
    rows.append([tr("GloVe: vectors"), *(f"{result.glove[own.word][1]:.3g}" for own in result.ratios)])
    title = tr("Ice and steam in {count:,} words (in brackets: the lecture notes)", count=result.running_words)
    return Table(title, ["", *(f"k = {own.word}" for own in result.ratios)], rows)


def _reading_table(result: Words) -> Table:
    readings = {
        "solid": tr("large: goes with ice, not with steam"),
        "gas": tr("small: goes with steam, not with ice"),
        "water": tr("near 1: goes with both"),
        "fashion": tr("near 1: goes with neither"),
    }
    rows = [[own.word, f"{own.ratio:.2f}", readings[own.word]] for own in result.ratios]
    return Table(tr("How to read the ratio"), ["k", tr("ratio"), tr("reading")], rows)


def _near_table(result: Words) -> Table:
    rows = [
        [word, *(" ".join(found for found, _ in space.near[word]) for space in result.spaces.values())]
        for word in result.spaces["skip-gram"].near
    ]
    for word, found in result.unseen.items():
        without = tr("not in the text: no vector")
        rows.append([word, without, without, " ".join(other for other, _ in found)])
    return Table(tr("The nearest words"), ["", *result.spaces], rows)


def _analogy_table(result: Words) -> Table:
    kinds = {
        "man and woman": "man : woman = king : queen",
        "capital and country": "seoul : korea = paris : france",
        "verb and past": "walk : walked = jump : jumped",
    }
    rows = [
        [shown, *("{} / {}".format(*own.analogies[kind]) for own in result.spaces.values())]
        for kind, shown in kinds.items()
    ]
    rows.append(["king − man + woman", *(f"{own.queen[0][0]} {own.queen[0][1]:.2f}" for own in result.spaces.values())])
    return Table(tr("Correct analogies, of all that the rules imply"), ["", *result.spaces], rows)


def _blank_table(blank: Blank) -> Table:
    columns = {tr("by the rules"): blank.rule, **blank.models}
    rows = [[str(rank + 1), *(_cell(list(own.items()), rank) for own in columns.values())] for rank in range(ANSWERS)]
    return Table(f"{blank.prompt} ___", ["", *columns], rows)


def _cell(answers: Sequence[tuple[str, float]], rank: int) -> str:
    return f"{answers[rank][0]} {answers[rank][1]:.2f}" if rank < len(answers) else "–"


def figure(result: Words) -> Figure:
    """The ratios, the map of men and women, and what students open."""
    caption = tr(
        "Top left: how much more often a word occurs with ice than with steam, counted in {count:,} words generated with these ratios; 1 is "
        "uninformative. GloVe's vectors come close to them. Top right: men and women by skip-gram; the direction from a man to a woman is almost the "
        "same whatever their rank (vertical axis: the direction in which they differ most otherwise). Bottom: the next word. A 3-gram model sees only "
        "\"opened their\" and does not know who opens; a 5-gram model knows unless other words come in between; a recurrent network and a Transformer "
        "remember it.",
        count=result.running_words,
    )  # fmt: skip
    fig = charts.new_figure(tr("What words learn from the words around them"), caption, height=8.8)
    above, below = fig.subfigures(2, 1, height_ratios=[1.0, 1.05])
    left, right = above.subplots(1, 2)
    _draw_ratios(left, result)
    _draw_map(right, result)
    for panel, blank in zip(below.subplots(1, 2), result.blanks, strict=True):
        _draw_blank(panel, blank)
    return fig


def _draw_ratios(panel: Axes, result: Words) -> None:
    charts.style_axes(panel, "P(k | ice) / P(k | steam)", log=True)
    at = np.arange(len(result.ratios))
    bars = {
        tr("lecture notes"): ([own.notes[2] for own in result.ratios], MUTED),
        tr("counted"): ([own.ratio for own in result.ratios], ACCENT),
        tr("GloVe: vectors"): ([result.glove[own.word][1] for own in result.ratios], WARM),
    }
    for place, (name, (values, color)) in enumerate(bars.items()):
        x = at + (place - 1) * 0.27
        panel.bar(x, np.asarray(values) - 1, 0.25, bottom=1, color=color, label=name)
        for one, value in zip(x, values, strict=True):
            up = value >= 1
            panel.text(
                one,
                value * (1.08 if up else 0.92),
                f"{value:.3g}" if up else f"{value:.2g}",
                ha="center",
                va="bottom" if up else "top",
                fontsize=7.5,
                color=color,
            )
    panel.axhline(1, color=INK, linewidth=0.8)
    panel.set_ylim(0.03, 25)
    panel.set_xticks(at, [f"k = {own.word}" for own in result.ratios])
    panel.legend(frameon=False, fontsize=8.5, loc="upper right", labelcolor=INK)


def _draw_map(panel: Axes, result: Words) -> None:
    charts.style_axes(panel, tr("Men and women by skip-gram"), tr("along the mean direction from man to woman"))
    panel.grid(False)
    panel.set_yticks([])
    for color, (man, woman) in zip(SERIES, world.PEOPLE, strict=True):
        start, end = result.map[man], result.map[woman]
        panel.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": color, "linewidth": 1.6})
        for word, (x, y), side in ((man, start, "right"), (woman, end, "left")):
            panel.plot([x], [y], "o", color=color, markersize=4.5)
            offset = (-6, 0) if side == "right" else (6, 0)
            panel.annotate(
                word, (x, y), offset, textcoords="offset points", ha=side, va="center", fontsize=9, color=color
            )
    panel.margins(0.25, 0.08)


def _draw_blank(panel: Axes, blank: Blank) -> None:
    """Bars: each model's probability of what students open, and of what others open."""
    charts.style_axes(panel, f"{blank.prompt} ___")
    words = list(blank.rule)
    columns = {tr("rules"): blank.rule, **blank.models}
    for at, own in enumerate(columns.values()):
        bottom = 0.0
        for color, word in zip(SERIES, words, strict=False):
            value = own.get(word, 0.0)
            panel.bar(at, value, 0.7, bottom=bottom, color=color, label=word if at == 0 else None)
            bottom += value
        others = sum(value for word, value in own.items() if word in OBJECTS and word not in blank.rule)
        panel.bar(at, others, 0.7, bottom=bottom, color="#c9cfd1", label=tr("what others open") if at == 1 else None)
    panel.set_ylim(0, 1)
    panel.set_xticks(range(len(columns)), list(columns))
    panel.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.0, 1.0), labelcolor=INK)
