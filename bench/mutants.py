"""Would the tests notice? Faults are put into src/heed one at a time, and the tests that run the place are run: `make check-mutants`.

The faults are drawn by a seed, outside of lab/ and page/, and of what only a GPU can run where there is none. They are written
into a copy of the source. A fault counts as killed when a test fails, or uses far too much time, that passes without the fault.
Results are kept in runs/mutants: a fault that was tried is not tried again, so that a sample can be done in pieces.
"""

import argparse
import hashlib
import os
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from bench.faulty_copy import Copy
from bench.first_look import Look, look_at
from bench.mutations import Mutant, mutant
from bench.near_tests import ROOT, SOURCE, TESTS, nearest
from bench.reach import Kept, Reached
from bench.sample import drawn, keep
from bench.verdicts import Looked, Results, Verdict

LEFT_OUT = ("lab", "page")
ON_A_GPU = ("kernels", "cuda", "accelerated", "cuda_text.py")  # Triton and CUDA graphs
BAR = 0.95
EQUIVALENT = Path(__file__).parent / "equivalent.toml"
RESULTS = ROOT / "runs" / "mutants"
AS_THEY_ARE = 3  # the nearest test files that are tried without a record
LOOKED_AT = 2  # times as many test files are looked at as may be run: some do not reach the fault


class Fault(NamedTuple):
    """The number of a fault in a file."""

    path: Path
    number: int

    def mutant(self) -> Mutant:
        return _mutant(self.path, self.number)

    def nearest(self, tests: Sequence[Path], most: int) -> list[Path]:
        return nearest(self.path, tests, most, self.mutant().inside)

    def key(self) -> str:
        """The same for as long as the file and the rules do not change, whatever else is drawn."""
        name, text = self.path.relative_to(ROOT).as_posix(), self.path.read_text("utf-8")
        return hashlib.sha256(f"{name}\n{self.number}\n{text}".encode()).hexdigest()[:16]

    def told(self) -> str:
        own = self.mutant()
        return f"{self.path.relative_to(ROOT)}:{own.line}: {own.before}  ->  {own.after}"


@cache
def _mutant(path: Path, number: int) -> Mutant:
    return mutant(path.read_text("utf-8"), number)


def draw(paths: Iterable[Path], size: int, seed: int) -> list[Fault]:
    return [Fault(*one) for one in drawn(paths, size, seed)]


def sources(gpu: bool) -> list[Path]:
    left_out = LEFT_OUT if gpu else LEFT_OUT + ON_A_GPU
    return [path for path in (SOURCE / "heed").rglob("*.py") if not set(left_out) & set(path.relative_to(SOURCE).parts)]


def equivalent(fault: Fault, listed: Iterable[dict]) -> str | None:
    """Why a fault changes nothing, if that is in the list."""
    if all(fault.path != ROOT / one["path"] for one in listed):
        return None
    own, text = fault.mutant(), fault.path.read_text("utf-8").splitlines()
    described = {
        "path": fault.path.relative_to(ROOT).as_posix(),
        "line": text[own.line - 1].strip(),
        "change": f"{own.before} -> {own.after}",
    }
    return next((one["reason"] for one in listed if described.items() <= one.items()), None)


