"""Which test files are likely to notice a fault in a module: by its name, by their imports, and by the words they share."""

import ast
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
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
    away = _steps(path, tests)

    def relevance(test: Path) -> float:
        named, steps = test.parent == folder and path.stem in test.stem, away.get(test, math.inf)
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
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a file, inside functions too."""
    return [one for one in _statements(ast.parse(path.read_bytes())) if isinstance(one, ast.Import | ast.ImportFrom)]


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements inside a statement. `ast.walk` would visit their expressions too, which takes many times as long."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for one in getattr(node, field, ()):
            yield one
            yield from _statements(one)


@cache
def imported(path: Path) -> frozenset[Path]:
    """The files of Heed and of its tests that a file imports, wherever in it."""
    found = set()
    for node in import_statements(path):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{name}" for name in names)] if node.module else []
        for name in names:
            found |= _files(name)
    return frozenset(found - {path})


@cache
def _files(name: str) -> frozenset[Path]:
    """The file of a module, if it is one of Heed or of its tests."""
    own = (SOURCE if name.split(".")[0] == "heed" else ROOT).joinpath(*name.split("."))
    return frozenset(file for file in (own.with_suffix(".py"), own / "__init__.py") if file.is_file())


@cache
def _importers(tests: tuple[Path, ...]) -> dict[Path, set[Path]]:
    """The files that import a file, among the tests and what they import."""
    found, seen, waiting = defaultdict(set), set(tests), list(tests)
    while waiting:
        path = waiting.pop()
        for one in imported(path):
            found[one].add(path)
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return found


def _steps(path: Path, tests: tuple[Path, ...]) -> dict[Path, int]:
    """How many imports away a file is from each file that needs it."""
    found, waiting, importers = {path: 0}, deque([path]), _importers(tests)
    while waiting:
        one = waiting.popleft()
        for importer in importers.get(one, set()) - found.keys():
            found[importer] = found[one] + 1
            waiting.append(importer)
    return found
