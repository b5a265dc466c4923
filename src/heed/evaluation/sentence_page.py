"""The table of sentences as one self-contained page: scores, a histogram, and every sentence with its differences."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from heed.evaluation.comparison import Comparison, Difference
from heed.evaluation.sentence_scores import SentenceScore
from heed.evaluation.translation import Scores
from heed.evaluation.word_diff import diff
from heed.files import write_text

_FOLDER = Path(__file__).parent / "page"
_BIN = 5
_SIGNIFICANT = 0.05  # p-value below which a difference is called one
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def write_html(
    table: Sequence[SentenceScore],
    scores: Scores,
    path: Path | str,
    *,
    comparison: Comparison | None = None,
    names: tuple[str, str] = ("A", "B"),
    title: str = "Sentence by sentence",
    font_faces: Callable[[str], str] = lambda _: "",
) -> None:
    """Write the page; with a comparison it shows the first system (A) against the second (B).

    `font_faces` returns CSS that embeds the glyphs of a text, which may be missing on the reader's machine.
    """
    if comparison is not None and any(row.second is None for row in table):
        missing = "a row has no second hypothesis; call score_sentences(..., second=...)."
        raise ValueError(f"comparison is given but {missing}")
    paired = comparison is not None
    parts = {
        "title": escape(title),
        "lede": _lede(scores, names if paired else ("A", "B")),
        "style": font_faces(page_text(table) + title) + asset("sentences.css"),
        "script": asset("sentences.js"),
        "scores": score_cards(scores, comparison),
        "wins": _wins(table) if paired else "",
        "list": sentence_list(table, paired),
    }
    write_text(Path(path), fill(asset("sentences.html"), parts))


def page_text(table: Sequence[SentenceScore]) -> str:
    """All that the list of sentences can show."""
    return "".join(
        dict.fromkeys("".join(f"{own.source}{own.reference}{own.hypothesis}{own.second or ''}" for own in table))
    )


def asset(name: str) -> str:
    """A file of the page: its template, style or script."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Replace the placeholders of a template in one pass: a sentence that looks like a placeholder is not replaced."""
    return re.sub(r"{{(\w+)}}", lambda match: parts[match[1]], template)


def sentence_list(table: Sequence[SentenceScore], paired: bool = False) -> str:
    """Return the histogram, the list of all sentences and their data; a page with them needs sentences.css and .js."""
    counts = _counts([row.chrf for row in table]), _counts([row.second_chrf for row in table if paired])
    parts = {
        "peak": f"{max(*counts[0], *counts[1]):,}",
        "histogram": _histogram(*counts, paired),
        "legend": _legend(paired),
        "data": _data(table, paired),
    }
    return fill(asset("sentence_list.html"), parts)


def _lede(scores: Scores, names: tuple[str, str]) -> str:
    """Return the line under the title: how many sentences, of which systems."""
    count = f"{scores.lines:,} sentence{'s' * (scores.lines != 1)}"
    if names == ("A", "B"):
        return count
    first, second = (escape(name) for name in names)
    one, other = f'<b class="tag">A</b> {first}', f'<b class="tag b">B</b> {second}'
    return f"{count}, <span>{one}</span> against <span>{other}</span>"


def score_cards(scores: Scores, comparison: Comparison | None) -> str:
    """Return one card per metric; its signature may wrap after each bar."""
    cards = []
    for metric in (getattr(comparison or scores, name) for name in ("bleu", "chrf", "ter")):
        note = " <small>lower is better</small>" if metric.name == "TER" else ""
        value = _pair(metric) if comparison is not None else f'<p class="big">{metric.value:.1f}</p>'
        signature = escape(metric.signature).replace("|", "|<wbr>")
        title = f"<h2>{escape(metric.name)}{note}</h2>"
        cards.append(f'<article class="card">{title}{value}<p class="signature">{signature}</p></article>')
    return "".join(cards)


