"""Batches of near-equal lengths within a budget of tokens, in an order drawn by seed and epoch alone.

What comes after a place in the data depends on nothing but (seed, epoch, index): to resume is to start there.
"""

import multiprocessing
import queue
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from heed.data.corpus import Corpus, Sentences
from heed.data.subwords import MARKS
from heed.data.vocabulary import Marks, Pair

T = TypeVar("T")
Ids = Sequence[int] | np.ndarray
Together = Callable[[Sequence[Ids], Sequence[Ids], tuple[Marks, Marks]], Any]
Noise = Callable[
    [np.ndarray, np.random.Generator], tuple
]  # (source, target) or (source, target, places, words hidden there)


class Place(NamedTuple):
    """The next batch to be read."""

    epoch: int = 0
    index: int = 0


class Batch(NamedTuple):
    """Source tokens, the decoder's inputs, and what it should say at each of its places that is no padding.

    `places` index the flattened (b, t) inputs; `expected` are the tokens due there. Where words of the source are
    hidden, `hidden` are their places in the flattened (b, s) source, and `answers` the words.
    """

    source: Tensor
    valid: Tensor
    target: Tensor
    places: Tensor
    expected: Tensor
    hidden: Tensor | None = None
    answers: Tensor | None = None

    def to(self, device: torch.device) -> "Batch":
        return self if device.type == "cpu" else Batch(*_moved(self, device))


class Labelled(NamedTuple):
    """Texts, and the number of each one's label."""

    source: Tensor
    valid: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> "Labelled":
        return self if device.type == "cpu" else Labelled(*_moved(self, device))


def _moved(parts: Sequence[Tensor | None], device: torch.device) -> Sequence[Tensor | None]:
    return [part if part is None else part.pin_memory().to(device, non_blocking=True) for part in parts]


