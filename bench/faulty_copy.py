"""Test files in processes of their own, with a copy of the source in which a fault can be put: for bench/mutants.py."""

import ast
import importlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path

import jaxtyping
import pytest

from bench.reach import HOOK, STREAM, Reached, Recorder, read
from bench.reach import SOURCE as TRACED

ROOT = Path(__file__).parent.parent
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
SAME_FOLDER = 3  # how near a test file is that is in the folder of the module, but imports nothing of it
RECORDING = 100  # seconds of a test file, while its lines are recorded: tests after that are not used
MORE_CPU, MORE_WALL = (
    (5, 30),
    (20, 120),
)  # times and seconds more than tests take without a fault: it may make them endless
LOADED = ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")  # the libraries below
LIBRARIES = ("numpy", "torch", "hypothesis", "beartype", "jaxtyping", "sacrebleu", "sentencepiece", "safetensors.torch",
             "tokenizers", "ctranslate2", "fastapi", "httpx", "transformers")  # fmt: skip


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


def nearest(path: Path, tests: Sequence[Path], most: int) -> list[Path]:
    """The test files to try: of the module's name first, then those that reach it by the fewest imports."""
    folder = TESTS / path.relative_to(SOURCE / "heed").parent

    def rank(test: Path) -> tuple:
        named = test.parent == folder and path.stem in test.stem
        steps = _steps(test).get(path, 99)
        return not named, min(steps, SAME_FOLDER) if test.parent == folder else steps, test.parent != folder, test

    ranked = sorted(tests, key=rank)
    return [test for test in ranked if rank(test)[1] < 99][:most]


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


class Selection:
    """A plugin of pytest: runs some tests, in an order, and writes the first that fails into a file."""

    def __init__(self, names: Sequence[str], answer: Path):
        self.order, self.answer = {name: number for number, name in enumerate(names)}, answer

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((one for one in items if one.nodeid in self.order), key=lambda one: self.order[one.nodeid])

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.answer.exists():
            self.answer.write_text(report.nodeid, "utf-8")


def _check_shapes(faulty: str, hook: Callable, modules: Sequence[str], checker: str) -> None:
    """Shapes are checked where the fault is: to prepare all of Heed for it takes longer than most tests."""
    hook([module for module in modules if module == faulty], checker)


class Copy:
    """A copy of the source in which faults are put, one at a time."""

    def __init__(self, folder: Path):
        self.folder, self.source, self.times, self.faulty = folder, folder / "src", 0, ""
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        (self.source / "sitecustomize.py").write_text(HOOK, "utf-8")
        for name in LIBRARIES:  # here, since each new process then has them already
            importlib.import_module(name)
        for plugin in entry_points(group="pytest11"):
            plugin.load()

    def write(self, path: Path, text: str) -> None:
        own = self.source / path.relative_to(SOURCE)
        self.faulty = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        own.write_text(text, "utf-8")
        self.times += 1  # no two versions have one time: a compiled file is known by the size and second of its source
        os.utime(own, (1_000_000_000 + self.times,) * 2)

    def record(self, test: Path) -> Reached:
        """Which lines the tests of a file run, those that pass."""
        stream = self.folder / "reach"
        stream.write_bytes(b"")

        def plugin() -> Recorder:
            os.environ |= {STREAM: str(stream), TRACED: f"{self.source}/"}
            return Recorder(os.environ[STREAM], os.environ[TRACED])

        self._run(test, plugin, [], RECORDING, 2 * RECORDING)
        return read(stream)

    def failed(self, test: Path, names: Sequence[str], seconds: float) -> str | None:
        """The first of these tests that fails, or else why they could not end; nothing if all pass."""
        answer = self.folder / "failed"
        answer.unlink(missing_ok=True)
        cpu, wall = (times * seconds + more for times, more in (MORE_CPU, MORE_WALL))
        code = self._run(test, lambda: Selection(names, answer), ["-x"], cpu, wall)
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return None
        if answer.exists():
            return answer.read_text("utf-8")
        own = test.relative_to(ROOT).as_posix()
        return f"{own} (too long)" if code < 0 else f"{own} (as a whole)"

    def _run(self, test: Path, plugin: Callable[[], object], more: list[str], cpu: float, wall: float) -> int:
        """The exit code of pytest, in a process that has the copy for Heed."""
        scratch = tempfile.mkdtemp(dir=self.folder)
        if (child := os.fork()) == 0:
            self._test(test, plugin, more, int(cpu), scratch)
        ends = time.monotonic() + wall
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < ends:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with whatever it has started
        if not ended[0]:
            ended = os.waitpid(child, 0)
        shutil.rmtree(scratch, ignore_errors=True)
        return os.waitstatus_to_exitcode(ended[1])

    def _test(self, test: Path, plugin: Callable[[], object], more: list[str], cpu: int, scratch: str) -> None:
        """In the new process: run the tests and end."""
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            os.chdir(ROOT)
            os.environ |= {"PYTHONPATH": str(self.source), "TMPDIR": scratch, "HYPOTHESIS_STORAGE_DIRECTORY": scratch}
            tempfile.tempdir = scratch
            jaxtyping.install_import_hook = partial(_check_shapes, self.faulty, jaxtyping.install_import_hook)
            sys.path[:0] = [str(self.source), str(ROOT)]
            arguments = ["-q", *more, "-m", "not long", "-p", "no:cacheprovider", *LOADED, str(test)]
            os._exit(int(pytest.main(arguments, plugins=[plugin()])))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(99)
