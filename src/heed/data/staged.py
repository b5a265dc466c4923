"""Chunks in a three-stage pipeline: while the model works on one, the next is prepared and the previous one written."""

import gc
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from heed.data.in_thread import in_thread

GIVE_WAY = 1e-4  # seconds for which one thread may make others wait
AHEAD = 2  # chunks that wait between two stages: few, so that memory does not grow with the file


class Chunk(NamedTuple):
    """Items of an input; `start` is the number of items before them."""

    start: int
    items: Sequence[Any]


class Stages(NamedTuple):
    """`prepare` makes of a chunk what `work` takes; `finish` makes of what that found what is written. Only `work` uses the model.

    `work` runs in the thread of the caller, the others in threads of their own. `begin` is `work` for a device that works while
    the host does something else: it calls its second argument meanwhile, and returns what waits for the result. `numbered`: errors of `prepare` count texts from
    the beginning of the input; else they count from that of the chunk, and are told with its place.
    """

    prepare: Callable[[Chunk], Any]
    work: Callable[[Any], Any]
    finish: Callable[[Any, Any], Any]
    numbered: bool = False
    begin: Callable[[Any, Callable[[], None]], Callable[[], Any]] | None = None


def chunks(items: Iterable[Any], size: int) -> Iterator[Chunk]:
    """Split an input into chunks of a fixed size; the last may be smaller."""
    remaining, start = iter(items), 0
    while own := list(islice(remaining, size)):
        yield Chunk(start, own)
        start += len(own)


@contextmanager
def without_collections() -> Iterator[None]:
    """No searches for reference cycles, which take longer than the work on a chunk: results have none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class ShortTurns:
    """Threads hold Python's lock for 0.1 ms at a time instead of 5. One that launches the steps of a GPU, a millisecond each, asks for
    it several times in each step, and the GPU would wait with it.
    """

    def __init__(self):
        self.lock, self.users, self.usual = threading.Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self.lock:
            if not self.users:
                self.usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self.usual, GIVE_WAY))
            self.users += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                sys.setswitchinterval(self.usual)


short_turns = ShortTurns()  # of the whole process, also if several jobs run at once


def run(source: Iterable[Chunk], stages: Stages, write: Callable[[Chunk, Any], None], ahead: int = AHEAD) -> None:
    """Each chunk through all stages; `write` gets the results in the order of the chunks. With `ahead` 0 nothing overlaps."""
    if not ahead:
        for chunk in source:
            prepared = _prepared(stages, chunk)
            write(chunk, stages.finish(prepared, stages.work(prepared)))
        return
    with (
        without_collections(),
        short_turns,
        ThreadPoolExecutor(1, "heed-write") as writer,
        closing(in_thread(((chunk, _prepared(stages, chunk)) for chunk in source), ahead)) as ready,
    ):
        queue = _Queue(stages, write, writer)
        try:
            for chunk, prepared in ready:
                queue.work(chunk, prepared)
                queue.settle(ahead)
        finally:  # also if the next chunk could not be prepared
            queue.pass_on()
        queue.settle(0)


class _Queue:
    """Chunks between the start of their work and the end of their writing. After an error nothing else is written."""

    def __init__(self, stages: Stages, write: Callable[[Chunk, Any], None], writer: ThreadPoolExecutor):
        self.stages, self.write, self.writer, self.broken = stages, write, writer, False
        self.begun: list[tuple[Chunk, Any, Callable[[], Any]]] = []  # one at most
        self.waiting: deque[Future] = deque()

    def work(self, chunk: Chunk, prepared: Any) -> None:
        """Work on a chunk, or begin to; the one before is passed on at the latest when that returns or fails."""
        if self.stages.begin is None:
            self._submit(partial(self._finish, chunk, prepared, self.stages.work(prepared)))
            return
        try:
            found = self.stages.begin(prepared, self.pass_on)
        finally:
            self.pass_on()
        self.begun.append((chunk, prepared, found))

    def pass_on(self) -> None:
        """Pass the chunk that was begun on to the writer. An error waits for its turn, as those of the writer do."""
        while self.begun:
            chunk, prepared, found = self.begun.pop()
            try:
                self._submit(partial(self._finish, chunk, prepared, found()))
            except Exception as error:
                self._submit(partial(_fail, error))

    def _submit(self, job: Callable[[], None]) -> None:
        self.waiting.append(self.writer.submit(self._in_turn, job))

    def _in_turn(self, job: Callable[[], None]) -> None:
        if self.broken:
            return
        try:
            job()
        except BaseException:
            self.broken = True
            raise

    def _finish(self, chunk: Chunk, prepared: Any, found: Any) -> None:
        self.write(chunk, self.stages.finish(prepared, found))
        gc.collect(1)  # what this chunk has left, not all that was there before

    def settle(self, ahead: int) -> None:
        """Wait until at most `ahead` chunks wait to be written; the first error is raised."""
        while len(self.waiting) > ahead or (self.waiting and self.waiting[0].done()):
            self.waiting.popleft().result()


def _fail(error: Exception) -> None:
    raise error


def _prepared(stages: Stages, chunk: Chunk) -> Any:
    with nullcontext() if stages.numbered else placed(chunk):
        return stages.prepare(chunk)


@contextmanager
def placed(chunk: Chunk) -> Iterator[None]:
    """Errors in a text mention the lines of its chunk, except for the first chunk."""
    try:
        yield
    except ValueError as error:
        if not chunk.start:
            raise
        end = chunk.start + len(chunk.items)
        raise ValueError(f"lines {chunk.start + 1:,} to {end:,}: {error}") from error
