"""Would the tests notice? Faults are put into src/heed one at a time, and the tests nearest to each are run: `make check-mutants`.

The faults are drawn by a seed, outside of lab/ and page/, and of what only a GPU can run where there is none. They are written
into a copy of the source. A fault counts as killed when a test fails, or uses far too much time, that passes without the fault.
"""

import argparse
import ast
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from bench.mutations import Mutant, count, mutant

ROOT = Path(__file__).parent.parent
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
LEFT_OUT = ("lab", "page")
ON_A_GPU = ("kernels", "cuda", "accelerated", "cuda_text.py")  # Triton and CUDA graphs
BAR = 0.95
CPU_SECONDS, WALL_SECONDS = 150, 900  # of one test file: a fault may make it endless
SAME_FOLDER = 3  # how near a test file is that is in the folder of the module, but imports nothing of it


class Fault(NamedTuple):
    """The number of a fault in a file."""

    path: Path
    number: int

    def mutant(self) -> Mutant:
        return mutant(self.path.read_text("utf-8"), self.number)


def draw(paths: Iterable[Path], size: int, seed: int) -> list[Fault]:
    """Some of all faults, drawn evenly."""
    every = [Fault(path, number) for path in sorted(paths) for number in range(count(path.read_text("utf-8")))]
    return random.Random(seed).sample(every, min(size, len(every)))


def sources(gpu: bool) -> list[Path]:
    left_out = LEFT_OUT if gpu else LEFT_OUT + ON_A_GPU
    return [path for path in (SOURCE / "heed").rglob("*.py") if not set(left_out) & set(path.relative_to(SOURCE).parts)]


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


class Copy:
    """A copy of the source in which faults are put, one at a time."""

    def __init__(self, folder: Path):
        self.source, self.times = folder / "src", 0
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, path: Path, text: str) -> None:
        own = self.source / path.relative_to(SOURCE)
        own.write_text(text, "utf-8")
        self.times += (
            1  # no two versions have one time: a compiled file is known by the size and the second of its source
        )
        os.utime(own, (1_000_000_000 + self.times,) * 2)

    def passes(self, test: Path, folder: Path) -> bool:
        """Whether a test file passes, in a process that has the copy for Heed."""
        if (child := os.fork()) == 0:
            self._test(test, folder)
        ends = time.monotonic() + WALL_SECONDS
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < ends:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with whatever it has started
        if not ended[0]:
            ended = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(ended[1]) == 0

    def _test(self, test: Path, folder: Path) -> None:
        """In the new process: run the tests and end."""
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            os.chdir(ROOT)
            os.environ |= {"PYTHONPATH": str(self.source), "TMPDIR": str(folder)}
            tempfile.tempdir = str(folder)
            sys.path[:0] = [str(self.source), str(ROOT)]
            import pytest

            os._exit(int(pytest.main(["-q", "-x", "-m", "not long", "-p", "no:cacheprovider", str(test)])))
        finally:
            os._exit(99)


class Judge:
    """Runs the tests for one fault after another."""

    def __init__(self, copy: Copy, folder: Path):
        self.copy, self.folder, self.sound = copy, folder, {}

    def killer(self, fault: Fault, tests: Sequence[Path]) -> Path | None:
        """The first test file that fails with the fault and passes without it."""
        for test in tests:
            if self.sound.get(test) is False:
                continue
            self.copy.write(fault.path, fault.mutant().source)
            try:
                failed = not self.copy.passes(test, self.folder)
            finally:
                self.copy.write(fault.path, fault.path.read_text("utf-8"))
            if not failed:
                self.sound[test] = True
            elif self._is_sound(test):
                return test
        return None

    def _is_sound(self, test: Path) -> bool:
        if test not in self.sound:
            self.sound[test] = self.copy.passes(test, self.folder)
            if not self.sound[test]:
                print(f"{test.relative_to(ROOT)} fails without a fault, and is left out.", flush=True)
        return self.sound[test]


def told(fault: Fault) -> str:
    own = fault.mutant()
    return f"{fault.path.relative_to(ROOT)}:{own.line}: {own.before}  ->  {own.after}"


def run(faults: Sequence[Fault], files: int, minutes: float) -> tuple[int, list[str]]:
    """How many faults were tried in that time, and those that no test noticed."""
    tests, ends, survivors, tried = sorted(TESTS.rglob("test_*.py")), time.monotonic() + 60 * minutes, [], 0
    with tempfile.TemporaryDirectory(prefix="heed-mutants-") as folder:
        judge = Judge(Copy(Path(folder)), Path(folder))
        for fault in faults:
            if time.monotonic() > ends:
                break
            killer = judge.killer(fault, nearest(fault.path, tests, files))
            tried += 1
            print(f"{'noticed by ' + killer.name if killer else 'NOT NOTICED'}: {told(fault)}", flush=True)
            if killer is None:
                survivors.append(told(fault))
    return tried, survivors


def run_at_once(faults: Sequence[Fault], files: int, minutes: float, workers: int) -> tuple[int, list[str]]:
    """The same, shared among processes, each with its own copy."""
    shares = [faults[number::workers] for number in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        found = list(pool.map(run, shares, repeat(files), repeat(minutes)))
    return sum(tried for tried, _ in found), sorted(one for _, survivors in found for one in survivors)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=200, help="how many faults are drawn")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--minutes", type=float, default=60, help="no fault is begun after this time")
    parser.add_argument("--files", type=int, default=6, help="test files that are tried for each, the nearest first")
    parser.add_argument("--workers", type=int, default=2, help="processes at once; each needs about a gigabyte")
    parser.add_argument("--only", default="", help="only files whose path has this in it, as in training/")
    given = parser.parse_args()
    if not hasattr(os, "fork"):
        raise SystemExit("check-mutants needs fork, which this system does not have: run it on Linux or macOS")
    import torch  # here, since each new process then has it already

    torch.set_num_threads(1)
    paths = [path for path in sources(torch.cuda.is_available()) if given.only in path.as_posix()]
    tried, survivors = run_at_once(draw(paths, given.size, given.seed), given.files, given.minutes, given.workers)
    if not tried:
        raise SystemExit(
            f"no faults were tried: no file of src/heed has {given.only!r} in its path, or the time was too short"
        )
    share = 1 - len(survivors) / tried
    print(f"\n{tried - len(survivors)} of {tried} faults were noticed, {share:.1%}; the bar is {BAR:.0%}. Not noticed:")
    print("\n".join(survivors) or "none")
    return int(share < BAR)


if __name__ == "__main__":
    sys.exit(main())
