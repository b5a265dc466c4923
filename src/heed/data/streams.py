"""One text as a stream of tokens for language models, read in several rows at once, window by window. Every line is
followed by the end token, and the stream is read as if preceded by an end token. So each token is predicted once per
epoch, and none is dropped.
"""

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from heed.data import contamination
from heed.data.batching import DataPosition
from heed.data.filters import FilterReport
from heed.data.packing import map_tensors, to_device
from heed.files import atomic_folder, open_checked, write_sums
from heed.vocabularies.vocabulary import Vocabulary

CHUNK = 10_000
Progress = Callable[[int], None]
DOCUMENTS = "documents.npy"
IGNORED = -1  # in `expected`: no token is to be predicted here


class Window(NamedTuple):
    """Tokens, and the expected next token of each (IGNORED: none). `begins`: the first window of an epoch, without
    state.
    """

    tokens: Tensor
    expected: Tensor
    begins: bool
    count: int

    to = to_device

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches of equal shape use the same kernels."""
        return tuple(self.tokens.shape)

    def tensors(self) -> list[Tensor]:
        return [self.tokens, self.expected]

    def clone(self) -> "Window":
        """A copy in new memory."""
        return map_tensors(self, torch.clone)


class Stream:
    """A prepared text, opened from its folder: the concatenated ids of all lines, each with its end token.
    `documents` are the indices of the first token of each document, `corpora` the numbers of their corpora; without
    an index, the text is one document.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        metadata = json.loads((folder / "stream.json").read_text("utf-8"))
        self.ids = np.memmap(folder / "stream.ids", dtype=metadata["dtype"], mode="r").view(np.ndarray)
        self.last, self.unknown, self.longest = metadata["last"], metadata["unknown"], metadata["longest"]
        self.report = FilterReport(**metadata["report"])
        index = folder / DOCUMENTS
        self.documents, self.corpora = np.load(index) if index.is_file() else np.zeros((2, 1), dtype=np.int64)

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.ids)

    def __reduce__(self):
        return open_checked, (Stream, self.folder)  # another process opens the same file

    def summary(self) -> str:
        share = 100 * self.unknown / len(self)
        known = f"{self.unknown:,} of them ({share:.1f} %) unknown words" if self.unknown else "all of them known"
        return f"{len(self):,} tokens, {known}, counting each line end as one."


@runtime_checkable
class DocumentIndex(Protocol):
    """Records which lines begin a document, and in which corpus."""

    corpora: list[int]

    def starts(self, lengths: Sequence[int]) -> np.ndarray: ...


def build(
    folder: Path,
    lines: Iterable[str],
    vocabulary: Vocabulary,
    held_out: int = 0,
    progress: Progress = lambda n: None,
    documents: DocumentIndex | None = None,
) -> Stream:
    """Encode lines into `folder`, which appears only when complete; `held_out` further lines were removed before.
    `documents` is asked for its index after all lines have been read.
    """
    dtype, special = np.uint16 if len(vocabulary) <= 2**16 else np.uint32, vocabulary.special
    read = unknown = longest = 0
    rest, trained, lengths = iter(lines), contamination.HashCollector(), array("q")
    with atomic_folder(folder, "keep") as unfinished:
        with open(unfinished / "stream.ids", "wb") as file:
            while chunk := list(islice(rest, CHUNK)):
                encoded = [np.asarray([*ids, special.last], dtype=dtype) for ids in vocabulary.encode(chunk)]
                file.writelines(ids.tobytes() for ids in encoded)
                read, longest = read + len(chunk), max(longest, *(len(ids) - 1 for ids in encoded))
                unknown += sum(int(np.count_nonzero(ids == special.unknown)) for ids in encoded)
                lengths.extend(map(len, encoded if documents is not None else ()))
                for line in filter(contamination.is_long, chunk):
                    trained.add(line)
                progress(read)
        if not longest:
            raise ValueError(f"data.source has {read:,} lines but no words: there is nothing to learn")
        report = {"read": read + held_out, "kept": read, "taken": {}}
        metadata = {"dtype": np.dtype(dtype).name, "last": special.last, "unknown": unknown, "longest": longest}
        (unfinished / "stream.json").write_text(
            json.dumps({**metadata, "report": report}, indent=2), "utf-8", newline="\n"
        )
        if documents is not None:
            np.save(unfinished / DOCUMENTS, np.stack([documents.starts(lengths), np.array(documents.corpora)]))
        contamination.write(unfinished / contamination.FILE, {"text": trained})
        write_sums(unfinished)
    return Stream(folder)


