"""Test files in processes of their own, with a copy of the source in which a fault can be put: for bench/mutants.py."""

import gc
import importlib
import inspect
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, FunctionType

import jaxtyping
import pytest

from bench.mutations import Mutant
from bench.near_tests import ROOT, SOURCE
from bench.reach import HOOK, STREAM, Reached, Recorder, read
from bench.reach import SOURCE as TRACED

RECORDING = 100  # seconds of a test file, while its lines are recorded: tests after that are not used
MORE_CPU, MORE_WALL = (
    (5, 30),
    (20, 120),
)  # times and seconds more than tests take without a fault: it may make them endless
WALL_PER_CPU = 40  # seconds, on a busy machine
TOO_LONG = " (too long)"
LOADED = ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")  # the libraries below
LIBRARIES = ("numpy", "torch", "hypothesis", "beartype", "jaxtyping", "sacrebleu", "sentencepiece", "safetensors.torch",
             "tokenizers", "ctranslate2", "fastapi", "httpx", "transformers")  # fmt: skip


class Selection:
    """A plugin of pytest: runs some tests, in an order, and writes the first that fails into a file."""

    def __init__(self, names: Sequence[str], about: Sequence[str], answer: Path):
        self.order, self.about, self.answer = {name: number for number, name in enumerate(names)}, about, answer

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.order:
            items[:] = [one for one in items if one.nodeid in self.order]
            items.sort(key=lambda one: self.order[one.nodeid])
        else:
            items.sort(key=lambda one: -sum(name in inspect.getsource(one.function) for name in self.about))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.answer.write_text(report.nodeid, "utf-8")
            os._exit(1)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus):
        os._exit(int(exitstatus))  # what pytest would do now takes longer than many tests


def put(path: Path, fault: Mutant) -> bool:
    """Puts a fault into the function that is loaded already; whether there is one that has it."""
    new = defaultdict(list)
    for code in _codes(compile(fault.source, str(path), "exec")):
        new[code.co_qualname].append(code)
    gc.unfreeze()
    loaded = [one for one in gc.get_objects() if type(one) is FunctionType and one.__code__.co_filename == str(path)]
    by_name = defaultdict(dict)
    for one in sorted(loaded, key=lambda one: one.__code__.co_firstlineno):
        by_name[one.__code__.co_qualname].setdefault(one.__code__, []).append(one)
    own, now = by_name[fault.function], new[fault.function]
    if not own or [len(code.co_freevars) for code in own] != [len(code.co_freevars) for code in now]:
        return False  # without super(), a function has one variable less, and Python would refuse its code
    for old, code in zip(own.values(), now, strict=True):
        for one in old:
            one.__code__ = code
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


class Copy:
    """A copy of the source in which faults are put, one at a time."""

    def __init__(self, folder: Path):
        self.folder, self.source, self.times, self.fault = folder, folder / "src", 0, None
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        (self.source / "sitecustomize.py").write_text(HOOK, "utf-8")
        for name in LIBRARIES:  # here, since each new process then has them already
            importlib.import_module(name)
        for plugin in entry_points(group="pytest11"):
            plugin.load()
        sys.path.insert(0, str(self.source))
        for path in sorted((self.source / "heed").rglob("[!_]*.py")):
            importlib.import_module(".".join(path.relative_to(self.source).with_suffix("").parts))
        gc.collect()
        gc.freeze()

    def write(self, path: Path, text: str) -> None:
        own = self.source / path.relative_to(SOURCE)
        own.write_text(text, "utf-8")
        self.times += 1  # no two versions have one time: a compiled file is known by the size and second of its source
        os.utime(own, (1_000_000_000 + self.times,) * 2)

    @contextmanager
    def faulty(self, path: Path, fault: Mutant) -> Iterator[None]:
        """A fault in a file, for a while."""
        self.write(path, fault.source)
        self.fault = (self.source / path.relative_to(SOURCE), fault)
        try:
            yield
        finally:
            self.fault = None
            self.write(path, path.read_text("utf-8"))

    def record(self, test: Path) -> Reached:
        """Which lines the tests of a file run, those that pass."""
        stream = self.folder / "reach"
        stream.write_bytes(b"")

        def plugin() -> Recorder:
            os.environ |= {STREAM: str(stream), TRACED: f"{self.source}/"}
            return Recorder(os.environ[STREAM], os.environ[TRACED])

        self._run(test, plugin, RECORDING, 4 * RECORDING)
        return read(stream)

    def failed(self, test: Path, names: Sequence[str], seconds: float) -> str | None:
        """The first of these tests that fails, or else why they could not end; nothing if all pass."""
        cpu, wall = (times * seconds + more for times, more in (MORE_CPU, MORE_WALL))
        return self._failed(test, names, (), cpu, wall)

    def failed_soon(self, test: Path, about: Sequence[str], seconds: float) -> str | None:
        """The first test of a file that fails within that time, those first that name something."""
        found = self._failed(test, (), about, seconds, WALL_PER_CPU * seconds)
        return None if found and found.endswith(TOO_LONG) else found

    def _failed(self, test: Path, names: Sequence[str], about: Sequence[str], cpu: float, wall: float) -> str | None:
        answer = self.folder / "failed"
        answer.unlink(missing_ok=True)
        code = self._run(test, lambda: Selection(names, about, answer), cpu, wall)
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return None
        if answer.exists():
            return answer.read_text("utf-8")
        return test.relative_to(ROOT).as_posix() + (TOO_LONG if code < 0 else " (as a whole)")

    def _run(self, test: Path, plugin: Callable[[], object], cpu: float, wall: float) -> int:
        """The exit code of pytest, in a process that has the copy for Heed."""

        def work() -> int:
            os.chdir(ROOT)
            sys.path.insert(0, str(ROOT))
            jaxtyping.install_import_hook = lambda *_: None  # that would take longer than most tests
            if self.fault is not None and not put(*self.fault):  # then all of Heed is loaded anew
                for name in [name for name in sys.modules if name.split(".")[0] == "heed"]:
                    del sys.modules[name]
            arguments = ["-q", "-m", "not long", "-p", "no:cacheprovider", *LOADED, str(test)]
            return int(pytest.main(arguments, plugins=[plugin()]))

        return self.in_a_fork(work, cpu, wall)

    def in_a_fork(self, work: Callable[[], int], cpu: float, wall: float) -> int:
        """The exit code of a new process with a folder for its files and limits of time."""
        scratch = tempfile.mkdtemp(dir=self.folder)
        if (child := os.fork()) == 0:
            self._child(work, max(1, int(cpu)), scratch)
        ends = time.monotonic() + wall
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < ends:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with whatever it has started
        if not ended[0]:
            ended = os.waitpid(child, 0)
        shutil.rmtree(scratch, ignore_errors=True)
        return os.waitstatus_to_exitcode(ended[1])

    def _child(self, work: Callable[[], int], cpu: int, scratch: str) -> None:
        try:
            os.setsid()
            most = resource.getrlimit(resource.RLIMIT_CPU)[1]  # of the process that this is a fork of
            until = int(time.process_time()) + cpu
            until = until if most == resource.RLIM_INFINITY else min(until, most)
            resource.setrlimit(resource.RLIMIT_CPU, (until, until))
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            os.environ |= {"PYTHONPATH": str(self.source), "TMPDIR": scratch, "HYPOTHESIS_STORAGE_DIRECTORY": scratch}
            tempfile.tempdir = scratch
            os._exit(work())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(99)
