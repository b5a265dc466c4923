"""The way of all sentences to one model: gathered into batches, in turns among the requests that wait.

Each request has a clock of the tokens that it was given, and who has had least comes first. Who comes new begins at the share of one who
was always there (fair queueing: Demers et al., 1989): so a sentence overtakes a book, and a book goes on while sentences keep coming.
"""

import heapq
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any

MOST_ROWS = 64  # jobs of a batch
MOST_SECONDS = 0.25  # of a batch, by what batches took so far: small requests wait for one of them
FEWEST = 64  # tokens of a batch, however slow the machine is
UNKNOWN = 256  # tokens of a batch while it is not known how fast the machine is
log = logging.getLogger("heed.service")

Run = Callable[[Hashable, list[Any]], Sequence[Any]]


class Cancelled(Exception):
    """Nobody waits for this any more."""


@dataclass(eq=False)
class Ticket:
    """One request, as long as someone waits for it. Only as many as `turns` has room for work at their texts at once."""

    turns: threading.Semaphore = field(default_factory=threading.Semaphore)
    cancelled: bool = False
    workers: set["Worker"] = field(default_factory=set)

    def cancel(self) -> None:
        """Take back all that has not begun; whoever waits for it is told."""
        self.cancelled = True
        for worker in tuple(self.workers):
            worker.drop(self)


@dataclass(eq=False)
class Job:
    """One thing to do for a request. Jobs of one `key` may be done together."""

    ticket: Ticket
    key: Hashable
    item: Any
    size: int
    future: Future
    since: float


