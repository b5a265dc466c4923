"""Prefetching: batches built ahead by other processes, without slowing down training."""

import multiprocessing
import os
import pickle
import queue
import signal
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from heed.data.in_thread import drain, fill

IMPORTED = "imported", None  # the first item of a worker process


@runtime_checkable
class BatchSource(Protocol):
    """Yields batches from a position on, each with the position after it; with several workers, those of one."""

    def start(self, position: Any, worker: int = 0, workers: int = 1) -> Iterator[tuple[Any, Any]]: ...


def worker_count() -> int:
    """The number of worker processes for this machine; the batches do not depend on it."""
    return max(1, min(8, (os.cpu_count() or 1) // 4))


def in_processes(
    batches: BatchSource, position: Any, size: int = 16, workers: int = 1, *, meanwhile: bool = False
) -> Iterator[tuple[Any, Any]]:
    """`batches.start(position)`, built by worker processes in turn; the same batches for any number of workers.
    `meanwhile`: this process builds the first ones, until the others have imported what they need.
    """
    context = multiprocessing.get_context("spawn")
    queues = [context.Queue(maxsize=max(1, -(-size // workers))) for _ in range(workers)]
    # The source is sent by a thread: as an argument of the process it would hold up `start` until all is imported there.
    inboxes, source = [context.Queue() for _ in range(workers)], pickle.dumps(batches)
    for inbox in inboxes:
        inbox.cancel_join_thread()  # nobody waits for a process that died before it read
        inbox.put(source)
    processes = [
        context.Process(target=_serve, args=(inbox, worker, workers, ready), daemon=True)
        for worker, (inbox, ready) in enumerate(zip(inboxes, queues, strict=True))
    ]
    started: list[Any] = []
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})  # workers inherit this
        try:
            for process in processes:
                process.start()
                started.append(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        waited, own_batches = list(zip(queues, processes, strict=True)), batches.start(position) if meanwhile else ()
        for position, batch in own_batches:
            yield position, batch
            waited = [own for own in waited if not _has_imported(*own)]
            if not waited:
                break
        for own in waited:
            _get(*own)
        for inbox in inboxes:
            inbox.put(position)
        turns = cycle(zip(queues, processes, strict=True))
        for after, batch in drain(lambda: _get(*next(turns))):
            yield after, _tensors(batch)
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.join()


def _serve(inbox: Any, worker: int, workers: int, ready: Any) -> None:
    torch.set_num_threads(1)
    wanted = multiprocessing.parent_process().is_alive
    batches = pickle.loads(_received(inbox, wanted))
    ready.put(IMPORTED)
    position = _received(inbox, wanted)
    items = ((after, _arrays(batch)) for after, batch in batches.start(position, worker, workers))
    fill(items, ready, wanted)
    if not wanted():
        ready.cancel_join_thread()  # else wait until the last item, which may be an error, is handed over


def _received(inbox: Any, wanted: Callable[[], bool]) -> Any:
    """What the parent process sends; ends this process if that has ended."""
    while True:
        try:
            return inbox.get(timeout=1)
        except queue.Empty:
            if not wanted():
                raise SystemExit from None


def _has_imported(ready: Any, process: Any) -> bool:
    """Whether a worker process is ready; if it has died, this raises."""
    if not process.is_alive():
        _get(ready, process)
    try:
        return bool(ready.get_nowait())
    except queue.Empty:
        return False


def _arrays(part: Any) -> Any:
    """A batch as numpy arrays, because each tensor sent to another process takes a segment of shared memory."""
    if isinstance(part, Tensor):
        return part.numpy()
    return (type(part), [_arrays(item) for item in part]) if isinstance(part, tuple) else part


def _tensors(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return torch.from_numpy(part)
    return part[0]._make(map(_tensors, part[1])) if isinstance(part, tuple) else part


def _get(ready: Any, process: Any) -> tuple[str, Any]:
    while True:
        try:
            return ready.get(timeout=1)
        except queue.Empty:
            if not process.is_alive():
                raise RuntimeError(f"the data loading process has died (exit code {process.exitcode})") from None
