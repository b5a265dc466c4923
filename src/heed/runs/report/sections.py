"""The sections of a report, each an HTML string; empty if there is nothing to show."""

from collections.abc import Mapping, Sequence
from html import escape

from heed.data.filters import RULES
from heed.evaluation.analysis import LengthGroup, WordGroup
from heed.evaluation.comparison import Difference
from heed.evaluation.sentence_scores import SentenceScore
from heed.evaluation.word_diff import Run, diff
from heed.runs.model_card import shape
from heed.runs.report.advice import advise
from heed.runs.report.charts import Bar, Line, bar_table, line_chart
from heed.runs.report.findings import Findings, SetScores
from heed.runs.report.settings import chosen

SIGNIFICANT = 0.05  # p-value below which a difference is called one
ENDED = {"time": "; the time budget was used up", "patience": "; validation no longer improved"}
EXAMPLES = 3  # of the best, the middle and the worst sentences, each


def scores(f: Findings) -> str:
    """Return the scores with their signatures; for a task without translations, its metrics."""
    if f.sets:
        return "".join(_set_scores(one) for one in f.sets)
    metrics = [metric for metric in f.recipe.task.metrics if metric.name in f.final]
    cards = [
        _card(metric.label, f"{f.final[metric.name]:.{metric.decimals}f}", "", escape(metric.meaning()))
        for metric in metrics
    ]
    return _section("Scores on the validation set", f'<div class="cards">{"".join(cards)}</div>') if cards else ""


def _set_scores(one: SetScores) -> str:
    cards = []
    for name in ("bleu", "chrf", "ter"):
        metric = getattr(one.scores, name)
        width = f"± {one.half_widths[name]:.1f}" if name in one.half_widths else ""
        note = "lower is better" if name == "ter" else ""
        signature = escape(metric.signature).replace("|", "|<wbr>")
        cards.append(_card(metric.name, f"{metric.value:.1f}", width or note, signature))
    search = "greedy search" if one.beam == 1 else f"beam {one.beam}"
    hint = f"{one.scores.lines:,} sentences, {search}; ± is the half-width of the 95 % interval."
    return _section(f"Scores on the {one.name}", f'<div class="cards">{"".join(cards)}</div>', hint)


def _card(name: str, value: str, note: str, below: str) -> str:
    small = f"<small>{escape(note)}</small>" if note else ""
    big = f'<p class="big">{escape(value)}{small}</p>'
    return f'<article class="card"><h3>{escape(name)}</h3>{big}<p class="signature">{below}</p></article>'


def next_steps(f: Findings) -> str:
    """Return the advice, or that there is none."""
    found = advise(f)
    hint = "Each is based on something measured in this run."
    if not found:
        return _section("What to try next", "<p>Nothing measured here calls for a change.</p>")
    if found[0].name == "still improving" and len(found) > 1:
        hint += " Start with the first: longer training may fix the others too."
    items = []
    for one in found:
        command = f'<p class="command"><code>{escape(one.command)}</code></p>' if one.command else ""
        title = f"<h3>{escape(one.name[0].upper() + one.name[1:])}</h3>"
        items.append(
            f'<li>{title}<p class="measured">{escape(one.measured)}</p><p>{escape(one.action)}</p>{command}</li>'
        )
    return _section("What to try next", f'<ol class="advice">{"".join(items)}</ol>', hint)


def curves(f: Findings) -> str:
    """Return the curves of loss, metrics and learning rate."""
    log = f.log
    loss = [Line("training", log.train, "first", marked=False), Line("validation", log.valid.get("loss", ()), "second")]
    others = [metric for metric in f.recipe.task.metrics if metric.name != "loss"]
    styles = ("second", "third", "first")
    metrics = [
        Line(metric.label, log.valid.get(metric.name, ()), styles[number % len(styles)])
        for number, metric in enumerate(others)
    ]
    title = metrics[0].name[0].upper() + metrics[0].name[1:] if len(metrics) == 1 else "Metrics"
    speed = [Line(_tokens(f), log.speed, "third", marked=False)]
    rate = [Line("last", log.rate, "first", marked=False)]
    drawn = [
        line_chart("Loss", loss, lambda value: f"{value:.2f}", logarithmic=True),
        line_chart(title, metrics, lambda value: f"{value:.1f}"),
        line_chart("Learning rate", rate, lambda value: f"{value:.2g}"),
        line_chart("Speed", speed, lambda value: f"{value:,.0f}"),
    ]
    return _section("Training curves", f'<div class="charts">{"".join(drawn)}</div>' if any(drawn) else "")


