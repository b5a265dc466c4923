"""heed evaluate for recommenders: ranks of the held-out items, compared with count-based baselines."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

WARNING = "Scores with sampled negatives can mislead: they may rank models differently than a full ranking does (Krichene and Rendle, 2020). Compare them only with scores computed the same way."


def add_ranking(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("recommenders")
    option = group.add_argument
    option(
        "--interactions",
        metavar="FILE",
        help="another log, with each user's last item as the target (default: the held-out items)",
    )
    option("--part", choices=["test", "valid"], default="test", help="which held-out items to use (default: test)")
    option("--at", type=int, nargs="+", default=[5, 10, 20], metavar="K", help="HR@K and NDCG@K (default: 5 10 20)")
    option(
        "--negatives",
        type=int,
        default=0,
        metavar="N",
        help="rank against N sampled items, as older papers do (default: all items)",
    )
    option("--include-seen", action="store_true", help="also rank items that are in the history")


def evaluate(args: argparse.Namespace) -> int:
    from heed.cli.common import errors, open_product
    from heed.evaluation.item_baselines import ItemKNN, Popularity
    from heed.evaluation.ranking import Setting, rank

    if min(args.at) < 1 or args.negatives < 0:
        raise ValueError("--at must be at least 1, and --negatives 0 (all items) or more")
    names = [name for name in (args.system, args.against) if name]
    models = [open_product(args, "recommend", [name]) for name in names]
    helds = [_held(args, model, name) for model, name in zip(models, names, strict=True)]
    _check_same(models, helds, names)
    setting = Setting(not args.include_seen, args.negatives)
    most, first = max(args.at), models[0]
    items = len(first.items)
    found = {
        role: rank(model.scores, held, len(model.items), setting, most, model.device.type)
        for role, model, held in zip(("model", "against"), models, helds, strict=False)
    }
    counts = None
    if first.histories is not None:
        counts = first.histories.counts()
        for name, scorer in (
            ("popularity", Popularity(counts)),
            ("item-kNN", ItemKNN(first.histories.training(), items)),
        ):
            found[name] = rank(scorer, helds[0], items, setting, most)
    _show(args, found, helds[0], items, counts, _signature(args, first, helds[0], setting))
    if setting.negatives:
        errors().print(f"[yellow]{WARNING}[/]", highlight=False)
    if counts is None:
        errors().print("[dim]There are no baselines without the training histories.[/]", highlight=False)
    return 0


def _held(args: argparse.Namespace, model: Any, name: str) -> Any:
    if args.interactions:
        from heed.data.interactions.evaluation import read_held

        return read_held(Path(args.interactions), model.items, model.facts.get("columns", {}))
    if model.histories is None:
        raise ValueError(f"{name} has no histories (task.histories): give a log with --interactions FILE")
    return model.histories.held(args.part)


def _check_same(models: list, helds: list, names: list[str]) -> None:
    """Two systems are compared on the same users and items, even if one does not know all of the items."""
    if len(models) < 2:
        return
    one, other = (
        [model.items.names[i] if i >= 0 else None for i in held.targets.tolist()]
        for model, held in zip(models, helds, strict=True)
    )
    if len(one) != len(other) or any(a != b for a, b in zip(one, other, strict=True) if None not in (a, b)):
        raise ValueError(
            f"{names[0]} and {names[1]} hold out different items: they were trained on different logs or splits, and cannot be compared; "
            "use --interactions FILE to give both the same log"
        )


def _signature(args: argparse.Namespace, model: Any, held: Any, setting: Any) -> str:
    split = (
        "each user's last item in another log" if args.interactions else f"{model.facts.get('split', '')}, {args.part}"
    )
    new, without = int((held.targets < 0).sum()), int((held.histories.lengths == 0).sum())
    missed = f"; {new:,} items unknown to the model count as missed" if new else ""
    missed += f"; {without:,} users without a known item count as missed, too" if without else ""
    return f"{len(held.users):,} users; {split}; {setting.describe(len(model.items))}{missed}"


def _show(args: argparse.Namespace, found: dict, held: Any, items: int, counts: Any, signature: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from heed.evaluation.classification import differences, intervals
    from heed.evaluation.ranking import contributions, coverage, popularity_bias

    each = {name: contributions(own.ranks, args.at) for name, own in found.items()}
    metrics = list(next(iter(each.values())))

    def measure(rows: np.ndarray, _: np.ndarray) -> dict[str, float]:
        return {name: 100 * float(value) for name, value in zip(metrics, rows.mean(axis=0), strict=True)}

    tables = {name: np.stack(list(own.values()), axis=1) for name, own in each.items()}
    expected = np.zeros(len(held.users))
    measured = {name: intervals(measure, own, expected, args.samples) for name, own in tables.items()}
    compared = differences(measure, tables["model"], tables["against"], expected, args.samples) if args.against else {}
    more = {name: {f"coverage@{max(args.at)}": coverage(own.top, items)} for name, own in found.items()}
    if counts is not None:
        for name, own in found.items():
            more[name]["popularity bias"] = popularity_bias(own.top, held.histories, counts)
    table = Table(box=None, header_style="dim", padding=(0, 2))
    for name in ("", *found, *(["difference", "p"] if compared else [])):
        table.add_column(name, justify="left" if not name else "right", overflow="fold")
    for metric in metrics:
        cells = [
            f"{own[metric].value:.2f} ({own[metric].low:.2f} to {own[metric].high:.2f})" for own in measured.values()
        ]
        last = [f"{compared[metric].value:+.2f}", f"{compared[metric].p_value:.4f}"] if compared else []
        table.add_row(_label(metric), *cells, *last)
    for metric in next(iter(more.values())):
        table.add_row(metric, *(f"{own[metric]:.2f}" for own in more.values()))
    console = Console()
    console.print(table)
    line = f"{signature}. Multiplied by 100; 95 % intervals from {args.samples:,} bootstrap samples{'; p of a paired bootstrap' if compared else ''}"
    console.print(f"[dim]{line}[/]", highlight=False, soft_wrap=True)
    if args.json:
        _write_json(args, measured, more, compared, signature, len(held.users))


def _label(metric: str) -> str:
    return metric.upper()


def _write_json(
    args: argparse.Namespace, measured: dict, more: dict, compared: dict, signature: str, users: int
) -> None:
    from heed.files import write_json

    systems = {
        name: {metric: value._asdict() for metric, value in own.items()} | more[name] for name, own in measured.items()
    }
    facts = {"system": args.system, "users": users, "samples": args.samples, "signature": signature, "scores": systems}
    if compared:
        facts |= {"against": args.against, "differences": {name: own._asdict() for name, own in compared.items()}}
    write_json(args.json, facts)
