"""Chunks in a three-stage pipeline: while the model works on one, the next is prepared and the previous one written."""

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from itertools import islice
from typing import Any, NamedTuple

from heed.data.in_thread import in_thread

AHEAD = 2  # chunks that wait between two stages: few, so that memory does not grow with the file


class Chunk(NamedTuple):
    """Items of an input; `start` is the number of items before them."""

    start: int
    items: Sequence[Any]


class Stages(NamedTuple):
    """`prepare` makes of a chunk what `work` takes; `finish` makes of what that found what is written. Only `work` uses the model.

    `work` runs in the thread of the caller, the others in threads of their own. `numbered`: errors of `prepare` count texts from
    the beginning of the input; else they count from that of the chunk, and are told with its place.
    """

    prepare: Callable[[Chunk], Any]
    work: Callable[[Any], Any]
    finish: Callable[[Any, Any], Any]
    numbered: bool = False


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


def run(source: Iterable[Chunk], stages: Stages, write: Callable[[Chunk, Any], None], ahead: int = AHEAD) -> None:
    """Each chunk through all stages; `write` gets the results in the order of the chunks. With `ahead` 0 nothing overlaps."""
    if not ahead:
        for chunk in source:
            prepared = _prepared(stages, chunk)
            write(chunk, stages.finish(prepared, stages.work(prepared)))
        return
    waiting: deque[Future] = deque()
    with (
        without_collections(),
        ThreadPoolExecutor(1, "heed-write") as writer,
        closing(in_thread(((chunk, _prepared(stages, chunk)) for chunk in source), ahead)) as ready,
    ):
        for chunk, prepared in ready:
            found = stages.work(prepared)
            waiting.append(writer.submit(_write, stages, write, chunk, prepared, found))
            while len(waiting) > ahead or (waiting and waiting[0].done()):
                waiting.popleft().result()
            gc.collect(1)  # what this chunk has left, not all that was there before
        for future in waiting:
            future.result()


def _write(stages: Stages, write: Callable[[Chunk, Any], None], chunk: Chunk, prepared: Any, found: Any) -> None:
    write(chunk, stages.finish(prepared, found))


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
