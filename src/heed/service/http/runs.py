"""Training runs for the page: summaries, log lines and samples."""

import json
import math
import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from heed.config import parse_json
from heed.tasks import TASKS, metric_labels

MAX_LINES = 2_000
MAX_SAMPLES = 200
_STEP = re.compile(r"step-(\d+)\.txt")
EXAMPLE = {
    "name": "ko-en", "step": 600, "steps": 600, "finished": True, "updated": 1767225600.0, "seconds_left": None,
    "valid": {"step": 600, "bleu": 96.8}, "metrics": [{"name": "bleu", "label": "BLEU", "better": "high", "decimals": 2}],
}  # fmt: skip


def list_runs(folder: Path) -> list[dict[str, Any]]:
    """The summaries of all runs of a folder, latest first."""
    summaries = []
    for path in folder.iterdir():
        if (log := path / "log.jsonl").is_file():
            stat = log.stat()
            summary = _cached_summary(path, stat.st_mtime_ns, stat.st_size)
            summaries.append({**_plan(path), **summary})
    return sorted(summaries, key=lambda run: -run["updated"])


@lru_cache(maxsize=1_000)
def _cached_summary(path: Path, modified: int, size: int) -> dict[str, Any]:
    """Cached until the log changes: the page asks every few seconds, and most runs are over."""
    return _summary(path, _read_log(path))


def read_run(folder: Path, name: str, after: int) -> dict[str, Any] | None:
    """A run with its log from line `after` on; None if there is no such run."""
    path = _run_path(folder, name)
    if path is None:
        return None
    lines = _read_log(path)
    restarted = after > len(lines)
    start = 0 if restarted else after
    end = min(len(lines), start + MAX_LINES)
    return {
        **_plan(path),
        **_summary(path, lines),
        "lines": lines[start:end],
        "next": end,
        "more": end < len(lines),
        "restarted": restarted,
        "samples": _latest_samples(path / "samples"),
    }


def _run_path(folder: Path, name: str) -> Path | None:
    """Found by listing the folder: a name from outside never becomes a path."""
    return next((path for path in folder.iterdir() if path.name == name and (path / "log.jsonl").is_file()), None)


def _read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, without an incomplete last one."""
    lines = []
    for raw in (path / "log.jsonl").read_bytes().splitlines():
        try:
            line = parse_json(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("kind"), str):
            lines.append({name: _finite(value) for name, value in line.items()})
    return lines


def _finite(value: Any) -> Any:
    """JSON has no infinity, but a loss can be infinite."""
    if isinstance(value, dict | list):
        try:
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):  # somewhere in it
            return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _summary(path: Path, lines: list[dict[str, Any]]) -> dict[str, Any]:
    last = next((line for line in reversed(lines) if isinstance(line.get("step"), int)), {})
    step = next((line for line in reversed(lines) if line["kind"] == "step"), {})
    valid = next((line for line in reversed(lines) if line["kind"] == "valid"), None)
    finished = any(line["kind"] == "end" for line in lines)
    expected = last.get("step") if finished else step.get("steps")
    return {
        **({"steps": expected} if isinstance(expected, int) else {}),  # else those of the recipe
        "name": path.name,
        "step": last.get("step", 0),
        "finished": finished,
        "updated": (path / "log.jsonl").stat().st_mtime,
        "seconds_left": None if finished else step.get("seconds_left"),
        "valid": valid and {name: valid[name] for name in ("step", *metric_labels(), "perplexity") if name in valid},
    }


def _plan(path: Path) -> dict[str, Any]:
    """The number of steps in the recipe, None if a time budget ends it, and the metrics of its task, or all if it is
    unknown.
    """
    try:
        recipe = tomllib.loads((path / "recipe.toml").read_text("utf-8"))
        training, task = recipe.get("training", {}), TASKS.get(recipe.get("task", {}).get("name"))
        steps = None if training.get("time") else training.get("steps")
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):  # no recipe, or a broken one
        steps = task = None
    metrics = task.metrics if task else {m.name: m for each in TASKS.values() for m in each.metrics}.values()
    told = [
        {"name": m.name, "label": m.label, "better": "high" if m.higher_is_better else "low", "decimals": m.decimals}
        for m in metrics
    ]
    return {"steps": steps if isinstance(steps, int) else None, "metrics": told}


def read_samples(folder: Path, name: str) -> list[dict[str, Any]] | None:
    """The samples of the latest `MAX_SAMPLES` validations; None if there is no such run."""
    path = _run_path(folder, name)
    if path is None:
        return None
    files = _sample_files(path / "samples")
    return [{"step": step, "of": _parse_samples(files[step])} for step in sorted(files)[-MAX_SAMPLES:]]


def _latest_samples(folder: Path) -> dict[str, Any] | None:
    files = _sample_files(folder)
    return {"step": max(files), "of": _parse_samples(files[max(files)])} if files else None


def _sample_files(folder: Path) -> dict[int, Path]:
    """By step."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return {int(match[1]): path for path in paths if (match := _STEP.fullmatch(path.name))}


def _parse_samples(path: Path) -> list[dict[str, str]]:
    samples = []
    for block in path.read_text("utf-8", "replace").split("\n\n"):
        parts = block.split("\n= ", 1)
        if len(parts) == 2 and "\n> " in parts[1]:
            reference, translation = parts[1].split("\n> ", 1)
            samples.append({"source": parts[0], "reference": reference, "translation": translation})
    return samples