def _pair(one: Difference) -> str:
    """Return the values of two systems, and which is better."""
    verdict = "no clear difference"
    if one.p_value < _SIGNIFICANT:
        verdict = f"<b>{'B' if one.gain > 0 else 'A'} is better</b>"
    p_value = f"{one.p_value:.3f}" if one.p_value >= 0.001 else f"{one.p_value:.1g}"
    return (
        f'<p class="big">{_signed(one.difference)}<small>B − A</small></p>'
        f'<dl class="pair"><dt class="tag">A</dt><dd>{one.first:.1f} <i>± {one.first_width:.1f}</i></dd>'
        f'<dt class="tag b">B</dt><dd>{one.second:.1f} <i>± {one.second_width:.1f}</i></dd></dl>'
        f'<p class="verdict">{verdict}, p = {p_value}</p>'
    )


def _signed(value: float) -> str:
    """Return a number with its sign, with a typographic minus."""
    text = f"{value:+.1f}".replace("-", "−")
    return "0.0" if text in ("+0.0", "−0.0") else text


def _difference(row: SentenceScore) -> float:
    """Return the difference as the page shows it, to two digits: less than that is a tie."""
    return round(row.difference, 2)


def _wins(table: Sequence[SentenceScore]) -> str:
    """Return the bar of wins, ties and losses, whose parts are buttons that filter the sentences."""
    signs = [(_difference(row) > 0) - (_difference(row) < 0) for row in table]
    pieces = []
    for name, sign, label in (("win", 1, "B better"), ("tie", 0, "ties"), ("loss", -1, "A better")):
        count = signs.count(sign)
        options = f'class="{name}" data-side="{sign}" aria-pressed="false" style="flex-grow:{count}"'
        pieces.append(f'<button type="button" {options}><b>{count:,}</b> {label}</button>')
    return (
        '<section class="panel"><h2>Wins by sentence</h2>'
        f'<p class="hint">By the chrF of each sentence.</p><div class="wins">{"".join(pieces)}</div></section>'
    )


def _histogram(first: list[int], second: list[int], paired: bool) -> str:
    """Return the bars of the histogram of chrF, with a line for the second system."""
    top = max([1, *first, *second])
    bars = []
    for number, (count, other) in enumerate(zip(first, second, strict=True)):
        low, also = number * _BIN, f", B {other:,}" if paired else ""
        label = f"chrF {low} to {low + _BIN}: {'A ' * paired}{count:,}{also}"
        line = f'<i style="bottom:{100 * other / top:.2f}%"></i>' if paired else ""
        bars.append(
            f'<button type="button" data-low="{low}" aria-pressed="false" aria-label="{label}" title="{label}">'
            f'<span style="height:{100 * count / top:.2f}%"></span>{line}</button>'
        )
    return "".join(bars)


def _counts(values: Sequence[float]) -> list[int]:
    """Count values in bins from 0 to 100; 100 belongs to the last bin."""
    counts = [0] * (100 // _BIN)
    for value in values:
        counts[min(int(round(value, 2) // _BIN), len(counts) - 1)] += 1
    return counts


def _legend(paired: bool) -> str:
    """Explain the colours of differences."""
    added = "<ins>added</ins> not in the reference"
    if not paired:
        return f"<del>missed</del> not in the hypothesis · {added}"
    return f'<del>missed</del> by both, <del data-by="A">by A</del> or <del data-by="B">by B</del> alone · {added}'


def _data(table: Sequence[SentenceScore], paired: bool) -> str:
    """Return the rows as JSON that cannot end the script element around it."""
    items = []
    for row in table:
        item = {"n": row.line, "s": row.source, "t": diff(row.reference, row.hypothesis, row.second)}
        item |= {"a": round(row.chrf, 2), "u": round(row.bleu, 2)}
        if paired:
            item |= {"b": round(row.second_chrf, 2), "d": _difference(row)}
        items.append(item)
    text = json.dumps({"paired": paired, "step": _BIN, "rows": items}, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_ESCAPES)
