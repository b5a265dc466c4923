"""Hashes of the training texts, to detect validation and test texts that were trained on. Two texts are considered
equal if they differ only in case, whitespace or punctuation.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

FILE = "trained-texts.safetensors"
MAX_HASHES = 1_000_000  # of a side, eight bytes each; of a larger corpus, the texts with the smallest hashes
MIN_LINE = 20  # letters and digits of a line of a text: shorter ones, headings for example, repeat by chance
NO_TEXT = 0  # the hash of a text without letters and digits, which is the same as no other


class _Kept(dict):
    """For str.translate: drops punctuation and whitespace."""

    def __missing__(self, code: int) -> int | None:
        dropped = unicodedata.category(chr(code))[0] in "PZC"
        self[code] = None if dropped else code
        return self[code]


_KEPT = _Kept()


def normalize(text: str) -> str:
    """A text without case, whitespace and punctuation."""
    return unicodedata.normalize("NFKC", text).casefold().translate(_KEPT)


def is_long(line: str) -> bool:
    """Whether a line has enough letters to identify its origin."""
    return len(normalize(line)) >= MIN_LINE


def text_hash(text: str) -> int:
    """A 64-bit hash of the normalized text."""
    normal = normalize(text)
    if not normal:
        return NO_TEXT
    return int.from_bytes(hashlib.blake2b(normal.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def text_hashes(texts: Iterable[str]) -> np.ndarray:
    return np.fromiter(map(text_hash, texts), dtype=np.uint64)


def occurs_in(hashes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each of these texts is among the others."""
    return np.isin(hashes, others) & (hashes != NO_TEXT)


class HashCollector:
    """The distinct hashes of a side; if there are more than `limit`, the smallest, which is a random sample of the
    texts.
    """

    def __init__(self, limit: int = MAX_HASHES):
        self.limit, self.hashes, self.recent = limit, np.zeros(0, np.uint64), []
        self.end: int | None = None  # from this hash on, they are not kept

    def add(self, text: str) -> None:
        self.recent.append(text_hash(text))
        if len(self.recent) >= self.limit:
            self._merge()

    def finish(self) -> np.ndarray:
        self._merge()
        return self.hashes

    def _merge(self) -> None:
        found = np.unique(np.concatenate([self.hashes, np.array(self.recent, dtype=np.uint64)]))
        found = found[found != NO_TEXT]
        if self.end is not None:
            found = found[found < np.uint64(self.end)]
        if len(found) > self.limit:
            self.end = int(found[self.limit])
            found = found[: self.limit]
        self.hashes, self.recent = found, []


def write(path: Path, collectors: dict[str, HashCollector]) -> None:
    """Save the hashes of the sides by name; the metadata state the hash from which they are dropped."""
    arrays = {side: collector.finish() for side, collector in collectors.items()}
    ends = {side: str(collector.end) for side, collector in collectors.items() if collector.end is not None}
    path.write_bytes(save(arrays, metadata=ends))


class TrainedTexts(NamedTuple):
    """The sorted hashes of the training texts of each side, and the hash from which they are dropped."""

    sides: dict[str, np.ndarray]
    ends: dict[str, int]

    def seen(self, side: str, texts: Sequence[str]) -> np.ndarray:
        """Whether each text was trained on. If only a sample of the training texts is stored, only those can be
        found.
        """
        return occurs_in(text_hashes(texts), self.sides.get(side, np.zeros(0, np.uint64)))

    def share(self, side: str) -> float:
        """The share of the training texts that is stored."""
        return self.ends[side] / 2**64 if side in self.ends else 1.0


def read(path: Path) -> TrainedTexts:
    try:
        with safe_open(path, "numpy") as file:
            sides = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
            ends = {side: int(end) for side, end in (file.metadata() or {}).items()}
        if not all(own.dtype == np.uint64 and own.ndim == 1 for own in sides.values()) or not all(
            0 <= end <= 2**64 for end in ends.values()
        ):
            raise ValueError("it contains values that are not text hashes")
        return TrainedTexts(sides, ends)
    except Exception as error:
        raise ValueError(f"{path} is damaged ({error}): remove it, or copy it again") from error


class Seen(NamedTuple):
    """How many of `total` test pairs have a source, a reference or either that was trained on, as far as is known."""

    sources: int
    references: int
    either: int
    total: int
    share: float

    @property
    def any(self) -> bool:
        return self.either > 0

    def describe(self) -> str:
        """As a sentence, without its subject."""
        found = (
            f"{self.either:,} of {self.total:,} test pairs ({self.sources:,} sources, {self.references:,} references)"
        )
        if self.share == 1.0:
            return f"was trained on texts of {found}: scores on them say little about unseen text"
        return (
            f"was trained on texts of {found} at least, judging by {self.share:.1%} of the training texts: scores on "
            "them say "
            "little about new text"
        )


def count_seen(trained: TrainedTexts, sources: Sequence[str], references: Sequence[Sequence[str]]) -> Seen:
    """Count test pairs with a side that was trained on; a pair may have several references."""
    first = trained.seen("source", sources)
    second = np.any([trained.seen("target", texts) for texts in references], axis=0)
    share = min(trained.share("source"), trained.share("target"))
    return Seen(int(first.sum()), int(second.sum()), int((first | second).sum()), len(sources), share)


class SeenLines(NamedTuple):
    """How many of `total` lines of a text, and how many of its characters, were trained on, as far as is known."""

    lines: int
    total: int
    characters: float
    share: float

    @property
    def any(self) -> bool:
        return self.lines > 0

    def describe(self) -> str:
        """As a sentence, without its subject."""
        known = "" if self.share == 1.0 else f" at least, judging by {self.share:.1%} of the training lines"
        found = (
            f"{self.lines:,} of the {self.total:,} lines of this text ({self.characters:.1%} of its characters){known}"
        )
        return f"was trained on {found}: scores on them say little about unseen text"


def count_seen_lines(trained: TrainedTexts, lines: Sequence[str]) -> SeenLines:
    """Count lines of a text that were trained on; short lines do not count."""
    found = trained.seen("text", lines) & np.fromiter(map(is_long, lines), dtype=bool, count=len(lines))
    sizes = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
    characters = float(sizes[found].sum() / max(1, sizes.sum()))
    return SeenLines(int(found.sum()), len(lines), characters, trained.share("text"))


class SeenTexts(NamedTuple):
    """How many of `total` test texts were trained on, as far as is known."""

    texts: int
    total: int
    share: float

    @property
    def any(self) -> bool:
        return self.texts > 0

    def describe(self) -> str:
        """As a sentence, without its subject."""
        known = "" if self.share == 1.0 else f" at least, judging by {self.share:.1%} of the training texts"
        found = f"{self.texts:,} of the {self.total:,} test texts{known}"
        return f"was trained on {found}: scores on them say little about unseen text"


def count_seen_texts(trained: TrainedTexts, texts: Sequence[str]) -> SeenTexts:
    """Count texts that were trained on, whatever their labels were."""
    return SeenTexts(int(trained.seen("source", texts).sum()), len(texts), trained.share("source"))


def find(folder: Path) -> Path | None:
    """The hash file of a run, or of the run that a model folder belongs to; None if there is none."""
    run = folder.absolute().parent if folder.name == "model" else folder
    return run / FILE if (run / FILE).is_file() else None
