"""The queue of one model: jobs of all requests are batched, with a fair share for each request. Every request has a
running cost, in tokens of plain work, and the one with the least cost after its next job comes first. A new request
starts at the virtual time, the share of one that was always active (fair queueing: Demers et al., 1989): so a
sentence overtakes a book, and the book still makes progress while sentences keep coming.
"""

import heapq
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any

MAX_BATCH_JOBS = 64
TARGET_BATCH_SECONDS = 0.25  # by the measured speed: a small request waits for at most one batch
SHARED_BATCH_SECONDS = 0.04  # while BUSY_REQUESTS came within BUSY_SECONDS: then someone waits for every batch
BUSY_REQUESTS, BUSY_SECONDS = 4, 2.0
MIN_BATCH_TOKENS = 64  # however slow the machine is
INITIAL_BATCH_TOKENS = 256  # until the speed of the machine is known
YIELDING_NICE = 10
log = logging.getLogger("heed.service")

RunBatch = Callable[[Hashable, list[Any]], Sequence[Any]]
OnBatch = Callable[[Any, int, int, float], None]  # key, jobs, tokens, seconds


class Cancelled(Exception):
    """Nobody waits for this result any more."""


@dataclass(eq=False)
class Ticket:
    """An admitted request that can be cancelled. It holds one of `slots` while its thread computes, not while it
    waits.
    """

    slots: threading.Semaphore = field(default_factory=threading.Semaphore)
    cancelled: bool = False
    workers: set[Any] = field(default_factory=set)  # whatever works for it, and has `cancel(ticket)`

    def cancel(self) -> None:
        """Cancel all its jobs; waiting callers get `Cancelled`."""
        self.cancelled = True
        for worker in tuple(self.workers):
            worker.cancel(self)


@dataclass(eq=False)
class Job:
    """One item to process for a request. Only jobs with the same `key` share a batch; `size` is in tokens.

    `cost` is in tokens of plain work that would take the model as long.
    """

    ticket: Ticket
    key: Hashable
    item: Any
    size: int
    cost: int | float
    future: Future
    since: float


