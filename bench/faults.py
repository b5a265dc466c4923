"""Does Heed notice? Files that it wrote are damaged, and its writes fail or are its last: `make check-faults`.

After each fault the next command runs. It must give the results that it gives without the fault, or one sentence and an exit
code that is not 0. Children are forked, so that thousands of cases fit into minutes.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.fault_children import HANGS, KILLED, Answer, Stop, call, copy, warm
from bench.fault_damage import Damage, damages
from bench.fault_scenes import Probe, Scene, scenes, trainings, write_data


class Found(NamedTuple):
    """What came of one case: an outcome that is allowed, or what is wrong."""

    scene: str
    case: str
    outcome: str
    says: str = ""
    good: bool = True


class State(NamedTuple):
    """What commands have left: their answers, and the hashes of their files."""

    answer: Answer
    results: dict[str, str]


class Work:
    """A folder in which one case after the other is tried, always at the same path."""

    def __init__(self, root: Path):
        self.root, self.folder = root, root / "work"

    def begin(self, scene: str, make: Sequence[str], name: str, kill: str = "") -> Path:
        """Make a scene once; it is kept under `name`."""
        shutil.rmtree(self.folder, ignore_errors=True)
        write_data(self.folder / "data")
        for number, command in enumerate(make, 1):
            stop = Stop(3, "kill", kill) if kill and number == len(make) else None
            answer, _ = call(command.split(), self.folder, stop)
            if answer.code != (KILLED if stop else 0):
                raise SystemExit(f"{scene}: `heed {command}` ended with {answer.code}: {answer.err or answer.out}")
        kept = self.root / name
        shutil.rmtree(kept, ignore_errors=True)
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


def cases(scene: Scene, kept: Path, others: Path | None) -> Iterator[tuple[Probe, str, Damage]]:
    """Every probe with every damage of every file that it may meet."""
    for probe in scene.probes:
        paths = sorted({path for pattern in probe.files for path in kept.glob(pattern) if path.is_file()})
        for path in paths:
            name = path.relative_to(kept).as_posix()
            if name in scene.left_out:
                continue
            for damage in damages(path, path.read_bytes(), counterpart(name, others), f"{probe.name} {name}"):
                yield probe, name, damage


def counterpart(name: str, others: Path | None) -> bytes | None:
    """The same file of the other run. In the cache, folders are named by their content."""
    if others is None:
        return None
    folder, _, rest = name.partition("/")
    kind = rest.split("-")[0]
    found = [others / name] if folder != "cache" else sorted(others.glob(f"cache/{kind}-*/{Path(name).name}"))
    if folder == "cache" and "/" not in rest:
        found = sorted(others.glob(f"cache/{kind}-*{Path(name).suffix}"))
    return next((path.read_bytes() for path in found if path.is_file()), None)


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


def damaged(scene: Scene, work: Work, share: tuple[int, int], only: str, every: int) -> Iterator[Found]:
    """All damages of a scene."""
    kept = work.begin(scene.name, scene.make, "kept", scene.kill)
    others = work.begin(scene.name, scene.other, "others", scene.kill) if scene.other else None
    right: dict[str, State] = {}
    for number, (probe, name, damage) in enumerate(cases(scene, kept, others)):
        if (
            number % share[1] != share[0]
            or (number // share[1]) % every
            or only not in f"{scene.name}: {probe.name}: {name}"
        ):
            continue
        if probe.name not in right:
            copy(kept, work.folder)
            right[probe.name] = work.run(probe.commands, probe.results)
            if right[probe.name].answer.code:
                raise SystemExit(f"{scene.name}: {probe.name} fails without a fault: {right[probe.name].answer}")
        copy(kept, work.folder)
        damage.apply(work.folder / name, (work.folder / name).read_bytes())
        found = work.run(probe.commands, probe.results)
        outcome, good = judge(found, right[probe.name])
        yield Found(scene.name, f"{probe.name}: {name} {damage.name}", outcome, found.answer.err.strip()[-900:], good)


def stopped(name: str, work: Work, share: tuple[int, int], every: int) -> Iterator[Found]:
    """A training that is killed at each of its writes, or fails there, and is resumed; by turns the disk stays full."""
    command, results = trainings()[name]
    shutil.rmtree(work.folder, ignore_errors=True)
    write_data(work.folder / "data")
    fresh = work.root / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(work.folder, fresh)
    answer, writes = call(command.split(), work.folder)
    right = State(answer, {name: digest(work.folder / name) for name in results})
    if answer.code or not writes:
        raise SystemExit(f"{name} fails without a fault: {answer}")
    for number in range(1 + share[0], writes + 1, share[1] * every):
        for kind in ("kill", "full" if number // 2 % 2 else "fail"):
            copy(fresh, work.folder)
            first, _ = call(command.split(), work.folder, Stop(number, kind))
            said = judge(State(first, right.results), right) if first.code != KILLED else ("killed", True)
            if not said[1]:
                yield Found(name, f"{kind} at write {number} of {writes}", said[0], first.err[-900:], False)
                continue
            found = work.run([f"{command} --resume"], results)
            same = found.answer.code == 0 and found.results == right.results
            left = [path.name for path in work.folder.rglob("*.part")]
            outcome = f"{kind}: " + (
                "resumed to the same"
                if same
                else "NOT RESUMED TO THE SAME"
                if found.answer.code == 0
                else "NOT RESUMED"
            )
            if same and left:
                outcome, same = f"{kind}: LEFT BEHIND {left[0]}", False
            yield Found(name, f"{kind} at write {number} of {writes}", outcome, found.answer.err[-900:], same)


def work_on(share: tuple[int, int], given: argparse.Namespace, out: Path, root: Path) -> None:
    """One of the workers: it takes its share of the cases, and writes what came of them."""
    work = Work(root)
    with open(out, "w", encoding="utf-8") as file:
        for scene in scenes():
            if any(own in scene.name for own in given.scene) and "damage" in given.what:
                for found in damaged(scene, work, share, given.only, given.every):
                    file.write(json.dumps(found) + "\n")
                    file.flush()
        for name in trainings():
            if any(own in name for own in given.scene) and "stop" in given.what:
                for found in stopped(name, work, share, given.every):
                    file.write(json.dumps(found) + "\n")
                    file.flush()


def run(given: argparse.Namespace, root: Path) -> tuple[list[Found], bool]:
    """All workers; what was found, and whether all of them came to their end."""
    children, outs = [], [root / f"found-{number}.jsonl" for number in range(given.workers)]
    for number, out in enumerate(outs):
        child = os.fork()
        if not child:
            code = 1
            try:
                (root / str(number)).mkdir()
                work_on((number, given.workers), given, out, root / str(number))
                code = 0
            except SystemExit as error:
                print(error, file=sys.stderr)
            except BaseException:
                import traceback

                traceback.print_exc()
            os._exit(code)
        children.append(child)
    ended = [os.waitpid(child, 0)[1] == 0 for child in children]
    return [Found(*json.loads(line)) for out in outs if out.is_file() for line in out.open(encoding="utf-8")], all(
        ended
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="processes at once")
    parser.add_argument("--scene", nargs="+", default=[""], help="only scenes whose name has one of these in it")
    parser.add_argument("--only", default="", help="only damages whose `scene: next command: file` has this in it")
    parser.add_argument("--every", type=int, default=1, help="only each n-th case")
    parser.add_argument("--what", nargs="+", default=["damage", "stop"], choices=["damage", "stop"])
    parser.add_argument("--shown", type=int, default=40, help="how many of the wrong ones are shown in full")
    given = parser.parse_args()
    if not hasattr(os, "fork"):
        raise SystemExit("check-faults needs fork, which this system does not have: run it on Linux or macOS")
    began = time.monotonic()
    warm()
    memory = Path("/dev/shm")  # a disk would wait for each fsync
    with tempfile.TemporaryDirectory(prefix="heed-faults-", dir=memory if memory.is_dir() else None) as root:
        found, whole = run(given, Path(root))
    show(found, given.shown)
    wrong = sum(not one.good for one in found)
    minutes, work = (time.monotonic() - began) / 60, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (work.ru_utime + work.ru_stime) / 60
    print(f"\n{len(found):,} cases in {minutes:.1f} minutes ({spent:.1f} of a core); {wrong:,} are wrong.")
    return int(bool(wrong) or not whole or not found)


def show(found: Sequence[Found], shown: int) -> None:
    """What came of each scene, and the wrong ones."""
    for scene in dict.fromkeys(one.scene for one in found):
        print(f"{scene}:")
        for outcome, count in sorted(Counter(one.outcome for one in found if one.scene == scene).items()):
            print(f"  {count:6,}  {outcome}")
    for one in [one for one in found if not one.good][:shown]:
        print(f"\n{one.outcome}\n  {one.scene}: {one.case}\n  {one.says}")


if __name__ == "__main__":
    sys.exit(main())
