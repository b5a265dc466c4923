"""Many commands on one machine: some side by side, some alone, each once the ones it needs have ended. A finished one is not run again."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HEED = (sys.executable, "-m", "heed")


@dataclass(frozen=True)
class Job:
    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    share: float = 1.0  # of the device: jobs run while the sum is at most 1; 0 is for jobs of the CPU
    limit: float = float("inf")  # seconds; a job that takes longer is ended, and has failed


def train(
    name: str, recipe: str | None, folder: Path, settings: Iterable[str] = (), options: Sequence[str] = ()
) -> tuple[str, ...]:
    """The command that trains a run, or resumes it, without its report."""
    chosen = [part for setting in settings for part in ("--set", setting)]
    start = [recipe] if recipe else []
    return (*HEED, "train", *start, "--resume", "--out", str(folder / name), "--no-report", *options, *chosen)


def evaluate(run: Path, files: Sequence[str], out: Path, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The command that translates a source file with a run and scores it against a reference; `files` are both."""
    source, reference = files
    command = (*HEED, "evaluate", str(run), "--source", source, "--reference", reference)
    return (*command, "--out", str(out), *options)


def finished(folder: Path) -> set[str]:
    """The names of the jobs that ended well."""
    path = folder / "jobs.jsonl"
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
    return {row["name"] for row in rows if row["code"] == 0}


class Jobs:
    """What is to be done, in order of importance. `folder/jobs` has the output of each job, `folder/jobs.jsonl` how each ended."""

    def __init__(self, jobs: Sequence[Job], folder: Path, at_once: int = 16):
        self.waiting, self.folder, self.at_once = list(jobs), folder, at_once
        self.running: dict[str, tuple[Job, subprocess.Popen, float]] = {}
        (folder / "jobs").mkdir(parents=True, exist_ok=True)
        self.ended = dict.fromkeys(finished(folder), 0)
        self.waiting = [job for job in self.waiting if job.name not in self.ended]

    def run(self, seconds: float = float("inf")) -> bool:
        """Run what can be run, for at most so many seconds; whether all of it ended well. What still runs then is stopped."""
        end = time.monotonic() + seconds
        try:
            while (self.waiting or self.running) and time.monotonic() < end:
                self._collect()
                self._start()
                if not self.running and not any(self._ready(job) for job in self.waiting):
                    break
                time.sleep(0.2)
        finally:
            for _, process, _ in self.running.values():
                process.terminate()
            for _, process, _ in self.running.values():
                process.wait()
        return not self.waiting and not self.running and all(code == 0 for code in self.ended.values())

    def _ready(self, job: Job) -> bool:
        return all(self.ended.get(name) == 0 for name in job.after)

    def _start(self) -> None:
        used = sum(job.share for job, _, _ in self.running.values())
        for job in list(self.waiting):
            if len(self.running) >= self.at_once:
                return
            if not self._ready(job):
                continue
            if job.share and used + job.share > 1.0001:
                if job.share == 1:
                    used = 1.0  # nothing overtakes a job that is to run alone
                continue
            used += job.share
            with (self.folder / "jobs" / f"{job.name}.log").open("w", encoding="utf-8", newline="\n") as log:
                process = subprocess.Popen(
                    job.command,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                )
            self.running[job.name] = (job, process, time.monotonic())
            self.waiting.remove(job)

    def _collect(self) -> None:
        for name, (job, process, begin) in list(self.running.items()):
            if process.poll() is None:
                if time.monotonic() - begin < job.limit:
                    continue
                process.kill()
                process.wait()
            del self.running[name]
            self.ended[name] = process.returncode
            row = {"name": name, "code": process.returncode, "seconds": round(time.monotonic() - begin, 1)}
            print(f"{name}: exit {row['code']} after {row['seconds']} s, {len(self.waiting)} waiting", flush=True)
            with (self.folder / "jobs.jsonl").open("a", encoding="utf-8", newline="\n") as record:
                record.write(json.dumps(row) + "\n")
