"""recipe.toml and plan.toml in a run folder: with a hash of their content, and an identifier of the run."""

import hashlib
import re
from pathlib import Path

from heed.files import write_text

HEAD = re.compile(r"# of run ([0-9a-f]{16}), sha256 ([0-9a-f]{64}): .*\n")


def write(path: Path, text: str, run: str) -> None:
    """Write a recipe below a line with its hash."""
    write_text(path, f"# of run {run}, sha256 {_digest(run, text)}: change settings with --set\n{text}")


def body(path: Path) -> str:
    """A recipe without the line of its run."""
    return HEAD.sub("", path.read_text(encoding="utf-8"), count=1)


def check(path: Path) -> str | None:
    """The identifier of a file's run; ValueError if it has changed since it was written. None: an earlier version's."""
    if not path.is_file():
        return None
    text = path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")
    head = HEAD.match(text)
    if head is None:
        return None
    if head[2] != _digest(head[1], text[head.end() :]):
        raise ValueError(
            f"{path} is damaged or was edited: its hash does not match its first line; restore it, or remove that line "
            "if you changed the file yourself"
        )
    return head[1]


def is_saved(path: Path) -> bool:
    """Whether heed wrote this file into a run folder."""
    return path.is_file() and HEAD.match(path.read_bytes().decode("utf-8", "replace").replace("\r\n", "\n")) is not None


def check_run(path: Path, run: str | None) -> None:
    """Refuse a recipe of another run than the files next to it; earlier versions have no identifier."""
    own = check(path)
    if own and run and own != run:
        raise ValueError(
            f"{path} belongs to another run than the files next to it: restore the right one, or start a new run with "
            "another --out"
        )


def identifier(text: str) -> str:
    """The identifier of a run: a hash of its first recipe. Runs with the same recipe have the same identifier and
    weights.
    """
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _digest(run: str, text: str) -> str:
    return hashlib.sha256(f"{run}\n{text}".encode()).hexdigest()
