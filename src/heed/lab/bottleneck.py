"""The bottleneck of a fixed vector: how translations of several systems fare as sources grow longer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heed.lab import charts
from heed.lab.charts import SERIES, Table


@dataclass(frozen=True)
class Bottleneck:
    """Sentences in groups by the words of their sources: the bounds of each group, its mean and its size; of each system
    the BLEU of all its translations and of each group, and its words for each word of the references.
    """

    bounds: list[tuple[int, int]]
    middle: list[float]
    sentences: list[int]
    whole: dict[str, float]
    bleu: dict[str, list[float]]
    share: dict[str, list[float]]


def measure(
    systems: Mapping[str, Sequence[str]], sources: Sequence[str], references: Sequence[str], groups: int = 6
) -> Bottleneck:
    """From the translations of each system, one a source; the groups are of about the same size."""
    if not systems:
        raise ValueError("there are no systems to compare: name one or more")
    for name, texts in {"the references": references, **systems}.items():
        if len(texts) != len(sources):
            raise ValueError(
                f"there are {len(sources):,} sources, but {len(texts):,} lines of {name}: they go in pairs"
            )
    if groups < 1 or not sources:
        raise ValueError(f"{len(sources):,} sentences cannot be put into {groups} groups")
    lengths = [len(text.split()) for text in sources]
    bounds = grouped(lengths, groups)
    rows = [[i for i, length in enumerate(lengths) if low <= length <= high] for low, high in bounds]
    bleu, share = {}, {}
    for name, texts in systems.items():
        parts = [([texts[i] for i in own], [references[i] for i in own]) for own in rows]
        bleu[name] = [_bleu(*part) for part in parts]
        share[name] = [_words(said) / max(1, _words(due)) for said, due in parts]
    return Bottleneck(
        bounds=bounds,
        middle=[sum(lengths[i] for i in own) / len(own) for own in rows],
        sentences=[len(own) for own in rows],
        whole={name: _bleu(texts, references) for name, texts in systems.items()},
        bleu=bleu,
        share=share,
    )


def grouped(lengths: Sequence[int], groups: int) -> list[tuple[int, int]]:
    """Bounds of lengths, both included, between which about the same number of sentences lies; none is empty."""
    order, bounds, low = sorted(lengths), [], min(lengths)
    for number in range(1, groups + 1):
        high = order[len(order) * number // groups - 1] if len(order) * number >= groups else low - 1
        if high >= low:
            bounds.append((low, high))
            low = next((length for length in order if length > high), high + 1)
    return bounds


def _words(texts: Sequence[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _bleu(said: Sequence[str], due: Sequence[str]) -> float:
    from sacrebleu.metrics import BLEU

    return BLEU().corpus_score(list(said), [list(due)]).score


def behind(result: Bottleneck) -> dict[str, list[float]]:
    """How many points of BLEU each system is behind the best of its group."""
    best = [max(own) for own in zip(*result.bleu.values(), strict=True)]
    return {name: [top - own for top, own in zip(best, values, strict=True)] for name, values in result.bleu.items()}


def says(result: Bottleneck) -> str:
    """What is to be seen, in one sentence."""
    far = behind(result)
    worst = max(far, key=lambda name: far[name][-1])
    best = min(far, key=lambda name: far[name][-1])
    low, high = result.bounds[0], result.bounds[-1]
    return (
        f"Of sources of {_span(low)} words {worst} is {far[worst][0]:.1f} points of BLEU behind the best, of {_span(high)} words "
        f"{far[worst][-1]:.1f}; of these {best} has the most, {result.bleu[best][-1]:.1f}."
    )


def tables(result: Bottleneck) -> list[Table]:
    """BLEU by length, and words said for each word of the reference."""
    columns = ["", *(f"{_span(bounds)} words" for bounds in result.bounds)]
    sizes = ["sentences", *(f"{size:,}" for size in result.sentences)]
    bleu = [
        [name, *(f"{value:.1f}" for value in values), f"{result.whole[name]:.2f}"]
        for name, values in result.bleu.items()
    ]
    share = [[name, *(f"{value:.2f}" for value in values)] for name, values in result.share.items()]
    total = f"{sum(result.sentences):,}"
    return [
        Table("BLEU by the length of the source", [*columns, "all"], [[*sizes, total], *bleu]),
        Table("Words said for each word of the reference", columns, share),
    ]


def figure(result: Bottleneck) -> Figure:
    """BLEU by length, and how far each system is behind the best."""
    caption = (
        "Each point is a group of about as many sentences, by the words of their sources. A decoder that is given one vector of a fixed size has to find all of the source in it, "
        "however long the source was; one with attention looks at the source again with each word it writes."
    )
    paper = charts.paper("The bottleneck of a fixed vector", caption, height=5.6)
    left, right = paper.subplots(1, 2)
    _lines(left, result, result.bleu, "BLEU by the length of the source", "BLEU")
    _lines(right, result, behind(result), "Behind the best system", "points of BLEU")
    right.invert_yaxis()
    charts.name_ends(right, list(result.bleu))
    return paper


def _lines(panel: Axes, result: Bottleneck, values: Mapping[str, Sequence[float]], title: str, up: str) -> None:
    charts.dress(panel, title, "words of the source", up)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    for number, own in enumerate(values.values()):
        charts.line(panel, result.middle, own, SERIES[number % len(SERIES)], mark="o")


def _span(bounds: tuple[int, int]) -> str:
    return str(bounds[0]) if bounds[0] == bounds[1] else f"{bounds[0]}–{bounds[1]}"
