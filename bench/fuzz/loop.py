"""The loop: cases in child processes with limits, the branches that they reach, and what went wrong, kept on disk.

A child runs a batch of cases. One that is killed, or has to be, costs the case that it was at; the next child goes on after it.
"""

import importlib
import json
import mmap
import os
import pickle
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.fuzz import branches, formats
from bench.fuzz.cases import Case, Place, Reader, load, load_all, save
from bench.fuzz.judging import Failure, OutOfTime, judge

BATCH = 2_000
SECONDS = 5.0  # of CPU time a case: on a busy machine the clock says little
SILENCE = 120.0  # seconds on the clock without a new case, after which a child is killed
MEMORY = 1 << 30  # bytes that a case may allocate
POOL = 2_000  # cases that are mutated further
SHARED = "/dev/shm" if Path("/dev/shm").is_dir() else None  # cases are written there
BOARD = 1 << 22  # bytes for the case that a child is at


def attempt(read: Callable[[Path], Any], folder: Path) -> Failure | None:
    """Read what is in the folder; what is wrong with how that ended, if anything."""
    try:
        read(folder)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return judge(error)
    return None


def _out_of_time(*_) -> None:
    raise OutOfTime


def _timed(read: Callable[[Path], Any], folder: Path) -> Failure | None:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return attempt(read, folder)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Fuzz:
    """The fuzzing of one reader, with what it found in a folder: `pool` of cases, `failures`, state.json to go on from."""

    def __init__(self, name: str, reader: Reader, seed: int, folder: Path):
        self.name, self.reader, self.seed, self.folder = name, reader, seed, folder
        self.state = {"seed": seed, "cases": 0, "seconds": 0.0, "branches": 0}
        with suppress(OSError, ValueError):
            found = json.loads((folder / "state.json").read_text())
            if found["seed"] == seed:
                self.state = found
        if not self.state["cases"]:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.slow, self.large = 0.0, 0  # seconds and bytes of cases that are mutated further
        self.counts: Counter[str] | None = None  # of failures, in a child
        self.board = mmap.mmap(-1, BOARD)
        self.seen = mmap.mmap(-1, branches.MOST)

    def run(self, cases: int, seconds: float = float("inf")) -> None:
        """Go on until there are so many cases, or the time is up."""
        start, before = time.monotonic(), self.state["seconds"]
        if not (self.folder / "seeds").is_dir() and self._wait(self._fork(self._make_seeds)):
            raise SystemExit(f"the valid files for {self.name} could not be made: the error is above")
        self._wait(self._fork(self._read_seeds))
        if self.state["cases"]:
            self._wait(self._fork(self._recall))
            self.state["branches"] = branches.count(branches.as_number(self.seen[:]))
        while self.state["cases"] < cases and time.monotonic() - start < seconds:
            first, size = self.state["cases"], min(BATCH, cases - self.state["cases"])
            self.board[:8] = struct.pack("<Q", first)
            ending = self._wait(self._fork(lambda first=first, size=size: self._batch(first, size)))
            self.state["cases"] = first + size
            if ending:
                self.state["cases"] = self._lost(ending)
            self.state["seconds"] = round(before + time.monotonic() - start, 1)
            self.state["branches"] = branches.count(branches.as_number(self.seen[:]))
            (self.folder / "state.json").write_text(json.dumps(self.state))

    def failures(self) -> Counter[str]:
        """How often each kind of failure occurred."""
        path = self.folder / "failures.jsonl"
        return Counter(map(json.loads, path.read_text("utf-8").splitlines())) if path.is_file() else Counter()

    def _fork(self, work: Callable[[], None]) -> int:
        self._import()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of libraries do not matter to a child
            child = os.fork()
        if child != 0:
            return child
        code = 1
        try:
            work()
            (self.folder / "modules.txt").write_text("\n".join(sys.modules), "utf-8")
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _import(self) -> None:
        """Import what the last child needed, in its order, so that branches keep their numbers: else each child would mark it anew."""
        with suppress(OSError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in (self.folder / "modules.txt").read_text("utf-8").split("\n"):
                if name not in sys.modules:
                    with suppress(Exception):  # some names are made by libraries and cannot be imported
                        importlib.import_module(name)

    def _wait(self, child: int) -> str:
        """Wait for a child; how it ended, empty if well."""
        at, since = self.board[:8], time.monotonic()
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                killed = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
                return killed if code else ""
            if self.board[:8] != at:
                at, since = self.board[:8], time.monotonic()
            if time.monotonic() - since > SILENCE:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return f"no answer for {SILENCE:.0f} s"
            time.sleep(0.05)

    def _lost(self, ending: str) -> int:
        """Keep the case that a child ended at; the number of the next."""
        number, size = struct.unpack("<QQ", self.board[:16])
        case = pickle.loads(self.board[16 : 16 + size]) if size else {}
        said = (self.folder / "output.txt").read_bytes()[-4000:].decode("utf-8", "replace")
        self._keep(Failure(f"process {ending}", said), case)
        self.counts = None  # the next child counts too
        return number + 1

    def _keep(self, failure: Failure, case: Case) -> None:
        """Write a failure down; of each kind the first few cases."""
        before = self.counts if self.counts is not None else self.failures()
        with open(self.folder / "failures.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(failure.kind) + "\n")
        if (times := before[failure.kind]) < 3:
            number = list(dict.fromkeys([*before, failure.kind])).index(failure.kind)
            folder = self.folder / "failures" / f"{number:03d}-{times}"
            save(case, folder / "case")
            (folder / "error.txt").write_text(f"{failure.kind}\n\n{failure.details}", "utf-8", "replace")
        self.counts = before + Counter([failure.kind])

    def _make_seeds(self) -> None:
        unfinished = self.folder / "unfinished"
        for number, case in enumerate(self.reader.seeds()):
            save(case, unfinished / f"{number:03d}")
        unfinished.rename(self.folder / "seeds")

    def _read_seeds(self) -> None:
        """Only for what they import."""
        self._quiet()
        with tempfile.TemporaryDirectory(dir=SHARED) as folder:
            place = Place(Path(folder) / "case")
            for case in load_all(self.folder / "seeds"):
                place.put(case)
                _timed(self.reader.read, place.folder)

    def _recall(self) -> None:
        """Find the branches again that the kept cases reach: their numbers change with the code."""
        self._quiet()
        branches.clear()
        with tempfile.TemporaryDirectory(dir=SHARED) as folder:
            place = Place(Path(folder) / "case")
            for case in (*load_all(self.folder / "seeds"), *load_all(self.folder / "pool")):
                place.put(case)
                attempt(self.reader.read, place.folder)
        self.seen[:] = bytes(branches.reached)

    def _batch(self, first: int, size: int) -> None:
        self._quiet()
        seeds = load_all(self.folder / "seeds")
        pool = [*seeds, *load_all(self.folder / "pool")[-POOL:]]
        rng = random.Random(f"{self.name} {self.seed} {first}")
        words = [word.encode("utf-8", "replace") for word in (*self.reader.words, *sorted(branches.words))]
        words = [*rng.sample(words, min(200, len(words))), *map(str.encode, self.reader.words)] or words
        with tempfile.TemporaryDirectory(dir=SHARED) as folder:
            place = Place(Path(folder) / "case")
            self._warm_up(max(seeds, key=lambda own: sum(map(len, own.values()))), place)
            for number in range(first, first + size):
                recent = rng.random() < 0.5
                chosen = rng.choice(pool[-max(1, len(pool) // 5) :] if recent else pool)
                case = pool[number] if number < len(pool) and not first else formats.mutate(chosen, rng, words, pool)
                self._one(number, case, place, pool)

    def _one(self, number: int, case: Case, place: Place, pool: list[Case]) -> None:
        packed = pickle.dumps(dict(case))[: BOARD - 16]
        self.board[: 16 + len(packed)] = struct.pack("<QQ", number, len(packed)) + packed
        try:
            place.put(case)
        except (OSError, ValueError):  # a name that no file can have
            return
        branches.clear()
        began = time.process_time()
        failure = _timed(self.reader.read, place.folder)
        if failure is not None:
            self._keep(failure, case)
            return
        new = branches.as_number(branches.reached) & ~branches.as_number(self.seen[:])
        if new:
            together = branches.as_number(self.seen[:]) | new
            self.seen[:] = together.to_bytes(branches.MOST, "little")
            if time.process_time() - began < self.slow and sum(map(len, case.values())) < self.large:
                pool.append(case)
                save(case, self.folder / "pool" / f"{number:09d}")

    def _quiet(self) -> None:
        """What libraries print goes into a file, and a warning is an error."""
        out = os.open(self.folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        warnings.simplefilter("error")
        signal.signal(signal.SIGPROF, _out_of_time)

    def _warm_up(self, case: Case, place: Place) -> None:
        """Import and build what the first reading needs, and only then limit the memory; see how slow and large cases are.

        What is much slower or larger is not mutated further: otherwise all cases would soon be so.
        """
        for _ in range(2):
            place.put(case)
            began = time.process_time()
            attempt(self.reader.read, place.folder)
        self.slow, self.large = 0.001 + 2 * (time.process_time() - began), 512 + 2 * sum(map(len, case.values()))
        with suppress(OSError, ValueError):
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def quick(reader: Reader, cases: int, seed: int, folder: Path) -> list[tuple[Case, Failure]]:
    """Some cases in this process, without limits and without a look at branches: what went wrong with which."""
    pool, rng, place, found = list(reader.seeds()), random.Random(seed), Place(folder), []
    words = [word.encode() for word in reader.words]
    for number in range(cases):
        case = pool[number] if number < len(pool) else formats.mutate(rng.choice(pool), rng, words, pool)
        place.put(case)
        if number < len(pool) and not reader.refuses:
            reader.read(folder)  # no error at all: damages to what cannot be read test little
        elif (failure := attempt(reader.read, folder)) is not None:
            found.append((case, failure))
    return found


def replay(reader: Reader, failures: Path) -> list[tuple[Path, Failure]]:
    """Read the kept cases of failures once more; those that still fail."""
    found = []
    for folder in sorted(failures.iterdir()) if failures.is_dir() else ():
        with tempfile.TemporaryDirectory() as place:
            Place(Path(place) / "case").put(load(folder / "case"))
            if (failure := attempt(reader.read, Path(place) / "case")) is not None:
                found.append((folder, failure))
    return found


def names(chosen: Sequence[str], known: Sequence[str]) -> list[str]:
    """The readers that were asked for; without any, all."""
    for name in chosen:
        if name not in known:
            raise SystemExit(f"there is no reader {name}; there are {', '.join(known)}")
    return list(chosen or known)
