"""Systems side by side: each in a process of its own, one at work at a time, taking turns."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench.rows import Row, System, TrainRow, packed

ROOT = Path(__file__).parent.parent


class Failed(Exception):
    """A system that cannot go on; the sentence says why."""


class Plan(NamedTuple):
    """`warm` steps or calls before the first round; in a round `before`, then `amount` or as many as fill `seconds`."""

    rounds: int
    warm: int
    before: int
    amount: int | None
    seconds: float
    patience: float
    clock: str = "wall"  # of bench.worker.CLOCKS


class Worker:
    """The other side of bench/worker.py."""

    def __init__(self, system: System, device: str, threads: int, python: str, patience: float, root: Path = ROOT):
        self.system, self.patience = system, patience
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the worker)
        command = [python, "-m", "bench.worker", system.module, system.how, device, str(threads)]
        self.process = subprocess.Popen(
            command, cwd=root, env=environment(threads, root), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            text=True,
        )  # fmt: skip

    def send(self, order: str, **values) -> None:
        try:
            self.process.stdin.write(json.dumps({"order": order, **values}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # `answer` tells why

    def answer(self) -> dict:
        clock = threading.Timer(self.patience, self.process.kill)
        clock.start()
        try:
            line = self.process.stdout.readline()
        finally:
            clock.cancel()
        if not line:
            raise Failed(f"its process ended with code {self.process.wait()}; its last words: {self._last_words()}")
        found = json.loads(line)
        if "error" in found:
            raise Failed(found["error"])
        return found

    def ask(self, order: str, **values) -> dict:
        self.send(order, **values)
        return self.answer()

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def _last_words(self) -> str:
        self.log.seek(0)
        lines = [line.strip() for line in self.log.read().splitlines() if line.strip()]
        return lines[-1] if lines else "none"


def environment(threads: int, root: Path = ROOT) -> dict[str, str]:
    """The environment of a process of the checkout `root` whose libraries use this many threads."""
    named = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    path = os.pathsep.join(filter(None, (str(root / "src"), str(root), os.environ.get("PYTHONPATH"))))
    return {**os.environ, **named, "PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false"}


class Measured(NamedTuple):
    """What the systems did in one row, by name; of those that failed, why."""

    rounds: dict[str, list[dict]]
    one: dict[str, float]
    set_up: dict[str, float]
    said: dict[str, list[list[int]]]
    versions: dict[str, str]
    failed: dict[str, str]


class Turns:
    """The workers of some systems; for a row of training they are new, since memory is measured too."""

    def __init__(self, systems: Sequence[System], start: Callable[[System], Worker], tell: Callable[[str], None]):
        self.systems, self.start, self.tell = systems, start, tell
        self.workers: dict[str, Worker] = {}

    def measure(self, row: Row, plan: Plan, folder: Path | None = None) -> Measured:
        found = Measured({}, {}, {}, {}, {}, {})
        with ExitStack() as stack:
            if isinstance(row, TrainRow):
                stack.callback(self.close)
            for system in self.systems:
                if system.name not in self.workers:
                    self.workers[system.name] = self.start(system)
            at_work = dict(self.workers)
            self._build(at_work, row, folder, found)
            self._warm(at_work, plan, found)
            self._rounds(at_work, plan, found)
        for name, why in found.failed.items():
            found.rounds.pop(name, None)
            self.tell(f"{row.name}: {name} failed: {why.splitlines()[0][:400]}")
        return found

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()

    def _build(self, at_work: dict[str, Worker], row: Row, folder: Path | None, found: Measured) -> None:
        """All at once: imports take long, and are not what is measured."""
        for worker in at_work.values():
            own = folder / "before" if folder and worker.system.needs == "before" else folder
            worker.send("build", row=packed(row), folder=str(own) if own else None)
        for name in list(at_work):
            self._try(at_work, name, found, lambda own: found.versions.update(own.answer()["versions"]))

    def _warm(self, at_work: dict[str, Worker], plan: Plan, found: Measured) -> None:
        def warm(own: Worker) -> None:
            found.one[own.system.name] = own.ask("run", before=plan.warm, amount=1, clock=plan.clock)["seconds"]

        for name in list(at_work):
            began = time.perf_counter()
            self._try(at_work, name, found, warm)
            found.set_up[name] = time.perf_counter() - began

    def _rounds(self, at_work: dict[str, Worker], plan: Plan, found: Measured) -> None:
        def once(own: Worker) -> None:
            name = own.system.name
            amount = plan.amount or max(1, round(plan.seconds / found.one[name]))
            found.rounds.setdefault(name, []).append(
                own.ask("run", before=plan.before, amount=amount, clock=plan.clock)
            )

        names = list(at_work)
        for number in range(plan.rounds):
            first = number % max(1, len(names))
            for name in names[first:] + names[:first]:
                self._try(at_work, name, found, once)
        for name in list(at_work):
            self._try(at_work, name, found, lambda own: found.said.update({own.system.name: own.ask("say")["said"]}))

    def _try(self, at_work: dict[str, Worker], name: str, found: Measured, work: Callable[[Worker], object]) -> None:
        """Who fails leaves; the others go on."""
        if name not in at_work:
            return
        try:
            work(at_work[name])
        except Failed as why:
            found.failed[name] = str(why)
            at_work.pop(name)
            self.workers.pop(name).close()


def run_module(name: str, words: Sequence[str], threads: int, root: Path = ROOT) -> str:
    """What `python -m NAME WORDS` prints."""
    found = subprocess.run(
        [sys.executable, "-m", name, *words], cwd=root, env=environment(threads, root), capture_output=True, text=True
    )
    if found.returncode:
        raise ValueError(f"python -m {name} ended with code {found.returncode}: {found.stderr.strip()[-2000:]}")
    return found.stdout