def against(f: Findings) -> str:
    """Return the comparison with another run."""
    if f.against is None:
        return ""
    c, name = f.against.comparison, escape(f.against.name)
    rows = "".join(map(_difference, (c.bleu, c.chrf, c.ter)))
    head = "".join(f'<th scope="col">{cell}</th>' for cell in ("", name, "this run", "difference", "p"))
    hint = f"The same {c.lines:,} sentences; paired bootstrap of {c.samples:,} samples. A p below {SIGNIFICANT} is unlikely to be chance."
    table = f'<div class="scroll" tabindex="0" role="region" aria-label="Comparison"><table class="numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return _section(f"Against {f.against.name}", f'<p class="verdict">{_verdict(c.chrf, name)}</p>{table}', hint)


def _difference(one: Difference) -> str:
    label = one.name + (" <small>lower is better</small>" if one.name == "TER" else "")
    sure = one.p_value < SIGNIFICANT
    kind = ("better" if one.gain > 0 else "worse") if sure else "same"
    signed = f"{one.difference:+.1f}".replace("-", "−")
    cells = (f"{one.first:.1f} ± {one.first_width:.1f}", f"{one.second:.1f} ± {one.second_width:.1f}")
    return (
        f'<tr><th scope="row">{label}</th><td>{cells[0]}</td><td>{cells[1]}</td><td class="{kind}">{signed}</td>'
        f"<td>{one.p_value:.3f}</td></tr>"
    )


def _verdict(one: Difference, name: str) -> str:
    if one.p_value >= SIGNIFICANT:
        return f"No clear difference from {name}: chrF {one.first:.1f} there, {one.second:.1f} here, p = {one.p_value:.3f}."
    return f"<b>{'Better' if one.gain > 0 else 'Worse'}</b> than {name}: chrF {one.first:.1f} there, {one.second:.1f} here."


def problems(f: Findings) -> str:
    """Return the error analysis: by length, by word frequency, and counts of known faults."""
    a = f.analysis
    if a is None:
        return ""
    lengths = [
        Bar(_range(group), [(group.chrf, f"{group.chrf:.1f}"), (group.bleu, f"{group.bleu:.1f}")], f"{group.sentences:,}")
        for group in a.lengths
    ]  # fmt: skip
    parts = [bar_table("By source length", ("words", ("chrF", "BLEU"), "sentences"), lengths)]
    if a.words:
        rare = [
            Bar(_range(group), [(100 * group.recall, f"{group.recall:.0%}" if group.words else "–")], f"{group.words:,}")
            for group in a.words
        ]  # fmt: skip
        parts.append(bar_table("By word frequency in the training text", ("times", ("in the output",), "words"), rare))
    partly = f.text is not None and f.text.counted < f.text.pairs
    counted = f" Words are counted in the first {f.text.counted:,} of {f.text.pairs:,} pairs." if partly else ""
    hint = f"On the {f.sets[-1].name}. A reference word counts as correct if it is in the output.{counted}"
    return _section("Where it goes wrong", f'<div class="two">{"".join(parts)}</div>{_faults(f)}', hint)


