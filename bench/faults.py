"""Does Heed notice? Files that it wrote are damaged, and its writes fail or are its last: `make check-faults`.

After each fault the next command runs. It must give the results that it gives without the fault, or one sentence and an exit
code that is not 0. Children are forked, so that thousands of cases fit into minutes. A run that was interrupted goes on where
it was if it is started again with the same options.
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench.fault_children import HANGS, KILLED, Answer, Stop, call, copy, warm
from bench.fault_damage import Damage, damages
from bench.fault_records import Found, begin, end, read, write_down
from bench.fault_scene import Probe, Scene
from bench.fault_scenes import TRANSLATOR, scenes, trainings, write_data

PASSES = 8  # over all scenes, each with its part of the cases


class State(NamedTuple):
    """What commands have left: their answers, and the hashes of their files."""

    answer: Answer
    results: dict[str, str]


class Work:
    """A folder in which one case after the other is tried, always at the same path."""

    def __init__(self, root: Path):
        self.root, self.folder = root, root / "work"
        self.right: dict[str, dict[str, State]] = {}  # of scenes and probes without a fault
        self.writes: dict[str, int] = {}  # of each training
        self.names: dict[str, set[str]] = {}  # in the cache after each training

    def begin(self, scene: str, make: Sequence[str], name: str, kill: str = "") -> Path:
        """Make a scene once; it is kept under its name and `name`."""
        kept = self.root / f"{scene} {name}"
        if kept.is_dir():
            return kept
        shutil.rmtree(self.folder, ignore_errors=True)
        write_data(self.folder / "data")
        for number, command in enumerate(make, 1):
            stop = Stop(3, "kill", kill) if kill and number == len(make) else None
            answer, _ = call(command.split(), self.folder, stop)
            if answer.code != (KILLED if stop else 0):
                raise SystemExit(f"{scene}: `heed {command}` ended with {answer.code}: {answer.err or answer.out}")
        shutil.copytree(self.folder, kept)
        return kept

    def run(self, commands: Sequence[str], results: Sequence[str]) -> State:
        for command in commands:
            answer, _ = call(command.split(), self.folder)
            if answer.code:
                break
        return State(answer, {name: digest(self.folder / name) for name in results})


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "none"


def names(folder: Path) -> set[str]:
    """Everything in the cache, and unfinished files anywhere."""
    found = (*(folder / "cache").rglob("*"), *folder.rglob("*.part"))
    return {path.relative_to(folder).as_posix() for path in found}


def cases(scene: Scene, kept: Path, others: Path | None) -> Iterator[tuple[Probe, str, Damage]]:
    """Every probe with every damage of every file that it may meet."""
    for probe in scene.probes:
        paths = sorted({path for pattern in probe.files for path in kept.glob(pattern) if path.is_file()})
        for path in paths:
            name = path.relative_to(kept).as_posix()
            if name in scene.left_out:
                continue
            content = path.read_bytes()
            other, seed = counterpart(name, content, others), f"{probe.name} {name}"
            for damage in damages(path, content, other, seed, bool(probe.before)):
                yield probe, name, damage


def counterpart(name: str, content: bytes, others: Path | None) -> bytes | None:
    """The same file of the other run, if it is another. In the cache, folders are named by their content."""
    if others is None:
        return None
    folder, _, rest = name.partition("/")
    kind = rest.split("-")[0]
    found = [others / name] if folder != "cache" else sorted(others.glob(f"cache/{kind}-*/{Path(name).name}"))
    if folder == "cache" and "/" not in rest:
        found = sorted(others.glob(f"cache/{kind}-*{Path(name).suffix}"))
    contents = (path.read_bytes() for path in found if path.is_file())
    return next((own for own in contents if own != content), None)


def judge(found: State, right: State) -> tuple[str, bool]:
    """The name of an outcome, and whether it is allowed."""
    answer, says = found.answer, found.answer.err.strip()
    if answer.code == 0:
        same = found.results == right.results and answer.out == right.answer.out
        if not same:
            said = says != right.answer.err.strip()
            return ("other results, with a sentence" if said else "OTHER RESULTS, and nothing said"), False
        return ("the same, with a sentence" if says != right.answer.err.strip() else "the same"), True
    lines = [line for line in says.splitlines() if not line.startswith("heed: ")]
    if answer.code < 0:
        return ("A HANG" if answer.code in HANGS else f"A SIGNAL, {-answer.code}"), False
    if "Traceback" in says or answer.code == 99:
        return "A TRACEBACK", False
    refusal = [line for line in says.splitlines() if line.startswith("heed: ")]
    if len(refusal) != 1 or any("Exception ignored" in line for line in lines):
        return "NOT ONE SENTENCE", False
    return "one sentence, and nothing done", True


def damaged(scene: Scene, work: Work, share: tuple[int, int], given: argparse.Namespace, done: int) -> Iterator[Found]:
    """All damages of a scene but the first that are done."""
    kept = work.begin(scene.name, scene.make, "kept", scene.kill)
    others = work.begin(scene.name, scene.other, "others", scene.kill) if scene.other else None
    right = work.right.setdefault(scene.name, {})
    mine = islice(cases(scene, kept, others), share[0], None, share[1] * given.every)
    chosen = (own for own in mine if given.only in f"{scene.name}: {own[0].name}: {own[1]}")
    for probe, name, damage in islice(chosen, done, None):
        if probe.name not in right:
            copy(kept, work.folder)
            right[probe.name] = work.run((*probe.before, *probe.commands), probe.results)
            if right[probe.name].answer.code:
                raise SystemExit(f"{scene.name}: {probe.name} fails without a fault: {right[probe.name].answer}")
        copy(kept, work.folder)
        spoil(work, probe, name, damage)
        found = work.run(probe.commands, probe.results)
        outcome, good = judge(found, right[probe.name])
        yield Found(scene.name, f"{probe.name}: {name} {damage.name}", outcome, found.answer.err.strip()[-900:], good)


def spoil(work: Work, probe: Probe, name: str, damage: Damage) -> None:
    """Damage a file. If commands run before, they must succeed, and the file keeps its inode and the time of its last change."""
    path = work.folder / name
    if probe.before and (answer := work.run(probe.before, ()).answer).code:
        raise SystemExit(f"{probe.name} fails without a fault: {answer}")
    times = path.stat()
    damage.apply(path, path.read_bytes())
    if probe.before and path.exists():
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def stopped(name: str, work: Work, share: tuple[int, int], given: argparse.Namespace, done: int) -> Iterator[Found]:
    """A training that is killed at each of its writes, or fails there, and is resumed; by turns the disk stays full."""
    command, results = trainings()[name]
    fresh = work.root / "fresh"
    if name not in work.writes:
        shutil.rmtree(work.folder, ignore_errors=True)
        write_data(work.folder / "data")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(work.folder, fresh)
        answer, work.writes[name] = call(command.split(), work.folder)
        work.right[name] = {"training": State(answer, {own: digest(work.folder / own) for own in results})}
        work.names[name] = names(work.folder)
        if answer.code or not work.writes[name]:
            raise SystemExit(f"{name} fails without a fault: {answer}")
    right, writes = work.right[name]["training"], work.writes[name]
    numbers = range(1 + share[0], writes + 1, share[1] * given.every)
    stops = (Stop(number, kind) for number in numbers for kind in kinds(name, number))
    for stop in islice(stops, done, None):
        copy(fresh, work.folder)
        outcome, good, says = resumed_after(stop, command, work, right, work.names[name])
        yield Found(name, f"{stop.kind} at write {stop.number} of {writes}", outcome, says[-900:], good)


def kinds(name: str, number: int) -> Sequence[str]:
    """What happens at a write: it is the last, and it fails. Most writes are the same in all trainings, so they fail in one of them."""
    failing = "full" if number // 2 % 2 else "fail"
    return ("kill", failing) if name == TRANSLATOR or number % 3 == 0 else ("kill",)


def resumed_after(stop: Stop, command: str, work: Work, right: State, known: set[str]) -> tuple[str, bool, str]:
    """What comes of a training that is stopped and resumed, whether that is allowed, and what the last command said."""
    first, _ = call(command.split(), work.folder, stop)
    if first.code != KILLED:
        outcome, good = judge(State(first, right.results), right)
        if not good:
            return outcome, False, first.err
    found = work.run([f"{command} --resume"], list(right.results))
    if found.answer.code:
        return f"{stop.kind}: NOT RESUMED", False, found.answer.err
    if found.results != right.results:
        return f"{stop.kind}: NOT RESUMED TO THE SAME", False, found.answer.err
    if left := sorted(names(work.folder) - known):
        return f"{stop.kind}: LEFT BEHIND {left[0]}", False, found.answer.err
    return f"{stop.kind}: resumed to the same", True, found.answer.err


def work_on(number: int, given: argparse.Namespace, root: Path) -> None:
    """One of the workers: it takes its share of the cases, and writes what came of them.

    Each scene is visited several times, so that an interrupted run has tried an even part of each.
    """
    work, shares = Work(root), given.workers * PASSES
    for first in range(number, shares, given.workers):
        share, own = (first, shares), f"{first + 1}-of-{shares}"
        for scene in scenes():
            if any(part in scene.name for part in given.scene) and "damage" in given.what:
                find = partial(damaged, scene, work, share, given)
                write_down(given.out / f"damage {scene.name} {own}.jsonl", find)
        for name in trainings():
            if any(part in name for part in given.scene) and "stop" in given.what:
                write_down(given.out / f"stop {name} {own}.jsonl", partial(stopped, name, work, share, given))


def run(given: argparse.Namespace, root: Path) -> tuple[list[Found], bool]:
    """All workers; what was found, and whether all of them came to their end."""
    children = []
    for number in range(given.workers):
        child = os.fork()
        if not child:
            code = 1
            try:
                (root / str(number)).mkdir()
                work_on(number, given, root / str(number))
                code = 0
            except SystemExit as error:
                print(error, file=sys.stderr)
            except BaseException:
                import traceback

                traceback.print_exc()
            os._exit(code)
        children.append(child)
    ended = [os.waitpid(child, 0)[1] == 0 for child in children]
    return read(given.out), all(ended)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="processes at once")
    parser.add_argument("--scene", nargs="+", default=[""], help="only scenes whose name has one of these in it")
    parser.add_argument("--only", default="", help="only damages whose `scene: next command: file` has this in it")
    parser.add_argument("--every", type=int, default=1, help="only each n-th case")
    parser.add_argument("--what", nargs="+", default=["damage", "stop"], choices=["damage", "stop"])
    parser.add_argument("--shown", type=int, default=40, help="how many of the wrong ones are shown in full")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/faults"), help="where the outcomes are kept until all are there"
    )
    given = parser.parse_args()
    if not hasattr(os, "fork"):
        raise SystemExit("check-faults needs fork, which this system does not have: run it on Linux or macOS")
    began = time.monotonic()
    begin(given)
    warm()
    memory = Path("/dev/shm")  # a disk would wait for each fsync
    with tempfile.TemporaryDirectory(prefix="heed-faults-", dir=memory if memory.is_dir() else None) as root:
        found, whole = run(given, Path(root))
    show(found, given.shown)
    wrong, minutes = sum(not one.good for one in found), (time.monotonic() - began) / 60
    of_core = sum(one.seconds for one in found) / 60
    print(f"\n{len(found):,} cases, {of_core:.1f} minutes of a core ({minutes:.1f} on the clock); {wrong:,} are wrong.")
    if whole:
        end(given.out)
    return int(bool(wrong) or not whole or not found)


def show(found: Sequence[Found], shown: int) -> None:
    """What came of each scene, and the wrong ones."""
    for scene in dict.fromkeys(one.scene for one in found):
        seconds = sum(one.seconds for one in found if one.scene == scene)
        print(f"{scene}: {seconds:,.0f} seconds of a core")
        for outcome, count in sorted(Counter(one.outcome for one in found if one.scene == scene).items()):
            print(f"  {count:6,}  {outcome}")
    for one in [one for one in found if not one.good][:shown]:
        print(f"\n{one.outcome}\n  {one.scene}: {one.case}\n  {one.says}")


if __name__ == "__main__":
    sys.exit(main())
