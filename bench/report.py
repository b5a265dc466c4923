"""What was measured, as a table and as plain values."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import arithmetic, data
from bench.arithmetic import Peaks
from bench.rows import Row, System, TrainRow, packed
from bench.turns import Measured

GIB = 2**30


def summary(row: Row, systems: Sequence[System], found: Measured, peaks: Peaks) -> dict[str, Any]:
    """One row: of each system its median, its ratio to the best peer, and how near it comes to the floor."""
    speeds = {name: arithmetic.speeds(rounds) for name, rounds in found.rounds.items()}
    best = arithmetic.best(speeds, [system.name for system in systems if system.peer])
    agree = agreement({s.name: found.said[s.name] for s in systems if s.number == "float32" and s.name in found.said})
    every = []
    for system in systems:
        if system.name not in speeds:
            continue
        own = speeds[system.name]
        floor = floor_speed(row, system, peaks)
        every.append(
            {
                "name": system.name,
                "peer": system.peer,
                "number": system.number,
                "tokens_per_second": statistics.median(own),
                "rounds": own,
                "ratio": arithmetic.ratio(own, speeds[best]) if best else None,
                "floor_tokens_per_second": floor,
                "share": statistics.median(own) / floor,
                "memory_gib": max(one["memory"] for one in found.rounds[system.name]) / GIB,
                "set_up_seconds": found.set_up[system.name],
                "same": agree.get(system.name),
            }
        )
    return {"row": packed(row), "best_peer": best, "systems": every, "failed": found.failed, "versions": found.versions}


def floor_speed(row: Row, system: System, peaks: Peaks) -> float:
    """Target tokens a second that the machine could not exceed."""
    if isinstance(row, TrainRow):
        sets = data.full(row) if system.how == "swift" else data.sets(row)
        seconds = [
            arithmetic.floor(arithmetic.training(row, data.lengths(batch)), peaks, system.number) for batch in sets
        ]
        return sum(map(data.target_tokens, sets)) / sum(seconds)
    phases = arithmetic.translating(row, system.number)
    return row.batch * row.target / arithmetic.floor(phases, peaks, system.number)


def agreement(said: Mapping[str, list[list[int]]]) -> dict[str, float]:
    """How many of heed's sentences, in the same number format, each system has said too, to the last token."""
    ours = said.get("heed-torch") or said.get("heed")
    if not ours:
        return {}
    same = {name: sum(a == b for a, b in zip(ours, theirs, strict=False)) / len(ours) for name, theirs in said.items()}
    return {name: share for name, share in same.items() if said[name]}


def table(found: Mapping[str, Any], kind: str) -> Table:
    row = found["row"]
    shown = Table(title=f"{kind} {row['name']}", title_justify="left")
    shown.add_column("system")
    for name in ("tokens/s", "rounds", "to best peer", "of floor", "GiB", "warm-up s"):
        shown.add_column(name, justify="right")
    if kind == "translate":
        shown.add_column("as heed", justify="right")
    for own in found["systems"]:
        low, high = min(own["rounds"]), max(own["rounds"])
        cells = [
            own["name"] + (" *" if own["name"] == found["best_peer"] else ""),
            f"{own['tokens_per_second']:,.0f}",
            f"{low:,.0f}-{high:,.0f}",
            "" if own["ratio"] is None else f"{own['ratio']:.2f}",
            f"{100 * own['share']:.1f} %",
            f"{own['memory_gib']:.2f}",
            f"{own['set_up_seconds']:.1f}",
        ]
        if kind == "translate":
            cells.append("" if own["same"] is None else f"{100 * own['same']:.0f} %")
        shown.add_row(*cells, style=None if own["peer"] else "bold")
    return shown


def machine(facts: Mapping[str, Any], peaks: Peaks, console: Console) -> None:
    formats = ", ".join(f"{name} {value / 1e12:,.3g}" for name, value in peaks.operations.items())
    console.print(
        f"{facts['device']}; {facts['threads']} threads{', CPU seconds' if facts.get('clock') == 'process' else ''}; torch {facts['versions'].get('torch')}; {facts['date']}"
    )
    console.print(f"peaks: {formats} TFLOP/s; {peaks.bandwidth / 1e9:,.4g} GB/s")
