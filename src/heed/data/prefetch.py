"""Items made ahead of time: by another thread, or by other processes, which take no time from the one that trains."""

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

T = TypeVar("T")


@runtime_checkable
class Source(Protocol):
    """What gives batches from a place on, each with the place after it; all of them, or every `of`-th from the `turn`-th on."""

    def start(self, place: Any, turn: int = 0, of: int = 1) -> Iterator[tuple[Any, Any]]: ...


def in_thread(items: Iterable[T], size: int = 8) -> Iterator[T]:
    """The same items, made by another thread before they are asked for."""
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=size)
    stopped = threading.Event()
    worker = threading.Thread(target=_fill, args=(items, ready, lambda: not stopped.is_set()), daemon=True)
    worker.start()
    try:
        yield from _drain(ready.get)
    finally:
        stopped.set()
        worker.join()


def spare() -> int:
    """How many processes a machine may give to making batches; what they make does not depend on it."""
    return max(1, min(8, (os.cpu_count() or 1) // 4))


def in_processes(batches: Source, place: Any, size: int = 16, workers: int = 1) -> Iterator[tuple[Any, Any]]:
    """`batches.start(place)`, made by other processes in turn; the same, however many they are."""
    context = multiprocessing.get_context("spawn")
    lines = [context.Queue(maxsize=max(1, -(-size // workers))) for _ in range(workers)]
    at_work = [
        context.Process(target=_serve, args=(batches, place, turn, workers, line), daemon=True)
        for turn, line in enumerate(lines)
    ]
    started: list[Any] = []
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})  # for who trains alone
        try:
            for worker in at_work:
                worker.start()
                started.append(worker)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        turns = cycle(zip(lines, at_work, strict=True))
        for after, batch in _drain(lambda: _get(*next(turns))):
            yield after, _tensors(batch)
    finally:
        for worker in started:
            worker.kill()
        for worker in started:
            worker.join()


def _serve(batches: Source, place: Any, turn: int, of: int, line: Any) -> None:
    torch.set_num_threads(1)
    items = ((after, _arrays(batch)) for after, batch in batches.start(place, turn, of))
    wanted = multiprocessing.parent_process().is_alive
    _fill(items, line, wanted)
    if not wanted():
        line.cancel_join_thread()  # else wait until the last, which may be an error, has been handed over


def _arrays(part: Any) -> Any:
    """A batch as it travels: a tensor would take a piece of shared memory for each of its parts."""
    if isinstance(part, Tensor):
        return part.numpy()
    return (type(part), [_arrays(own) for own in part]) if isinstance(part, tuple) else part


def _tensors(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return torch.from_numpy(part)
    return part[0]._make(map(_tensors, part[1])) if isinstance(part, tuple) else part


def _get(ready: Any, worker: Any) -> tuple[str, Any]:
    while True:
        try:
            return ready.get(timeout=1)
        except queue.Empty:
            if not worker.is_alive():
                raise RuntimeError(f"the process that makes batches has died (exit code {worker.exitcode})") from None


def _fill(items: Iterable[Any], ready: Any, wanted: Callable[[], bool]) -> None:
    """Put items into a queue for as long as they are wanted; an error is handed over too."""

    def put(kind: str, value: Any) -> bool:
        while wanted():
            try:
                ready.put((kind, value), timeout=0.5)
                return True
            except queue.Full:
                continue
        return False

    try:
        for item in items:
            if not put("item", item):
                return
        put("end", None)
    except Exception as error:  # raised again where the items are used
        put("error", error)


def _drain(get: Callable[[], tuple[str, Any]]) -> Iterator[Any]:
    while True:
        kind, value = get()
        if kind == "end":
            return
        if kind == "error":
            raise value
        yield value
