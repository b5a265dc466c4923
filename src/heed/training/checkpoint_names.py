"""Which checkpoints a run has. Nothing here needs torch."""

from pathlib import Path


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first, including those that keep only their weights."""
    numbered = (path for path in folder.glob("step-*") if path.is_dir() and path.name[5:].isdigit())
    return sorted(numbered, key=step_of)


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))
