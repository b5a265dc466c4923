"""Which test files are likely to notice a fault in a module: by its name, by their imports, and by the words they share."""

import ast
import math
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
NAMED, IMPORTED, SAME_FOLDER = 10, 6, 1  # weights, beside the rarity of the words that a test file has
STEM = 9  # letters of a word: "recommend" is in "recommendation"
NOT_TRIED = ("tests/service/page", "tests/lab", "tests/test_mutants.py")  # of code without faults, or too slow


def nearest(path: Path, tests: Sequence[Path], most: int, inside: Iterable[str] = ()) -> list[Path]:
    """The test files to try for a fault in the functions and classes `inside` a module, the most likely first."""
    folder, words = TESTS / path.relative_to(SOURCE / "heed").parent, _words(path, inside)
    tests = tuple(test for test in tests if not test.relative_to(ROOT).as_posix().startswith(NOT_TRIED))

    def relevance(test: Path) -> float:
        named, steps = test.parent == folder and path.stem in test.stem, _steps(test).get(path, math.inf)
        shared = sum(_rarity(word, tests) * (1 + (word in test.stem)) for word in words if word in _text(test))
        return NAMED * named + IMPORTED / steps + SAME_FOLDER * (test.parent == folder) + shared

    found = {test: relevance(test) for test in tests}
    return sorted((test for test in tests if found[test] > 0), key=lambda test: (-found[test], test))[:most]


def _words(path: Path, inside: Iterable[str]) -> set[str]:
    """What a test of a place is likely to mention."""
    names = [name.strip("_") for name in inside if not name.startswith("__")]
    parts = [part[:STEM] for part in (*path.stem.split("_"), path.parent.name)]
    return {word.lower() for word in (*names, path.stem, *parts) if len(word) > 2}


@cache
def _text(test: Path) -> str:
    return test.read_text("utf-8").lower()


@cache
def _rarity(word: str, tests: tuple[Path, ...]) -> float:
    """How much a word tells: nothing if all test files have it."""
    return math.log(len(tests) / max(1, sum(word in _text(test) for test in tests)))


@cache
def imported(path: Path) -> frozenset[Path]:
    """The files of Heed and of its tests that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            own = (SOURCE if name.split(".")[0] == "heed" else ROOT).joinpath(*name.split("."))
            found |= {file for file in (own.with_suffix(".py"), own / "__init__.py") if file.is_file()}
    return frozenset(found - {path})


@cache
def _steps(test: Path) -> dict[Path, int]:
    """How many imports away each file is from a test file."""
    found, waiting = {test: 0}, deque([test])
    while waiting:
        path = waiting.popleft()
        for one in imported(path) - found.keys():
            found[one] = found[path] + 1
            waiting.append(one)
    return found