class Worker:
    """A thread that does what waits, batch by batch. `run(key, items)` gives a result for each item.

    `watch(key, jobs, tokens, seconds)` is told of each batch.
    """

    def __init__(
        self,
        name: str,
        run: Run,
        *,
        wait: int | float,
        budget: int,
        rows: int = MOST_ROWS,
        watch: Callable | None = None,
    ):
        self.name, self.run, self.wait, self.budget, self.rows, self.watch = name, run, wait, budget, rows, watch
        self.waiting: dict[Ticket, deque[Job]] = {}
        self.used: dict[Ticket, int | float] = {}
        self.clock = 0.0  # what a request would have had that was always there: work done over those it was shared by
        self.running: list[Job] = []
        self.speed: dict[Any, float] = {}  # tokens a second, by what is done
        self.size, self.count = 0, 0  # tokens and jobs that wait
        self.closed = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._work, name=f"heed-{name}", daemon=True)
        self.thread.start()

    def submit(self, ticket: Ticket, key: Hashable, items: Sequence[Any], sizes: Sequence[int]) -> list[Future]:
        """Put jobs of a request in; their results come as futures."""
        now = time.monotonic()
        jobs = [Job(ticket, key, item, max(1, size), Future(), now) for item, size in zip(items, sizes, strict=True)]
        with self.changed:
            ticket.workers.add(self)  # first: who cancels from now on finds us, and who did before is seen below
            if ticket.cancelled or self.closed:
                raise Cancelled
            if not jobs:
                return []
            self.used[ticket] = max(self.used.get(ticket, 0.0), self.clock)
            self.waiting.setdefault(ticket, deque()).extend(jobs)
            self._count(jobs, 1)
            self.changed.notify_all()
        return [job.future for job in jobs]

    def drop(self, ticket: Ticket) -> None:
        """Forget a request."""
        with self.changed:
            jobs = self.waiting.pop(ticket, ())
            self.used.pop(ticket, None)
            self._count(jobs, -1)
            for job in (*jobs, *(job for job in self.running if job.ticket is ticket)):
                if not job.future.done():
                    job.future.set_exception(Cancelled())

    def close(self) -> None:
        """End the thread when its batch is done; what still waits is taken back."""
        with self.changed:
            self.closed = True
            tickets = list(self.waiting)
            self.changed.notify_all()
        for ticket in tickets:
            ticket.cancel()
        self.thread.join(timeout=10)

    def _count(self, jobs: Iterable[Job], sign: int) -> None:
        for job in jobs:
            self.size += sign * job.size
            self.count += sign

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            try:
                self._do(batch)
            except BaseException as error:  # this thread must not end: whoever comes would wait for ever
                log.error("%s in the worker of %s", type(error).__name__, self.name)
                for job in batch:
                    self._tell(job, error=RuntimeError(type(error).__name__))
            self.running = []

    def _next(self) -> list[Job] | None:
        """The next batch: after a little time for others to come, unless enough are there."""
        with self.changed:
            while not self.waiting and not self.closed:
                self.changed.wait()
            while not self.closed and self.waiting and not self._enough():
                first = min(jobs[0].since for jobs in self.waiting.values())
                left = first + self.wait - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(left)
            if self.closed:
                return None
            self.running = self._take()
            return self.running

    def _enough(self) -> bool:
        """Whether a batch would be full."""
        return self.count >= self.rows or self.size >= self._budget(next(iter(self.waiting.values()))[0].key)

    def _budget(self, key: Hashable) -> int | float:
        """Tokens of a batch of what this key is for."""
        speed = self.speed.get(_kind(key))
        return min(self.budget, UNKNOWN if speed is None else max(FEWEST, speed * MOST_SECONDS))

    def _take(self) -> list[Job]:
        """Jobs of one key, each time from the request that has had least."""
        if not self.waiting:
            return []
        order, sharing = count(), len(self.waiting)
        line = [(self.used[ticket], next(order), ticket) for ticket in self.waiting]
        heapq.heapify(line)
        key = self.waiting[line[0][2]][0].key
        batch, left = [], self._budget(key)
        while line and len(batch) < self.rows:
            _, _, ticket = heapq.heappop(line)
            jobs = self.waiting[ticket]
            if jobs[0].key != key or (batch and jobs[0].size > left):
                continue
            job = jobs.popleft()
            batch.append(job)
            left -= job.size
            self.used[ticket] += job.size
            if jobs:
                heapq.heappush(line, (self.used[ticket], next(order), ticket))
            else:
                del self.waiting[ticket], self.used[ticket]
        self._count(batch, -1)
        self.clock += sum(job.size for job in batch) / sharing
        return batch

    def _do(self, jobs: list[Job]) -> None:
        """Run a batch and tell its results. If that fails, its halves: one that cannot be done does not spoil the others."""
        jobs = [job for job in jobs if not job.future.done()]  # a request may have been taken back meanwhile
        if not jobs:
            return
        start = time.monotonic()
        try:
            results = list(self.run(jobs[0].key, [job.item for job in jobs]))
            if len(results) != len(jobs):
                raise RuntimeError(f"{len(results)} results for {len(jobs)} jobs")
        except Exception as error:
            if len(jobs) == 1:
                self._tell(jobs[0], error=error)
                return
            middle = len(jobs) // 2
            self._do(jobs[:middle])
            self._do(jobs[middle:])
            return
        seconds, tokens = time.monotonic() - start, sum(job.size for job in jobs)
        for job, result in zip(jobs, results, strict=True):
            self._tell(job, result)
        self._learn(jobs[0].key, tokens / max(seconds, 1e-6))
        if self.watch:
            self.watch(jobs[0].key, len(jobs), tokens, seconds)

    def _learn(self, key: Hashable, speed: float) -> None:
        before = self.speed.get(_kind(key), speed)
        self.speed[_kind(key)] = 0.8 * before + 0.2 * speed

    def _tell(self, job: Job, result: Any = None, error: Exception | None = None) -> None:
        with self.changed:
            if job.future.done():  # the request was taken back meanwhile
                return
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)


def _kind(key: Hashable) -> Any:
    """What a key is for: aligning is faster than translating. Keys themselves are too many to remember each."""
    return key[0] if isinstance(key, tuple) else key


def gathered(futures: Sequence[Future], ticket: Ticket | None = None) -> list[Any]:
    """The results, in order; `Cancelled` if the request was taken back. Who waits lets others have their turn."""
    if ticket is not None:
        ticket.turns.release()
    try:
        return [future.result() for future in futures]
    finally:
        if ticket is not None:
            ticket.turns.acquire()