def _faults(f: Findings) -> str:
    a = f.analysis
    kept = (f"{a.numbers_kept:,} of {a.numbers:,}", f"the references keep {a.numbers_in_references:,}")
    tiles = {
        "numbers kept": kept if a.numbers else ("–", "the sources have no numbers"),
        "length": (f"{a.length_ratio:.2f}", "tokens, output to reference"),
        "loops": (f"{a.loops:,}", "outputs that repeat words or letters"),
        "copies": (f"{a.copies:,}", "outputs consisting mostly of source words"),
        "empty": (f"{a.empty:,}", "outputs"),
    }
    if f.seen is not None:
        tiles["overlap"] = (f"{f.seen.either:,}", "pairs with a side in the training text")
    cells = (
        f"<div><dt>{name}</dt><dd><b>{value}</b><small>{note}</small></dd></div>"
        for name, (value, note) in tiles.items()
    )
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def examples(f: Findings) -> str:
    """Return some of the best, middle and worst sentences, with the differences marked."""
    rows = list(reversed(f.sentences))
    if not rows:
        return ""
    middle = max(EXAMPLES, (len(rows) - EXAMPLES) // 2)
    groups = {
        "best": rows[:EXAMPLES],
        "middle": rows[middle : middle + EXAMPLES],
        "worst": rows[max(2 * EXAMPLES, len(rows) - EXAMPLES) :],
    }
    items = "".join(_example(row, name) for name, own in groups.items() for row in own)
    hint = (
        "By the chrF of each sentence. <del>missed</del> is in the reference only, <ins>added</ins> in the output only. "
        + '<span class="screen">All sentences are at the end of the page.</span>'
    )
    return _section("From best to worst", f'<div class="examples">{items}</div>', hint)


def _example(row: SentenceScore, group: str) -> str:
    reference, hypothesis = diff(row.reference, row.hypothesis)
    texts = {"source": escape(row.source), "reference": _marked(reference), "output": _marked(hypothesis)}
    lines = "".join(
        f'<dt>{name}</dt><dd dir="auto" class="{name}">{text or "<i>empty</i>"}</dd>' for name, text in texts.items()
    )
    head = f'<p class="score {group}"><b>{row.chrf:.0f}</b> <span>{group}</span> <small>line {row.line:,}</small></p>'
    return f'<article class="example">{head}<dl class="texts">{lines}</dl></article>'


def _marked(runs: Sequence[Run]) -> str:
    tags = {0: "{}", 4: "<ins>{}</ins>"}
    return "".join(tags.get(kind, "<del>{}</del>").format(escape(text)) for kind, text in runs)


def settings(f: Findings) -> str:
    """Return what the data were, what was chosen, and how long it took."""
    log, minutes = f.log, duration(f.log.seconds)
    data = dict(f.data)
    if f.filters is not None:
        data |= {RULES[rule]: f"{count:,} left out" for rule, count in f.filters.taken.items() if count}
        data |= {"set aside for validation": f"{f.filters.held_out:,}"} if f.filters.held_out else {}
    training = {
        "model": shape(dict(f.model)),
        "weights": log.weights or "best validation so far",
        "steps": f"{log.steps:,}, in {log.epochs:,} epoch{'s' * (log.epochs != 1)}{ENDED.get(log.ended_by, '')}",
        "time": f"{minutes}, validation included; {log.tokens_per_second:,.0f} {_tokens(f)}",
    }
    own = {name: _shown(value) for name, value in chosen(f.recipe).items()}
    whole = f"<details><summary>The whole recipe</summary><pre>{escape(f.recipe.to_toml())}</pre></details>"
    panels = f'<div class="two">{_rows("Data", data)}{_rows("Training", training)}</div>'
    panels += _rows("Non-default settings", own, "settings")
    return _section("How it was made", panels + whole)


def _tokens(f: Findings) -> str:
    return "target tokens per second" if f.recipe.task.searches else "tokens per second"


def _rows(title: str, rows: Mapping[str, str], kind: str = "") -> str:
    if not rows:
        return ""
    cells = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows.items())
    return f'<section class="panel"><h3>{escape(title)}</h3><dl class="facts {kind}">{cells}</dl></section>'


def notes(f: Findings) -> str:
    """Return what could not be measured."""
    return "".join(f'<p class="hint missing">{escape(sentence)}</p>' for sentence in f.notes)


def duration(seconds: float) -> str:
    """A duration in words."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 90 else f"{minutes // 60} hours {minutes % 60} minutes"


def _section(title: str, content: str, hint: str = "") -> str:
    if not content:
        return ""
    below = f'<p class="hint">{hint}</p>' if hint else ""
    return f'<section class="part"><h2>{escape(title)}</h2>{below}{content}</section>'


def _range(group: LengthGroup | WordGroup) -> str:
    if group.last is None:
        return f"{group.first}+"
    return f"{group.first}" if group.first == group.last else f"{group.first}–{group.last}"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
