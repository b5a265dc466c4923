"""Processes of heed that are forked from one which has imported it and torch, so that not each imports them anew."""

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from heed.cli.main import main

IMPORTED = [__name__, "pytest", "heed.runs.train", "heed.tasks.translation", "torch._dynamo", "torch.distributed.fsdp"]


def context() -> BaseContext:
    """There is one server for all tests of a process, started by the first that needs it."""
    own = multiprocessing.get_context("forkserver")
    own.set_forkserver_preload(IMPORTED)
    return own


def start(words: Sequence[str], environment: Mapping[str, str], said: Path | None = None) -> BaseProcess:
    """`heed` with these words, in a session of its own; what it says is written into a file."""
    process = context().Process(target=_run, args=([*words], dict(environment), said))
    process.start()
    return process


def finish(process: BaseProcess) -> int:
    """Its exit code."""
    process.join(timeout=900)
    process.kill()
    process.join()
    return process.exitcode


def _run(words: list[str], environment: dict[str, str], said: Path | None) -> None:
    os.setsid()
    os.environ.update(environment)
    with (said or Path(os.devnull)).open("w", encoding="utf-8", newline="\n") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
        sys.exit(main(words))
