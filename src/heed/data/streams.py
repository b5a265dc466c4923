"""One text as a stream of tokens, read by several rows at once, window after window.

Every line is followed by the mark that ends it, and the whole stream is read as if that mark stood before it. So each
token is to be told once in every epoch, and none is dropped.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.batching import DataPosition
from heed.data.filters import Report
from heed.files import atomic_folder
from heed.vocabularies.vocabulary import Vocabulary

CHUNK = 10_000
NOTHING = -1  # stands where no token is expected


class Window(NamedTuple):
    """Tokens, and which is to be told after each (less than 0: none). `begins`: nothing stands before it."""

    tokens: Tensor
    expected: Tensor
    begins: bool
    count: int

    def to(self, device: torch.device) -> "Window":
        if device.type == "cpu":
            return self
        moved = (part.pin_memory().to(device, non_blocking=True) for part in self[:2])
        return Window(*moved, self.begins, self.count)


class Stream:
    """A prepared text, opened: the ids of all its lines end to end, each with its end mark."""

    def __init__(self, folder: Path):
        self.folder = folder
        facts = json.loads((folder / "stream.json").read_text())
        self.ids = np.memmap(folder / "stream.ids", dtype=facts["dtype"], mode="r").view(np.ndarray)
        self.last, self.unknown, self.longest = facts["last"], facts["unknown"], facts["longest"]
        self.report = Report(**facts["report"])

    def __len__(self) -> int:
        """How many tokens it has."""
        return len(self.ids)

    def __reduce__(self):
        return Stream, (self.folder,)  # another process opens the same file

    def says(self) -> str:
        share = 100 * self.unknown / len(self)
        known = f"{self.unknown:,} of them ({share:.1f} %) unknown words" if self.unknown else "all of them known"
        return f"{len(self):,} tokens, {known}; each line counts one for its end."


def build(
    folder: Path,
    lines: Iterable[str],
    subwords: Vocabulary,
    held: int = 0,
    tell: Callable[[int], None] = lambda count: None,
) -> Stream:
    """Encode lines into `folder`, which appears when it is complete; `held` more were set aside before."""
    dtype = np.uint16 if len(subwords) <= 2**16 else np.uint32
    read = unknown = longest = 0
    rest = iter(lines)
    with atomic_folder(folder, "keep") as aside:
        with open(aside / "stream.ids", "wb") as file:
            while chunk := list(islice(rest, CHUNK)):
                ids = [np.asarray([*own, subwords.marks.last], dtype=dtype) for own in subwords.encode(chunk)]
                file.writelines(own.tobytes() for own in ids)
                read, longest = read + len(chunk), max(longest, *(len(own) - 1 for own in ids))
                unknown += sum(int(np.count_nonzero(own == subwords.marks.unknown)) for own in ids)
                tell(read)
        if not longest:
            raise ValueError(f"data.source has {read:,} lines and not one word: there is nothing to learn")
        report = {"read": read + held, "kept": read, "taken": {}}
        facts = {"dtype": np.dtype(dtype).name, "last": subwords.marks.last, "unknown": unknown, "longest": longest}
        (aside / "stream.json").write_text(json.dumps({**facts, "report": report}, indent=2))
    return Stream(folder)


def flat(ids: Iterable[Sequence[int]], last: int) -> np.ndarray:
    """Lines end to end, each with its end mark."""
    return np.array([i for own in ids for i in (*own, last)], dtype=np.int64)


class Windows:
    """A stream in `rows` parts of near-equal length, `length` tokens of each at a time.

    Each epoch but the first begins the stream at another place, drawn by seed and epoch, and goes around.
    """

    def __init__(
        self, ids: np.ndarray, last: int, *, rows: int, length: int, seed: int = 0, share: tuple[int, int] = (0, 1)
    ):
        if rows < 1 or length < 1:
            raise ValueError(f"rows is {rows} and length is {length}; both must be at least 1")
        if rows % share[1]:
            raise ValueError(
                f"the text is read in {rows} rows, which {share[1]} processes cannot share evenly: set training.batch_tokens so "
                f"that it is task.window ({length}) times a multiple of {share[1]}"
            )
        self.ids, self.last, self.rows, self.length, self.seed, self.share = ids, last, rows, length, seed, share
        self.each = -(-len(ids) // rows)  # tokens a row; the last rows may have fewer

    def __len__(self) -> int:
        """How many windows an epoch has."""
        return -(-self.each // self.length)

    def start(self, place: DataPosition) -> Iterator[tuple[DataPosition, Window]]:
        """Windows from a place on, epoch after epoch, each with the place after it."""
        epoch, index = place
        while True:
            for i in range(index, len(self)):
                yield (
                    DataPosition(epoch, i + 1) if i + 1 < len(self) else DataPosition(epoch + 1, 0),
                    self.make(DataPosition(epoch, i)),
                )
            epoch, index = epoch + 1, 0

    def make(self, place: DataPosition) -> Window:
        """The rows of one window that are my share of it."""
        rank, world = self.share
        mine = np.arange(self.rows // world) + rank * (self.rows // world)
        begin = place.index * self.length
        steps = np.arange(begin, min(begin + self.length, self.each))
        places = mine[:, None] * self.each + steps
        due = places < len(self.ids)
        at = (places + self._turn(place.epoch)) % len(self.ids)
        expected = np.where(due, self.ids[at].astype(np.int64), NOTHING)
        before = self.ids[at - 1].astype(np.int64)  # before the first place stands an end
        tokens = np.where(due & (at > 0), before, self.last)
        return Window(torch.from_numpy(tokens), torch.from_numpy(expected), place.index == 0, int(due.sum()))

    def _turn(self, epoch: int) -> int:
        return int(np.random.default_rng([self.seed, epoch]).integers(len(self.ids))) if epoch else 0


def rows_of(tokens: int, budget: int, length: int) -> int:
    """How many rows read a text of so many tokens: as the budget allows, and each a window at least."""
    if length < 1:
        raise ValueError(f"task.window is {length}; it must be at least 1")
    if budget < length:
        raise ValueError(
            f"training.batch_tokens is {budget}; it must hold one window at least, and task.window is {length}"
        )
    return max(1, min(budget // length, tokens // length))
