"""The histories of the users of a log, and their split into training, validation and test."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from heed.files import atomic_file, sha256
from heed.vocabularies.items import checked
from heed.vocabularies.ragged import RaggedRows, slice_indices

FILE = "histories.safetensors"
PART = 1 << 16  # users whose items are read at one time
ARRAYS = ("items", "offsets", "train_end", "valid_at", "test_at")


class Held(NamedTuple):
    """A recommendation task: the histories of some users, and the next item; -1 if it is unknown."""

    users: np.ndarray
    histories: RaggedRows
    targets: np.ndarray


class Histories:
    """The concatenated items of all users. `train_end` is the number of a user's training items; `valid_at` and
    `test_at` are the positions of the held-out items, -1 if there is none. An id beyond the last item is unknown to
    the model.
    """

    def __init__(self, names: list[str], known: int, arrays: Mapping[str, np.ndarray]):
        self.names, self.known = names, known
        self.written: str | None = None  # hash of the file, which is not written again while a run goes on
        self.items, self.offsets, self.train_end, self.valid_at, self.test_at = (arrays[name] for name in ARRAYS)
        users = len(self.offsets) - 1
        sizes = {len(names), users, len(self.train_end), len(self.valid_at), len(self.test_at)}
        if len(sizes) > 1 or self.offsets[0] != 0 or self.offsets[-1] != len(self.items):
            raise ValueError("the histories are inconsistent")

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def history(self, user: str) -> list[int]:
        """A user's complete history of known items."""
        if user not in self.ids:
            raise ValueError(
                f"{user!r} is not one of the {len(self):,} users the model was trained on: give items instead"
            )
        row = self.ids[user]
        own = self.items[self.offsets[row] : self.offsets[row + 1]]
        return own[own < self.known].tolist()

    def training(self) -> RaggedRows:
        """The training items, one row per user."""
        lengths = self.train_end.astype(np.int64)
        return RaggedRows(self.items[slice_indices(self.offsets[:-1], lengths)], lengths)

    def held(self, part: str, most: int = 0) -> Held:
        """The users with an item for "valid" or "test", and their histories before it; a random sample of at `most`
        this many (0: all).
        """
        at = (self.valid_at if part == "valid" else self.test_at).astype(np.int64)
        users = np.flatnonzero(at >= 0)
        if most and most < len(users):
            users = users[np.sort(np.random.default_rng(0).permutation(len(users))[:most])]
        starts, lengths = self.offsets[users], at[users]
        rows = RaggedRows(self.items[slice_indices(starts, lengths)], lengths)
        targets = self.items[starts + lengths].astype(np.int64)
        return Held(users, _without(rows, self.known), np.where(targets < self.known, targets, -1))

    def counts(self) -> np.ndarray:
        """The training frequency of each item; users are counted in parts, since they may not fit in memory."""
        found = np.zeros(self.known, dtype=np.int64)
        for start in range(0, len(self), PART):
            lengths = self.train_end[start : start + PART].astype(np.int64)
            own = self.items[slice_indices(self.offsets[start : start + len(lengths)], lengths)]
            found += np.bincount(own, minlength=self.known)
        return found

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the histories into a model folder; returns their entry in config.json."""
        path = folder / FILE
        if self.written is None or not path.is_file() or sha256(path) != self.written:
            text = np.frombuffer("".join(f"{name}\n" for name in self.names).encode(), np.uint8)
            with atomic_file(path) as part:
                save_file({"users": text, **{name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}}, part)
            self.written = sha256(path)
        return {"kind": "histories", "file": FILE, "sha256": self.written, "known": self.known}

    @staticmethod
    def read(folder: Path, facts: dict[str, Any], where: str) -> "Histories":
        path = checked(folder, facts, where)
        try:
            arrays = load_file(path)
            names = arrays["users"].tobytes().decode().split("\n")[:-1]
            return Histories(names, int(facts["known"]), arrays)
        except (SafetensorError, LookupError, ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(f"{path} is damaged ({error}): copy it again") from error


def _without(rows: RaggedRows, known: int) -> RaggedRows:
    """Rows without items unknown to the model."""
    kept = rows.ids < known
    if kept.all():
        return rows
    sums = np.concatenate([[0], kept.cumsum()])
    return RaggedRows(rows.ids[kept], sums[rows.ends] - sums[rows.ends - rows.lengths])
