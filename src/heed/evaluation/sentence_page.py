"""The table of sentences as one page that needs no network: scores, a histogram, and every sentence with its marks."""

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from heed.evaluation.comparison import Comparison, Difference
from heed.evaluation.marks import marked
from heed.evaluation.rows import Row
from heed.evaluation.translation import Metric, Scores

_FOLDER = Path(__file__).parent / "page"
_STEP = 5
_CLEAR = 0.05
_MARKS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write_html(
    table: Sequence[Row],
    scores: Scores,
    path: Path | str,
    *,
    comparison: Comparison | None = None,
    names: tuple[str, str] = ("A", "B"),
    title: str = "Sentence by sentence",
) -> None:
    """Write the page; with a comparison it sets the first system (A) against the second (B)."""
    if comparison is not None and any(row.second is None for row in table):
        raise ValueError("comparison is given but a row has no second hypothesis; call rows(..., second=...).")
    pair = names if comparison is not None else None
    counts = _counts([row.chrf for row in table]), _counts([row.second_chrf for row in table if pair])
    parts = {
        "title": escape(title),
        "lede": _lede(scores, pair),
        "style": (_FOLDER / "sentences.css").read_text(encoding="utf-8"),
        "script": (_FOLDER / "sentences.js").read_text(encoding="utf-8"),
        "scores": _cards(scores, comparison),
        "wins": _wins(table) if comparison is not None else "",
        "peak": f"{max(*counts[0], *counts[1]):,}",
        "histogram": _histogram(*counts, comparison is not None),
        "legend": _legend(comparison is not None),
        "data": _data(table, comparison is not None),
    }
    template = (_FOLDER / "sentences.html").read_text(encoding="utf-8")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # One pass, so that a text that looks like a slot stays a text.
    path.write_text(re.sub(r"{{(\w+)}}", lambda slot: parts[slot[1]], template), encoding="utf-8", newline="\n")


def _lede(scores: Scores, names: tuple[str, str] | None) -> str:
    """Say what the page is about in one line."""
    count = f"{scores.lines:,} sentence{'s' * (scores.lines != 1)}"
    if names is None or names == ("A", "B"):
        return count
    first, second = (escape(name) for name in names)
    tags = '<b class="tag">A</b>', '<b class="tag b">B</b>'
    return f"{count}, <span>{tags[0]} {first}</span> against <span>{tags[1]} {second}</span>"


def _cards(scores: Scores, comparison: Comparison | None) -> str:
    """Return a card a metric."""
    if comparison is None:
        return "".join(_card(metric) for metric in (scores.bleu, scores.chrf, scores.ter))
    return "".join(_pair_card(one) for one in (comparison.bleu, comparison.chrf, comparison.ter))


def _card(metric: Metric) -> str:
    """Return the card of one score."""
    return (
        f'<article class="card"><h2>{escape(metric.name)}{_note(metric.name)}</h2>'
        f'<p class="big">{metric.value:.1f}</p>{_signature(metric.signature)}</article>'
    )


def _pair_card(one: Difference) -> str:
    """Return the card of one metric of two systems."""
    verdict = "no clear difference"
    if one.p_value < _CLEAR:
        verdict = f"<b>{'B' if one.gain > 0 else 'A'} is better</b>"
    return (
        f'<article class="card"><h2>{escape(one.name)}{_note(one.name)}</h2>'
        f'<p class="big">{_signed(one.difference)}<small>B − A</small></p>'
        f'<dl class="pair"><dt class="tag">A</dt><dd>{one.first:.1f} <i>± {one.first_width:.1f}</i></dd>'
        f'<dt class="tag b">B</dt><dd>{one.second:.1f} <i>± {one.second_width:.1f}</i></dd></dl>'
        f'<p class="verdict">{verdict}, p = {_p_value(one.p_value)}</p>{_signature(one.signature)}</article>'
    )


def _note(name: str) -> str:
    """Return a word beside the name of a metric that is an error."""
    return " <small>lower is better</small>" if name == "TER" else ""


def _signature(signature: str) -> str:
    """Return a signature that can break at its bars."""
    return f'<p class="signature">{escape(signature).replace("|", "|<wbr>")}</p>'


def _signed(value: float) -> str:
    """Return a number with its sign, a real minus."""
    text = f"{value:+.1f}".replace("-", "−")
    return "0.0" if text in ("+0.0", "−0.0") else text


def _p_value(value: float) -> str:
    """Return a p-value with as many digits as are worth reading."""
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"


def _difference(row: Row) -> float:
    """Return the difference as the page shows it: what is equal to two digits is a tie."""
    return round(row.difference, 2)


def _wins(table: Sequence[Row]) -> str:
    """Return the bar of wins, ties and losses, whose pieces choose their sentences."""
    signs = [(_difference(row) > 0) - (_difference(row) < 0) for row in table]
    pieces = []
    for name, sign, label in (("win", 1, "B better"), ("tie", 0, "ties"), ("loss", -1, "A better")):
        count = signs.count(sign)
        pieces.append(
            f'<button type="button" class="{name}" data-side="{sign}" aria-pressed="false" style="flex-grow:{count}">'
            f"<b>{count:,}</b> {label}</button>"
        )
    return (
        '<section class="panel"><h2>Who wins, sentence by sentence</h2>'
        f'<p class="hint">By the chrF of each sentence.</p><div class="wins">{"".join(pieces)}</div></section>'
    )


def _histogram(first: list[int], second: list[int], paired: bool) -> str:
    """Return the bars of the histogram of chrF, with a line for the second system."""
    top = max([1, *first, *second])
    bars = []
    for number, (count, other) in enumerate(zip(first, second, strict=True)):
        low, also = number * _STEP, f", B {other:,}" if paired else ""
        label = f"chrF {low} to {low + _STEP}: {'A ' * paired}{count:,}{also}"
        line = f'<i style="bottom:{100 * other / top:.2f}%"></i>' if paired else ""
        bars.append(
            f'<button type="button" data-low="{low}" aria-pressed="false" aria-label="{label}" title="{label}">'
            f'<span style="height:{100 * count / top:.2f}%"></span>{line}</button>'
        )
    return "".join(bars)


def _counts(values: Sequence[float]) -> list[int]:
    """Count values in steps from 0 to 100; 100 belongs to the last step."""
    counts = [0] * (100 // _STEP)
    for value in values:
        counts[min(int(round(value, 2) // _STEP), len(counts) - 1)] += 1
    return counts


def _legend(paired: bool) -> str:
    """Explain the marks."""
    added = "<ins>added</ins> not in the reference"
    if not paired:
        return f"<del>missed</del> not in the hypothesis · {added}"
    return f'<del>missed</del> by both, <del data-by="A">by A</del> or <del data-by="B">by B</del> alone · {added}'


def _data(table: Sequence[Row], paired: bool) -> str:
    """Return the rows as JSON that cannot end the script that holds it."""
    found = []
    for row in table:
        item = {"n": row.line, "s": row.source, "t": marked(row.reference, row.hypothesis, row.second)}
        item |= {"a": round(row.chrf, 2), "u": round(row.bleu, 2)}
        if paired:
            item |= {"b": round(row.second_chrf, 2), "d": _difference(row)}
        found.append(item)
    text = json.dumps({"paired": paired, "step": _STEP, "rows": found}, ensure_ascii=False, separators=(",", ":"))
    return "".join(_MARKS.get(character, character) for character in text)