def plan(source: np.ndarray, target: np.ndarray, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Which sentences go together: neighbours in length, at most `budget` slots a side, padding included."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(source))  # so that equal lengths meet others in each epoch
    order = order[np.lexsort((source[order], np.maximum(source, target)[order]))]
    cuts = _cut(np.maximum(source, target)[order], budget)
    batches = [order[start:end] for start, end in cuts]
    return [batches[i] for i in random.permutation(len(batches))]


def _cut(lengths: np.ndarray, budget: int) -> Iterator[tuple[int, int]]:
    """Runs in which (the longest) times (how many) stays within the budget; one sentence at least."""
    start, longest = 0, 0
    for end, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if longest * (end - start + 1) > budget and end > start:
            yield start, end
            start, longest = end, length
    if len(lengths):
        yield start, len(lengths)


class Batches:
    """The batches of a corpus, epoch after epoch, from any place on."""

    def __init__(  # noqa: PLR0913 (the parts of a loader, each by its name)
        self,
        corpus: Corpus,
        *,
        budget: int,
        seed: int,
        sampling: float = 0.0,
        subwords: Pair | None = None,
        max_length: int = 1024,
        marks: tuple[Marks, Marks] = (MARKS, MARKS),
        together: Together | None = None,
        noise: Noise | None = None,
    ):
        """`noise` makes examples of the sources alone; `together` makes a batch of sources and targets."""
        self.corpus, self.budget, self.seed = corpus, budget, seed
        self.sampling, self.subwords, self.max_length = sampling, subwords, max_length
        self.marks, self.together, self.noise = marks, together or collate, noise

    def plan(self, epoch: int) -> list[np.ndarray]:
        source, target = self.corpus.source.lengths + 1, self.corpus.target.lengths + 1
        return plan(source, target, self.budget, self.seed, epoch)

    def start(self, place: Place = Place()) -> Iterator[tuple[Place, Batch]]:  # noqa: B008 (a tuple)
        """Each batch with the place after it."""
        epoch, index = place
        while True:
            planned = self.plan(epoch)
            for i in range(index, len(planned)):
                after = Place(epoch, i + 1) if i + 1 < len(planned) else Place(epoch + 1, 0)
                yield after, self.make(planned[i], (epoch, i))
            epoch, index = epoch + 1, 0

    def make(self, rows: np.ndarray, place: tuple[int, int] = (0, 0)) -> Any:
        source = self._ids(0, rows, place)
        if self.noise is None:
            return self.together(source, self._ids(1, rows, place), self.marks)
        chance = np.random.default_rng([self.seed, *place])
        return with_hidden([self.noise(np.asarray(ids), chance) for ids in source], self.marks)

    def _ids(self, side: int, rows: np.ndarray, place: tuple[int, int]) -> list[Ids]:
        sentences: Sentences = (self.corpus.source, self.corpus.target)[side]
        plain = [sentences[i] for i in rows.tolist()]
        if not self.sampling:
            return plain
        seed = np.random.SeedSequence([self.seed, *place, side]).generate_state(1)[0]
        drawn = self.subwords[side].sample([sentences.text[i] for i in rows.tolist()], self.sampling, int(seed))
        return [new if len(new) < self.max_length else old for new, old in zip(drawn, plain, strict=True)]


def collate(source: Sequence[Ids], target: Sequence[Ids], marks: tuple[Marks, Marks] = (MARKS, MARKS)) -> Batch:
    """Sentences side by side: the source and its end, the target shifted by one."""
    (sources, valid), (outputs, spoken) = pad(source, marks[0]), pad(target, marks[1])
    inputs = np.full_like(outputs, marks[1].pad)
    inputs[:, 1:][spoken[:, 1:]] = outputs[:, :-1][spoken[:, 1:]]
    inputs[:, 0] = marks[1].first
    places = np.flatnonzero(spoken)
    parts = (sources, valid, inputs, places, outputs.reshape(-1)[places])
    return Batch(*map(torch.from_numpy, parts))


def labelled(source: Sequence[Ids], target: Sequence[Ids], marks: tuple[Marks, Marks] = (MARKS, MARKS)) -> Labelled:
    """Texts side by side; each target is one number, that of its label."""
    sources, valid = map(torch.from_numpy, pad(source, marks[0]))
    return Labelled(sources, valid, torch.tensor([int(label) for (label,) in target]))


def with_hidden(examples: Sequence[tuple], marks: tuple[Marks, Marks]) -> Batch:
    """A batch of what noise has made; with the words it has hidden, where it tells them."""
    batch = collate([example[0] for example in examples], [example[1] for example in examples], marks)
    if len(examples[0]) == 2:
        return batch
    start = batch.valid.shape[1] * np.arange(len(examples)) + len(marks[0].before)
    places = np.concatenate([own[2] + first for own, first in zip(examples, start, strict=True)])
    answers = np.concatenate([own[3] for own in examples])
    return batch._replace(hidden=torch.from_numpy(places), answers=torch.from_numpy(answers.astype(np.int64)))


def pad(rows: Sequence[Ids], marks: Marks = MARKS) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids, each within its marks, as one array filled up with padding, and where it holds none."""
    ahead, lengths = len(marks.before), np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    place = np.arange(ahead + lengths.max() + 1)
    array = np.full((len(rows), len(place)), marks.pad, dtype=np.int64)
    array[(place >= ahead) & (place < ahead + lengths[:, None])] = np.concatenate(
        [np.asarray(row, dtype=np.int64) for row in rows]
    )
    array[:, :ahead] = marks.before
    array[np.arange(len(rows)), ahead + lengths] = marks.last
    return array, place <= ahead + lengths[:, None]


def by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Rows of near-equal lengths that together hold no more than `budget`; the longest first."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if rows and lengths[rows[0]] * (len(rows) + 1) > budget:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def ahead(items: Iterable[T], size: int = 8) -> Iterator[T]:
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


def elsewhere(batches: Batches, place: Place, size: int = 16) -> Iterator[tuple[Place, Batch]]:
    """`batches.start(place)`, made by another process: it takes no time from the one that trains."""
    context = multiprocessing.get_context("spawn")
    ready = context.Queue(maxsize=size)
    worker = context.Process(target=_serve, args=(batches, place, ready), daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})  # for the one that trains alone
    worker.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        for after, kind, parts in _drain(lambda: _get(ready, worker)):
            yield after, kind(*(part if part is None else torch.from_numpy(part) for part in parts))
    finally:
        worker.kill()
        worker.join()


def _serve(batches: Batches, place: Place, ready: Any) -> None:
    torch.set_num_threads(1)
    items = (
        (after, type(batch), tuple(part if part is None else part.numpy() for part in batch))
        for after, batch in batches.start(place)
    )
    wanted = multiprocessing.parent_process().is_alive
    _fill(items, ready, wanted)
    if not wanted():
        ready.cancel_join_thread()  # else wait until the last, which may be an error, has been handed over


def _get(ready: Any, worker: Any) -> tuple[str, Any]:
    while True:
        try:
            return ready.get(timeout=5)
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
