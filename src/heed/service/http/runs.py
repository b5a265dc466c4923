"""Runs as they train: what their logs say, line by line."""

import json
import math
import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from heed.tasks import metric_labels

MOST_LINES = 2_000
MOST_SAMPLES = 200
_STEP = re.compile(r"step-(\d+)\.txt")


def listed(folder: Path) -> list[dict[str, Any]]:
    """All runs of a folder, the latest first."""
    found = []
    for path in folder.iterdir():
        if (log := path / "log.jsonl").is_file():
            now = log.stat()
            found.append({**_known(path, now.st_mtime_ns, now.st_size), "steps": _steps(path)})
    return sorted(found, key=lambda run: -run["updated"])


@lru_cache(maxsize=1_000)
def _known(path: Path, changed: int, size: int) -> dict[str, Any]:
    """What a log says that was last changed then and has this size: a page asks every few seconds, and most runs are over."""
    return _summary(path, _lines(path))


def followed(folder: Path, name: str, after: int) -> dict[str, Any] | None:
    """A run from line `after` of its log on; None where there is no such run."""
    names = {path.name: path for path in folder.iterdir() if (path / "log.jsonl").is_file()}
    if name not in names:  # a name is never made a path
        return None
    path = names[name]
    lines = _lines(path)
    restarted = after > len(lines)
    start = 0 if restarted else after
    end = min(len(lines), start + MOST_LINES)
    return {
        **_summary(path, lines),
        "lines": lines[start:end],
        "next": end,
        "more": end < len(lines),
        "restarted": restarted,
        "samples": _samples(path / "samples"),
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    """What is logged; the half line of a run at work, or of one that was killed, is left out."""
    found = []
    for raw in (path / "log.jsonl").read_bytes().splitlines():
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("kind"), str):
            found.append({name: _finite(value) for name, value in line.items()})
    return found


def _finite(value: Any) -> Any:
    """JSON has no infinities; a loss can be one."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _summary(path: Path, lines: list[dict[str, Any]]) -> dict[str, Any]:
    last = next((line for line in reversed(lines) if isinstance(line.get("step"), int)), {})
    step = next((line for line in reversed(lines) if line["kind"] == "step"), {})
    valid = next((line for line in reversed(lines) if line["kind"] == "valid"), None)
    finished = any(line["kind"] == "end" for line in lines)
    return {
        "name": path.name,
        "step": last.get("step", 0),
        "steps": _steps(path),
        "finished": finished,
        "updated": (path / "log.jsonl").stat().st_mtime,
        "seconds_left": None if finished else step.get("seconds_left"),
        "valid": None
        if valid is None
        else {name: valid[name] for name in ("step", *metric_labels(), "perplexity") if name in valid},
    }


def _steps(path: Path) -> int | None:
    """How many steps the run is to have, by its recipe."""
    try:
        steps = tomllib.loads((path / "recipe.toml").read_text("utf-8")).get("training", {}).get("steps")
    except (OSError, ValueError):
        return None
    return steps if isinstance(steps, int) else None


def sampled(folder: Path, name: str) -> list[dict[str, Any]] | None:
    """The samples of every validation, the latest `MOST_SAMPLES` of them; None where there is no such run."""
    path = next((path for path in folder.iterdir() if path.name == name and (path / "log.jsonl").is_file()), None)
    if path is None:
        return None
    files = _sample_files(path / "samples")
    return [{"step": step, "of": _sample(files[step])} for step in sorted(files)[-MOST_SAMPLES:]]


def _samples(folder: Path) -> dict[str, Any] | None:
    """The translations of the latest validation."""
    files = _sample_files(folder)
    return {"step": max(files), "of": _sample(files[max(files)])} if files else None


def _sample_files(folder: Path) -> dict[int, Path]:
    """By step."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return {int(match[1]): path for path in paths if (match := _STEP.fullmatch(path.name))}


def _sample(path: Path) -> list[dict[str, str]]:
    found = []
    for block in path.read_text("utf-8").split("\n\n"):
        parts = block.split("\n= ", 1)
        if len(parts) == 2 and "\n> " in parts[1]:
            reference, said = parts[1].split("\n> ", 1)
            found.append({"source": parts[0], "reference": reference, "translation": said})
    return found
