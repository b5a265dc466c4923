"""Prefetching in other threads."""

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
POLL = 0.5  # seconds after which a full queue is tried again, unless nobody waits for it any more


def in_thread(items: Iterable[T], size: int = 8) -> Iterator[T]:
    """The same items, prefetched by another thread."""
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=size)
    stopped = threading.Event()
    worker = threading.Thread(target=fill, args=(items, ready, lambda: not stopped.is_set()), daemon=True)
    worker.start()
    try:
        yield from drain(ready.get)
    finally:
        stopped.set()
        with suppress(queue.Empty):  # else it would wait with a full queue
            while True:
                ready.get_nowait()
        worker.join()


def fill(items: Iterable[Any], ready: Any, wanted: Callable[[], bool]) -> None:
    """Put items into a queue until stopped; errors are passed on too."""

    def put(kind: str, value: Any) -> bool:
        while wanted():
            try:
                ready.put((kind, value), timeout=POLL)
                return wanted()
            except queue.Full:
                continue
        return False

    try:
        for item in items:
            if not put("item", item):
                return
        put("end", None)
    except Exception as error:  # raised again by drain
        put("error", error)


def drain(get: Callable[[], tuple[str, Any]]) -> Iterator[Any]:
    while True:
        kind, value = get()
        if kind == "end":
            return
        if kind == "error":
            raise value
        yield value


def in_order(
    call: Callable[[T], R], items: Iterable[T], ahead: int = 0, threads: int | None = None
) -> Iterator[tuple[T, Callable[[], R]]]:
    """Each item with what gives the result of its call, or raises its error, in order. Calls run in several threads,
    at least `ahead` and at most a few more before they are needed.
    """
    threads = threads or min(16, os.cpu_count() or 1)
    pool, waiting = ThreadPoolExecutor(threads), deque()
    try:
        for item in items:
            waiting.append((item, pool.submit(call, item).result))
            if len(waiting) > ahead + 2 * threads:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        pool.shutdown(cancel_futures=True)
