"""Scores with intervals, and differences between two systems, on the screen and as JSON."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any


def show_scores(
    args: argparse.Namespace,
    measure: Any,
    found: Sequence[Any],
    expected: Any,
    what: str,
    more: Mapping[str, Any] | None = None,
    decimals: int = 2,
) -> None:
    """Print the scores of one system, or of two (`--against`); `more` is added to --json. `what` was scored."""
    from rich.console import Console

    from heed.evaluation.classification import differences, intervals
    from heed.tasks import metric_labels

    measured = [intervals(measure, own, expected, args.samples) for own in found]
    compared = differences(measure, *found, expected, args.samples) if args.against else {}
    console, labels = Console(), metric_labels()
    names = {metric: _label(metric, labels) for metric in measured[0]}
    width = max(map(len, names.values()))
    for metric in measured[0]:
        parts = [
            f"[bold]{own[metric].value:7.{decimals}f}[/]  {own[metric].low:.{decimals}f} to {own[metric].high:.{decimals}f}"
            for own in measured
        ]
        if compared:
            parts.append(f"{compared[metric].value:+.{decimals}f}, p = {compared[metric].p_value:.4f}")
        console.print(f"{names[metric]:<{width}} {'   '.join(parts)}", highlight=False, soft_wrap=True)
    line = f"{what}; 95 % intervals from {args.samples:,} bootstrap samples"
    console.print(f"[dim]{line}{'; p of a paired bootstrap' if compared else ''}[/]", highlight=False, soft_wrap=True)
    if args.json:
        _write_json(args, measured, compared, len(expected), more or {})


def _label(metric: str, labels: Mapping[str, str]) -> str:
    name, _, part = metric.partition("_")
    return f"{labels[name]} {part}".rstrip()


def _write_json(
    args: argparse.Namespace, measured: list[dict], compared: dict, count: int, more: Mapping[str, Any]
) -> None:
    from heed.files import write_json

    scores = [{name: own._asdict() for name, own in one.items()} for one in measured]
    facts = {"system": args.system, "texts": count, "samples": args.samples, "scores": scores[0], **more}
    if compared:
        facts |= {"against": args.against, "scores_against": scores[1]}
        facts["differences"] = {name: own._asdict() for name, own in compared.items()}
    write_json(args.json, facts)