def join_lines(lines: Iterable[Sequence[int]], last: int) -> np.ndarray:
    """The ids of lines as one stream, each line followed by its end token."""
    return np.array([i for ids in lines for i in (*ids, last)], dtype=np.int64)


class Windows:
    """A stream split into `rows` parts of similar length, of which `length` tokens are read at a time. Each epoch
    after the first starts at another offset, drawn by seed and epoch, and wraps around.
    """

    def __init__(
        self, ids: np.ndarray, last: int, *, rows: int, length: int, seed: int = 0, share: tuple[int, int] = (0, 1)
    ):
        check_rows(rows, length, share)
        self.ids, self.last, self.rows, self.length, self.seed, self.share = ids, last, rows, length, seed, share
        self.row_length = -(-len(ids) // rows)  # the last rows may be shorter

    def __len__(self) -> int:
        """The number of windows in an epoch."""
        return -(-self.row_length // self.length)

    def start(self, position: DataPosition) -> Iterator[tuple[DataPosition, Window]]:
        """Windows from a position on, epoch after epoch, each with the position after it."""
        epoch, index = position
        while True:
            for i in range(index, len(self)):
                after = DataPosition(epoch, i + 1) if i + 1 < len(self) else DataPosition(epoch + 1, 0)
                yield after, self.make(DataPosition(epoch, i))
            epoch, index = epoch + 1, 0

    def make(self, position: DataPosition) -> Window:
        """The rows of one window that belong to this process."""
        rank, world = self.share
        mine = np.arange(self.rows // world) + rank * (self.rows // world)
        start = position.index * self.length
        columns = np.arange(start, min(start + self.length, self.row_length))
        unrotated = mine[:, None] * self.row_length + columns
        present = unrotated < len(self.ids)
        indices = (unrotated + self._rotation(position.epoch)) % len(self.ids)
        expected = np.where(present, self.ids[indices].astype(np.int64), IGNORED)
        previous = self.ids[indices - 1].astype(np.int64)
        tokens = np.where(present & (indices > 0), previous, self.last)  # an end token is assumed before the stream
        return Window(torch.from_numpy(tokens), torch.from_numpy(expected), position.index == 0, int(present.sum()))

    def _rotation(self, epoch: int) -> int:
        return int(np.random.default_rng([self.seed, epoch]).integers(len(self.ids))) if epoch else 0


def check_rows(rows: int, length: int, share: tuple[int, int]) -> None:
    """Refuse rows that the processes cannot share equally."""
    if rows < 1 or length < 1:
        raise ValueError(f"rows is {rows} and length is {length}; both must be at least 1")
    if rows % share[1]:
        raise ValueError(
            f"the text is read in {rows} rows, which {share[1]} processes cannot divide evenly: set "
            f"training.batch_tokens to task.window ({length}) times a multiple of {share[1]}"
        )


def row_count(tokens: int, budget: int, length: int) -> int:
    """How many rows read a text of `tokens`: as many as the budget allows, each with at least one window."""
    if length < 1:
        raise ValueError(f"task.window is {length}; it must be at least 1")
    if budget < length:
        raise ValueError(
            f"training.batch_tokens is {budget}; it must hold at least one window, and task.window is {length}"
        )
    return max(1, min(budget // length, tokens // length))
