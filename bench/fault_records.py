"""What came of the cases of `make check-faults`, kept in a folder, so that an interrupted run can go on."""

import argparse
import json
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

OPTIONS = "options.json"


class Found(NamedTuple):
    """What came of one case: an outcome that is allowed, or what is wrong."""

    scene: str
    case: str
    outcome: str
    says: str = ""
    good: bool = True
    seconds: float = 0.0  # of a core


def write_down(path: Path, find: Callable[[int], Iterator[Found]]) -> None:
    """Write what is found into a file, from where an interrupted run was; the file has its name once all is in it."""
    if path.is_file():
        return
    part = path.with_suffix(".part")
    lines = part.read_text("utf-8").splitlines(keepends=True) if part.is_file() else []
    lines = [line for line in lines if line.endswith("\n")]
    part.write_text("".join(lines), encoding="utf-8", newline="\n")
    with open(part, "a", encoding="utf-8", newline="\n") as file:
        before = spent()
        for found in find(len(lines)):
            file.write(json.dumps(found._replace(seconds=round(spent() - before, 3))) + "\n")
            file.flush()
            before = spent()
    part.rename(path)


def spent() -> float:
    """Seconds of a core, of this process and its children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(own.ru_utime + own.ru_stime for own in used)


def read(out: Path) -> list[Found]:
    paths = sorted([*out.glob("*.jsonl"), *out.glob("*.part")], key=lambda path: path.stat().st_mtime)
    lines = (line for path in paths for line in path.read_text("utf-8").splitlines(keepends=True))
    return [Found(*json.loads(line)) for line in lines if line.endswith("\n")]


def begin(given: argparse.Namespace) -> None:
    """Go on in the folder of a run that was interrupted, or empty it."""
    options = {name: value for name, value in vars(given).items() if name not in ("out", "shown")}
    note = given.out / OPTIONS
    if note.is_file() and json.loads(note.read_text("utf-8")) == options:
        if done := len(read(given.out)):
            print(f"{done:,} cases are done already: going on. To begin anew, remove {given.out}.", flush=True)
        return
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    note.write_text(json.dumps(options), encoding="utf-8", newline="\n")


def end(out: Path) -> None:
    """The next run begins anew."""
    (out / OPTIONS).unlink()