class BatchWorker:
    """A thread that processes the queue batch by batch. `run(key, items)` returns a result for each item.

    A batch has at most `max_tokens` and `max_jobs`; a job waits up to `max_wait` seconds for others. `on_batch` is called after each.
    On Linux, a `yielding` worker leaves the CPU to the other threads where they compete.
    """

    def __init__(
        self, name: str, run: RunBatch, *, max_wait: int | float, max_tokens: int, max_jobs: int = MAX_BATCH_JOBS,
        on_batch: OnBatch | None = None, yielding: bool = False,
    ):  # fmt: skip
        self.name, self.run, self.on_batch, self.yielding = name, run, on_batch, yielding
        self.max_wait, self.max_tokens, self.max_jobs = max_wait, max_tokens, max_jobs
        self.waiting: dict[Ticket, deque[Job]] = {}
        self.received: dict[Ticket, int | float] = {}  # what each waiting request has cost
        self.virtual_time = 0.0  # what a request would have cost that was always there
        self.running: list[Job] = []
        self.arrivals: deque[float] = deque(maxlen=BUSY_REQUESTS)  # when the last requests came
        self.speed: dict[Any, float] = {}  # tokens of plain work per second, by kind of job
        self.waiting_tokens, self.waiting_jobs, self.waiting_cost = 0, 0, 0.0
        self.closed = False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._run_batches, name=f"heed-{name}", daemon=True)
        self.thread.start()

    def submit(
        self, ticket: Ticket, key: Hashable, items: Sequence[Any], sizes: Sequence[int],
        costs: Sequence[int | float] | None = None,
    ) -> list[Future]:  # fmt: skip
        """Add jobs of a request to the queue; without `costs`, they cost their sizes."""
        now = time.monotonic()
        jobs = [
            Job(ticket, key, item, max(1, size), max(1, cost), Future(), now)
            for item, size, cost in zip(items, sizes, costs or sizes, strict=True)
        ]
        with self.changed:
            ticket.workers.add(self)  # before the check below: a cancellation is seen there, or finds us in the set
            if ticket.cancelled or self.closed:
                raise Cancelled
            if not jobs:
                return []
            if ticket not in self.received:
                self.arrivals.append(now)
            self.received[ticket] = max(self.received.get(ticket, 0.0), self.virtual_time)
            self.waiting.setdefault(ticket, deque()).extend(jobs)
            self._count(jobs, 1)
            self.changed.notify_all()
        return [job.future for job in jobs]

    def cancel(self, ticket: Ticket) -> None:
        """Remove the jobs of a request, and abandon those that are running."""
        with self.changed:
            jobs = self.waiting.pop(ticket, ())
            self.received.pop(ticket, None)
            self._count(jobs, -1)
            for job in (*jobs, *(job for job in self.running if job.ticket is ticket)):
                if not job.future.done():
                    job.future.set_exception(Cancelled())

    def close(self) -> None:
        """End the thread after its current batch; waiting requests are cancelled."""
        with self.changed:
            self.closed = True
            tickets = list(self.waiting)
            self.changed.notify_all()
        for ticket in tickets:
            ticket.cancel()
        self.thread.join(timeout=10)

    def _count(self, jobs: Iterable[Job], sign: int) -> None:
        for job in jobs:
            self.waiting_tokens += sign * job.size
            self.waiting_jobs += sign
            self.waiting_cost += sign * job.cost

    def _run_batches(self) -> None:
        if self.yielding and sys.platform == "linux":  # elsewhere, all threads of a process have one priority
            own = threading.get_native_id()
            os.setpriority(os.PRIO_PROCESS, own, min(19, os.getpriority(os.PRIO_PROCESS, own) + YIELDING_NICE))
        while (batch := self._next_batch()) is not None:
            try:
                self._run_batch(batch)
            except BaseException as error:  # this thread must not end: all later requests would wait for ever
                log.error("%s in the worker of %s", type(error).__name__, self.name)
                for job in batch:
                    self._resolve(job, error=RuntimeError(type(error).__name__))
            self.running = []

    def _next_batch(self) -> list[Job] | None:
        """Wait for jobs, and a little longer for more of them unless a batch is full; None once closed."""
        with self.changed:
            while not self.waiting and not self.closed:
                self.changed.wait()
            while not self.closed and self.waiting and not self._is_full():
                first = min(jobs[0].since for jobs in self.waiting.values())
                left = first + self.max_wait - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(left)
            if self.closed:
                return None
            self.running = self._take_batch()
            return self.running

    def _is_full(self) -> bool:
        """Whether the waiting jobs fill a batch."""
        first = next(iter(self.waiting.values()))[0]
        return self.waiting_jobs >= self.max_jobs or self.waiting_cost >= self._token_budget(first.key)

    def _token_budget(self, key: Hashable) -> int | float:
        """The cost limit of a batch; small while the speed of its kind is unknown and others have run."""
        speed = self.speed.get(_kind(key))
        first = MIN_BATCH_TOKENS if self.speed else INITIAL_BATCH_TOKENS
        busy = len(self.arrivals) == BUSY_REQUESTS and time.monotonic() - self.arrivals[0] < BUSY_SECONDS
        seconds = SHARED_BATCH_SECONDS if busy else TARGET_BATCH_SECONDS
        budget = first if speed is None else max(MIN_BATCH_TOKENS, speed * seconds)
        return min(self.max_tokens, budget)

    def _finish(self, ticket: Ticket) -> int | float:
        """The cost of a request after its next job."""
        return self.received[ticket] + self.waiting[ticket][0].cost

    def _take_batch(self) -> list[Job]:
        """Jobs of one key, each from the request that will then have cost the least."""
        if not self.waiting:
            return []
        order, sharing = count(), len(self.waiting)
        heap = [(self._finish(ticket), next(order), ticket) for ticket in self.waiting]
        heapq.heapify(heap)
        key = self.waiting[heap[0][2]][0].key
        batch, left = [], self._token_budget(key)
        while heap and len(batch) < self.max_jobs:
            _, _, ticket = heapq.heappop(heap)
            jobs = self.waiting[ticket]
            if jobs[0].key != key or (batch and jobs[0].cost > left):
                continue
            job = jobs.popleft()
            batch.append(job)
            left -= job.cost
            self.received[ticket] += job.cost
            if jobs:
                heapq.heappush(heap, (self._finish(ticket), next(order), ticket))
            else:
                del self.waiting[ticket], self.received[ticket]
        self._count(batch, -1)
        self.virtual_time += sum(job.cost for job in batch) / sharing
        return batch

    def _run_batch(self, jobs: list[Job]) -> None:
        """Run a batch and deliver its results. If it fails, its halves are tried, so that one bad job does not fail
        the others.
        """
        jobs = [job for job in jobs if not job.future.done()]  # a request may have been cancelled meanwhile
        if not jobs:
            return
        start = time.monotonic()
        try:
            results = list(self.run(jobs[0].key, [job.item for job in jobs]))
            if len(results) != len(jobs):
                raise RuntimeError(f"{len(results)} results for {len(jobs)} jobs")
        except Exception as error:
            if len(jobs) == 1:
                self._resolve(jobs[0], error=error)
                return
            middle = len(jobs) // 2
            self._run_batch(jobs[:middle])
            self._run_batch(jobs[middle:])
            return
        seconds, tokens = time.monotonic() - start, sum(job.size for job in jobs)
        for job, result in zip(jobs, results, strict=True):
            self._resolve(job, result)
        self._update_speed(jobs[0].key, sum(job.cost for job in jobs) / max(seconds, 1e-6))
        if self.on_batch:
            self.on_batch(jobs[0].key, len(jobs), tokens, seconds)

    def _update_speed(self, key: Hashable, speed: float) -> None:
        average = self.speed.get(_kind(key), speed)
        self.speed[_kind(key)] = 0.8 * average + 0.2 * speed

    def _resolve(self, job: Job, result: Any = None, error: Exception | None = None) -> None:
        with self.changed:
            if job.future.done():  # cancelled meanwhile
                return
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)


def _kind(key: Hashable) -> Any:
    """The key by which speeds are measured: alignment is faster than translation, but there are too many different
    keys to store.
    """
    return key[0] if isinstance(key, tuple) else key


def wait_for_results(futures: Sequence[Future], ticket: Ticket | None = None) -> list[Any]:
    """Results in order, or `Cancelled`. The ticket releases its slot while it waits."""
    if ticket is not None:
        ticket.slots.release()
    try:
        return [future.result() for future in futures]
    finally:
        if ticket is not None:
            ticket.slots.acquire()
