"""Processes of heed that are forked from one which has imported it and torch, so that not each imports them anew."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from heed.cli.main import main
from tests.start_methods import context


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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})  # training blocks them as it forks
    os.environ.update(environment)
    with (said or Path(os.devnull)).open("w", encoding="utf-8", newline="\n") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
        sys.exit(main(words))