class Judge:
    """Runs the tests for one fault after another."""

    def __init__(self, copy: Copy, kept: Kept, soon: float):
        self.copy, self.kept, self.soon, self.known = copy, kept, soon, {}

    def reached(self, test: Path) -> Reached:
        if self.recorded(test) is None:
            print(f"… recording what {test.relative_to(ROOT)} runs", flush=True)
            self.known[test] = self.copy.record(test)
            self.kept.write(test, self.known[test])
        return self.known[test]

    def verdict(self, fault: Fault, tests: Sequence[Path], files: int, seconds: float) -> Verdict:
        """Tries the nearest test files that run the place, and of these the quickest tests."""
        own, tried, left = fault.mutant(), 0, seconds
        if killer := self._killed_soon(fault, tests):
            return Verdict(fault.key(), fault.told(), killer, 1)
        file = fault.path.relative_to(SOURCE).as_posix()
        for test in tests:
            names, left = self._within(self.reached(test), file, own.reach, left)
            if not names:
                continue
            tried += 1
            with self.copy.faulty(fault.path, own):
                killer = self.copy.failed(test, names, self._limit(test, names))
            if killer and self._is_sound(test, killer, names):
                return Verdict(fault.key(), fault.told(), killer, tried)
            if tried == files or left <= 0:
                break
        return Verdict(fault.key(), fault.told(), None, tried)

    def _killed_soon(self, fault: Fault, tests: Sequence[Path]) -> str | None:
        """The nearest test files are tried first as they are: what they run may take longer to record."""
        own = fault.mutant()
        about = [own.inside[-1], fault.path.stem] if own.inside else [fault.path.stem]
        for test in [test for test in tests[:AS_THEY_ARE] if self.soon and self.recorded(test) is None]:
            with self.copy.faulty(fault.path, own):
                killer = self.copy.failed_soon(test, about, self.soon)
            if killer and self.copy.failed(test, [killer] if "::" in killer else [], self.soon) is None:
                return killer
        return None

    def recorded(self, test: Path) -> Reached | None:
        if test not in self.known and (found := self.kept.read(test)) is not None:
            self.known[test] = found
        return self.known.get(test)

    @staticmethod
    def _within(reached: Reached, file: str, lines: range | None, left: float) -> tuple[list[str], float]:
        """The tests of a file to run, and how many seconds of tests are left for other files."""
        names = []
        for name in reached.tests(file, lines):
            if left <= 0:
                break
            names.append(name)
            left -= reached.seconds[name]
        return names, left

    def _limit(self, test: Path, names: Sequence[str]) -> float:
        return sum(self.known[test].seconds[name] for name in names)

    def _is_sound(self, test: Path, killer: str, names: Sequence[str]) -> bool:
        """Whether the test passes without the fault: it did when it was recorded, or else all that ran do now."""
        if killer in self.known[test].seconds:
            return True
        return self.copy.failed(test, names, self._limit(test, names)) is None


def glance(faults: Sequence[Fault], soon: float, minutes: float) -> None:
    """Looks at faults in functions with the nearest tests, all in one process; keeps what was noticed. Another look at
    a fault is taken only when its tests have changed, or may take longer.
    """
    tests, results, looked = sorted(TESTS.rglob("test_*.py")), Results(RESULTS), Looked(RESULTS)
    some = [(fault, fault.nearest(tests, AS_THEY_ARE)) for fault in faults if fault.mutant().function]
    some = [(fault, own) for fault, own in some if not looked.holds(fault.key(), own, soon)]
    if not some:
        return

    def tell(number: int, killer: str | None) -> None:
        fault, own = some[number]
        looked.add(fault.key(), own, soon)
        if killer:
            results.add(Verdict(fault.key(), fault.told(), killer, 1))
        print(f"{f'noticed by {killer}' if killer else 'another look'}: {fault.told()}", flush=True)

    with tempfile.TemporaryDirectory(prefix="heed-mutants-") as folder:
        looks = [Look(fault.path, fault.mutant(), own) for fault, own in some]
        look_at(Copy(Path(folder)), looks, soon, minutes, tell)


def run(faults: Sequence[Fault], files: int, soon: float, seconds: float, minutes: float) -> None:
    """Tries faults for so many minutes: a first look at all of them, then more tests for those that are left."""
    tests, ends, results = sorted(TESTS.rglob("test_*.py")), time.monotonic() + 60 * minutes, Results(RESULTS)
    if soon:  # in a process of its own, since it loads all of these tests
        look = get_context("fork").Process(target=glance, args=(faults, soon, minutes))
        look.start()
        look.join()
    known, looked = results.known, Looked(RESULTS)
    left = [fault for fault in faults if fault.key() not in known or not known[fault.key()].killer]
    if not files or not left:
        return
    with tempfile.TemporaryDirectory(prefix="heed-mutants-") as folder:
        judge = Judge(Copy(Path(folder)), Kept(RESULTS / "reach", SOURCE), soon)
        for fault in left:
            if time.monotonic() > ends:
                break
            judge.soon = 0 if looked.holds(fault.key(), fault.nearest(tests, AS_THEY_ARE), soon) else soon
            verdict = judge.verdict(fault, fault.nearest(tests, LOOKED_AT * files), files, seconds)
            results.add(verdict)
            seen = f"noticed by {verdict.killer}" if verdict.killer else f"NOT NOTICED ({verdict.files} files)"
            print(f"{seen}: {verdict.told}", flush=True)


