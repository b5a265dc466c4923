"""The bottleneck of a fixed vector: the BLEU of several systems by the length of the source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heed.lab import charts
from heed.lab.charts import SERIES, Table
from heed.lab.language import tr


@dataclass(frozen=True)
class Bottleneck:
    """Sentences grouped by source length in words: the bounds of each group, its mean length and its size; for each system
    its BLEU on all sentences and on each group, and the ratio of its words to those of the references.
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
    """Compare systems by their translations, one per source; the groups are of about the same size."""
    if not systems:
        raise ValueError("no systems to compare: give one or more")
    for name, texts in {"the references": references, **systems}.items():
        if len(texts) != len(sources):
            counts = f"{len(sources):,} sources, but {len(texts):,} lines of {name}"
            raise ValueError(f"there are {counts}: they must correspond line by line")
    if groups < 1 or not sources:
        raise ValueError(f"{len(sources):,} sentences cannot be divided into {groups} groups")
    lengths = [len(text.split()) for text in sources]
    bounds = group_by_length(lengths, groups)
    members = [[i for i, length in enumerate(lengths) if low <= length <= high] for low, high in bounds]
    whole, bleu, share = {}, {}, {}
    for name, texts in systems.items():
        parts = [([texts[i] for i in group], [references[i] for i in group]) for group in members]
        whole[name], bleu[name] = _bleu(texts, references), [_bleu(*part) for part in parts]
        share[name] = [_word_count(ours) / max(1, _word_count(gold)) for ours, gold in parts]
    middle = [sum(lengths[i] for i in group) / len(group) for group in members]
    return Bottleneck(bounds, middle, [len(group) for group in members], whole, bleu, share)


def group_by_length(lengths: Sequence[int], groups: int) -> list[tuple[int, int]]:
    """Inclusive bounds of lengths, with about the same number of sentences in each group; no group is empty."""
    order, bounds, low = sorted(lengths), [], min(lengths)
    for number in range(1, groups + 1):
        high = order[len(order) * number // groups - 1] if len(order) * number >= groups else low - 1
        if high >= low:
            bounds.append((low, high))
            low = next((length for length in order if length > high), high + 1)
    return bounds


def _word_count(texts: Sequence[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    from sacrebleu.metrics import BLEU

    return BLEU().corpus_score(list(hypotheses), [list(references)]).score


def gap_to_best(result: Bottleneck) -> dict[str, list[float]]:
    """How many points of BLEU each system is behind the best system of each group."""
    best = [max(scores) for scores in zip(*result.bleu.values(), strict=True)]
    return {name: [top - own for top, own in zip(best, values, strict=True)] for name, values in result.bleu.items()}


def summary(result: Bottleneck) -> str:
    """The result in one sentence."""
    gap = gap_to_best(result)
    worst = max(gap, key=lambda name: gap[name][-1])
    best = min(gap, key=lambda name: gap[name][-1])
    low, high = result.bounds[0], result.bounds[-1]
    return tr(
        "On sources of {low} words, {worst} is {near:.1f} BLEU points behind the best system, on sources of {high} words {far:.1f}; the best on the "
        "longest is {best}, with {most:.1f}.",
        low=_range(low),
        high=_range(high),
        worst=worst,
        near=gap[worst][0],
        far=gap[worst][-1],
        best=best,
        most=result.bleu[best][-1],
    )


def tables(result: Bottleneck) -> list[Table]:
    """BLEU by length, and the ratio of output words to reference words."""
    columns = ["", *(tr("{lengths} words", lengths=_range(bounds)) for bounds in result.bounds)]
    sizes = [tr("sentences"), *(f"{size:,}" for size in (*result.sentences, sum(result.sentences)))]
    bleu = [[*row, f"{result.whole[row[0]]:.2f}"] for row in charts.table_rows(result.bleu, ".1f")]
    return [
        Table(tr("BLEU by source length"), [*columns, tr("all")], [sizes, *bleu]),
        Table(tr("Output words per reference word"), columns, charts.table_rows(result.share, ".2f")),
    ]


def figure(result: Bottleneck) -> Figure:
    """BLEU by length, and how far each system is behind the best."""
    caption = tr(
        "Each point is a group of sentences with similar source lengths; the groups are of about the same size. A decoder that is given one fixed-size "
        "vector has to find the whole source in it, however long the source was; a decoder with attention looks at the source again for each word it "
        "writes."
    )
    fig = charts.new_figure(tr("The bottleneck of a fixed vector"), caption, height=5.6)
    left, right = fig.subplots(1, 2)
    _lines(left, result, result.bleu, tr("BLEU by source length"), "BLEU")
    _lines(right, result, gap_to_best(result), tr("Gap to the best system"), tr("BLEU points"))
    right.invert_yaxis()
    charts.label_line_ends(right, list(result.bleu))
    return fig


def _lines(panel: Axes, result: Bottleneck, values: Mapping[str, Sequence[float]], title: str, ylabel: str) -> None:
    charts.style_axes(panel, title, tr("source words"), ylabel)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    for number, scores in enumerate(values.values()):
        charts.line(panel, result.middle, scores, SERIES[number % len(SERIES)], marker="o")


def _range(bounds: tuple[int, int]) -> str:
    return str(bounds[0]) if bounds[0] == bounds[1] else f"{bounds[0]}–{bounds[1]}"
