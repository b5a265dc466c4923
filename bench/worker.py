"""One system in a process of its own. It reads orders, a line of JSON each, and answers each with a line."""

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from bench import data
from bench.rows import TextRow, TrainRow, unpacked

CLOCKS = {"wall": time.perf_counter, "process": time.process_time}


class Work:
    """What one system does for one row: so many steps of training, or so many translations of the same batch."""

    def __init__(self, module: str, how: str, device: str):
        self.module, self.how, self.device = importlib.import_module(f"bench.{module}"), how, device
        self.translate, self.said = None, []

    def build(self, row: dict, folder: str | None) -> dict:
        row = unpacked(row)
        if self.device == "cuda":  # from here on: what a recorded graph needs is taken when it is recorded
            torch.cuda.reset_peak_memory_stats()
        if isinstance(row, TrainRow | TextRow):
            self.go = self.module.build(row, self.device, self.how)
        else:
            self.go = self._translating(row, Path(folder))
        names = ("torch", "transformers", "ctranslate2", "joeynmt")
        return {"versions": {name: found for name in names if (found := _version(name))}}

    def _translating(self, row, folder: Path) -> Callable[[int], int]:
        self.translate = self.translate or self.module.build(folder, self.device, self.how)
        sources = data.sources(row)

        def run(times: int) -> int:
            for _ in range(times):
                self.said = self.translate(sources, row)
            return times * sum(map(len, self.said))

        return run

    def run(self, before: int, amount: int, clock: str = "wall") -> dict:
        """The time of `amount`, after `before` that do not count; the most memory of this row so far."""
        cuda, now = self.device == "cuda", CLOCKS[clock]
        self.go(before)
        self._wait()
        began = now()
        tokens = self.go(amount)
        self._wait()
        took = now() - began
        if not cuda:
            return {
                "tokens": tokens,
                "seconds": took,
                "memory": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            }
        held = {"memory": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
        torch.cuda.empty_cache()  # the others need room when it is their turn
        return {"tokens": tokens, "seconds": took, **held}

    def say(self) -> dict:
        return {"said": getattr(self.go, "said", self.said)}

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def main(module: str, how: str, device: str, threads: int) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a system prints goes to the log
    torch.set_num_threads(threads)
    work = None
    for line in sys.stdin:
        order = json.loads(line)
        try:
            work = work or Work(module, how, device)
            answer = getattr(work, order.pop("order"))(**order)
        except Exception as error:  # the others go on without it
            import traceback

            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error).strip() or 'no more is known'}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], threads=int(sys.argv[4]))