def report(faults: Sequence[Fault], excused: dict[Fault, str]) -> float | None:
    """Says how many faults were noticed; the share, of those tried that can be."""
    known = Results(RESULTS).known
    tried = [known[fault.key()] for fault in faults if fault not in excused and fault.key() in known]
    survivors = sorted(verdict.told for verdict in tried if verdict.killer is None)
    print(f"\n{len(faults)} faults drawn, {len(excused)} of them listed as changing nothing:")
    print("\n".join(sorted(f"  {fault.told()}: {why}" for fault, why in excused.items())) or "  none")
    if not tried:
        return None
    share = 1 - len(survivors) / len(tried)
    print(f"{len(tried) - len(survivors)} of {len(tried)} tried were noticed, {share:.1%}; the bar is {BAR:.0%}.")
    if left := len(faults) - len(excused) - len(tried):
        print(f"{left} have not been tried to the end, and the share does not count them: run the same command again.")
    print("Not noticed:\n" + ("\n".join(f"  {one}" for one in survivors) or "  none"))
    return share


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=200, help="how many faults are drawn")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--minutes", type=float, default=60, help="no fault is begun after this time")
    parser.add_argument(
        "--files",
        type=int,
        default=4,
        help="test files of which the tests that run the place are run, the nearest first; 0: a first look",
    )
    parser.add_argument(
        "--soon",
        type=float,
        default=4,
        help="CPU seconds of a first look at a fault with each of the nearest test files; 0: none",
    )
    parser.add_argument("--seconds", type=float, default=40, help="tests that are run for each take this long at most")
    parser.add_argument("--workers", type=int, default=2, help="processes at once; each needs about a gigabyte")
    parser.add_argument("--only", default="", help="only files whose path has this in it, as in training/")
    parser.add_argument("--keep", action="store_true", help="keep the sample: the same faults are drawn from then on")
    parser.add_argument("--again", action="store_true", help="try those again that were not noticed")
    given = parser.parse_args()
    if not hasattr(os, "fork"):
        raise SystemExit("check-mutants needs fork, which this system does not have: run it on Linux or macOS")
    import torch  # here, since each new process then has it already

    torch.set_num_threads(1)
    paths = [path for path in sources(torch.cuda.is_available()) if given.only in path.as_posix()]
    faults, listed = draw(paths, given.size, given.seed), tomllib.loads(EQUIVALENT.read_text("utf-8"))["fault"]
    if given.keep:
        print(f"the sample is kept in {keep(faults, given.seed).relative_to(ROOT)}")
        return 0
    excused = {fault: reason for fault in faults if (reason := equivalent(fault, listed))}
    known = Results(RESULTS).known
    done = {key for key, verdict in known.items() if verdict.killer or not given.again}
    waiting = [fault for fault in faults if fault not in excused and fault.key() not in done]
    shares = [waiting[number :: given.workers] for number in range(given.workers)]
    most = given.files, given.soon, given.seconds, given.minutes
    if given.workers == 1:
        run(waiting, *most)
    else:
        with ProcessPoolExecutor(given.workers, mp_context=get_context("fork")) as pool:
            list(pool.map(run, shares, *map(repeat, most)))
    share = report(faults, excused)
    if share is None:
        raise SystemExit(f"no faults were tried: no file has {given.only!r} in its path, or the time was too short")
    return int(share < BAR or not given.files)  # a first look keeps only what was noticed


if __name__ == "__main__":
    sys.exit(main())
