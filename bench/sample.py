"""A sample of faults that stays the same while the source changes, so that its share of noticed faults can be compared.

A drawn fault is kept by its line and its change. One whose line is gone is replaced by another, drawn from all others.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench.mutations import count, described
from bench.near_tests import ROOT

FOLDER = Path(__file__).parent / "samples"


class Place(NamedTuple):
    """Where a fault is, whatever the number of its line: the `count` of those before it that are told the same."""

    path: str
    line: str
    change: str
    count: int


Numbered = tuple[Path, int]  # a file, and the number of a fault in it


def drawn(paths: Iterable[Path], size: int, seed: int) -> list[Numbered]:
    """Some of all faults: the kept ones of the seed that are still there, and others drawn evenly."""
    paths = sorted(paths)
    kept = [own for own in _kept(seed) if ROOT / own.path in paths][:size]
    known = {path: _places(path) for path in {ROOT / own.path for own in kept}}
    found = [(ROOT / own.path, known[ROOT / own.path][own]) for own in kept if own in known[ROOT / own.path]]
    if len(found) == size:
        return found
    every = [(path, number) for path in paths for number in range(count(path.read_text("utf-8")))]
    taken = set(found)
    left = [one for one in every if one not in taken]
    return found + random.Random(seed).sample(left, min(size - len(found), len(left)))


def keep(faults: Iterable[Numbered], seed: int) -> Path:
    """Keeps a sample, to be drawn again."""
    told = [{number: place for place, number in _places(path).items()}[number] for path, number in faults]
    _file(seed).parent.mkdir(exist_ok=True)
    lines = "".join(json.dumps(own, ensure_ascii=False) + "\n" for own in told)
    _file(seed).write_text(lines, "utf-8", newline="\n")
    return _file(seed)


def _file(seed: int) -> Path:
    return FOLDER / f"seed-{seed}.jsonl"


def _kept(seed: int) -> list[Place]:
    lines = _file(seed).read_text("utf-8").splitlines() if _file(seed).is_file() else []
    return [Place(*json.loads(line)) for line in lines]


def _places(path: Path) -> dict[Place, int]:
    """The number of each fault of a file by its place."""
    text, seen, found = path.read_text("utf-8"), defaultdict(int), {}
    lines = text.splitlines()
    for number, (line, before, after) in enumerate(described(text)):
        told = path.relative_to(ROOT).as_posix(), lines[line - 1].strip(), f"{before} -> {after}"
        found[Place(*told, seen[told])] = number
        seen[told] += 1
    return found
