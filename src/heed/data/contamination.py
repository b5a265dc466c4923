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
BEFORE, UNKNOWN = "before", "unknown"  # names in the file: see TrainedTexts
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


def pairs_occur_in(pairs: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
    """Whether each of these pairs of texts is among the other pairs; both are given as the hashes of their sides."""
    mixed, wanted = (own[0] * np.uint64(0x9E3779B97F4A7C15) + own[1] for own in (pairs, others))
    return np.isin(mixed, wanted) & (pairs[0] != NO_TEXT) & (pairs[1] != NO_TEXT)


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


class TrainedTexts(NamedTuple):
    """The sorted hashes of the training texts of each side, and the hash from which they are dropped. The side BEFORE
    has the texts of the model that training started from, whatever their side was; `known` is whether these are all.
    `several`: the model has several directions, so that a text counts on either side.
    """

    sides: dict[str, np.ndarray]
    ends: dict[str, int]
    known: bool = True
    several: bool = False

    def seen(self, side: str, texts: Sequence[str]) -> np.ndarray:
        """Whether each text was trained on. If only a sample of the training texts is stored, only those can be
        found.
        """
        return self._occur(text_hashes(texts), side)

    def seen_pairs(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The same of the sides of pairs, which may also have been trained on in the other direction: then both sides
        must be, unless the model has several directions.
        """
        hashes = text_hashes(sources), text_hashes(targets)
        first, second = self._occur(hashes[0], "target"), self._occur(hashes[1], "source")
        if not self.several:
            first = second = first & second
        return self._occur(hashes[0], "source") | first, self._occur(hashes[1], "target") | second

    def _occur(self, hashes: np.ndarray, side: str) -> np.ndarray:
        """As `occurs_in`, but fast for many sorted hashes."""
        own = self.sides.get(side, hashes[:0])
        places = np.searchsorted(own, hashes)
        inside = places < len(own)
        return (hashes != NO_TEXT) & inside & (own[np.where(inside, places, 0)] == hashes if len(own) else inside)

    def share(self, *sides: str) -> float:
        """The share of the training texts of these sides that is stored, and of those from before."""
        return min(self.ends.get(side, 2**64) / 2**64 for side in (*sides, BEFORE))

    def as_before(self) -> "TrainedTexts":
        """All texts as those of a model that training starts from; of too many, those with the smallest hashes."""
        end = min(self.ends.values(), default=2**64)
        found = np.unique(np.concatenate([np.zeros(0, np.uint64), *self.sides.values()]))
        found = found[found <= np.uint64(end - 1)] if end else found[:0]
        if len(found) > MAX_HASHES:
            found, end = found[:MAX_HASHES], int(found[MAX_HASHES])
        return TrainedTexts({BEFORE: found}, {BEFORE: end} if end < 2**64 else {}, self.known)

    def after(self, before: "TrainedTexts") -> "TrainedTexts":
        """These, with the texts of the model that training started from."""
        return TrainedTexts(self.sides | before.sides, self.ends | before.ends, before.known)

    def to_bytes(self) -> bytes:
        facts = {side: str(end) for side, end in self.ends.items()} | ({} if self.known else {UNKNOWN: BEFORE})
        return save(self.sides, metadata=facts)


NOT_KNOWN = TrainedTexts({}, {}, known=False)  # of a model without a file


def write(path: Path, collectors: dict[str, HashCollector]) -> None:
    """Save the hashes of the sides by name; the metadata state the hash from which they are dropped."""
    sides = {side: collector.finish() for side, collector in collectors.items()}
    ends = {side: collector.end for side, collector in collectors.items() if collector.end is not None}
    path.write_bytes(TrainedTexts(sides, ends).to_bytes())


def read(path: Path) -> TrainedTexts:
    try:
        with safe_open(path, "numpy") as file:
            sides = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
            facts = dict(file.metadata() or {})
        known = facts.pop(UNKNOWN, None) is None
        ends = {side: int(end) for side, end in facts.items()}
        right = all(own.dtype == np.uint64 and own.ndim == 1 and (own[1:] > own[:-1]).all() for own in sides.values())
        if not right or not all(0 <= end <= 2**64 for end in ends.values()):
            raise ValueError("it contains values that are not text hashes")
        return TrainedTexts(sides, ends, known)
    except Exception as error:
        raise ValueError(f"{path} is damaged ({error}): remove it, or copy it again") from error


class Seen(NamedTuple):
    """How many of `total` test pairs have a source, a reference or either that was trained on, as far as is known;
    `before` only by the model that training started from.
    """

    sources: int
    references: int
    either: int
    total: int
    share: float
    before: int = 0

    @property
    def any(self) -> bool:
        return self.either > 0

    def describe(self) -> str:
        """As a sentence, without its subject."""
        sides = f"{_count(self.sources, 'source')}, {_count(self.references, 'reference')}"
        found = f"{self.either:,} of {self.total:,} test pairs ({sides}){_qualified(self, 'texts')}"
        return f"was trained on texts of {found}: scores on them say little about unseen text"


def count_seen(trained: TrainedTexts, sources: Sequence[str], references: Sequence[Sequence[str]]) -> Seen:
    """Count test pairs with a side that was trained on; a pair may have several references."""
    first, second = np.any([trained.seen_pairs(sources, texts) for texts in references], axis=0)
    own, first = first | second, first | trained.seen(BEFORE, sources)
    second |= np.any([trained.seen(BEFORE, texts) for texts in references], axis=0)
    either = first | second
    counts = [int(found.sum()) for found in (first, second, either)]
    return Seen(*counts, len(sources), trained.share("source", "target"), int((either & ~own).sum()))


class SeenLines(NamedTuple):
    """How many of `total` lines of a text, and how many of its characters, were trained on, as far as is known;
    `before` is how many lines only by the model that training started from.
    """

    lines: int
    total: int
    characters: float
    share: float
    before: int = 0

    @property
    def any(self) -> bool:
        return self.lines > 0

    def describe(self) -> str:
        """As a sentence, without its subject."""
        found = f"{self.lines:,} of the {self.total:,} lines of this text ({self.characters:.1%} of its characters)"
        return f"was trained on {found}{_qualified(self, 'lines')}: scores on them say little about unseen text"


def count_seen_lines(trained: TrainedTexts, lines: Sequence[str]) -> SeenLines:
    """Count lines of a text that were trained on; short lines do not count."""
    long = np.fromiter(map(is_long, lines), dtype=bool, count=len(lines))
    own, before = trained.seen("text", lines) & long, trained.seen(BEFORE, lines) & long
    found, sizes = own | before, np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
    characters = float(sizes[found].sum() / max(1, sizes.sum()))
    return SeenLines(int(found.sum()), len(lines), characters, trained.share("text"), int((before & ~own).sum()))


class SeenTexts(NamedTuple):
    """How many of `total` test texts were trained on, as far as is known; `before` only by the model that training
    started from.
    """

    texts: int
    total: int
    share: float
    before: int = 0

    @property
    def any(self) -> bool:
        return self.texts > 0

    def describe(self) -> str:
        """As a sentence, without its subject."""
        found = f"{self.texts:,} of the {self.total:,} test texts{_qualified(self, 'texts')}"
        return f"was trained on {found}: scores on them say little about unseen text"


def count_seen_texts(trained: TrainedTexts, texts: Sequence[str]) -> SeenTexts:
    """Count texts that were trained on, whatever their labels were."""
    own, before = trained.seen("source", texts), trained.seen(BEFORE, texts)
    counts = int((own | before).sum()), int((before & ~own).sum())
    return SeenTexts(counts[0], len(texts), trained.share("source"), counts[1])


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _qualified(found: Seen | SeenLines | SeenTexts, what: str) -> str:
    """What a count is based on, if not on all texts of this training alone."""
    before = f", {found.before:,} of them only before fine-tuning" if found.before else ""
    if found.share == 1.0:
        return before
    return f" at least{before}, judging by {found.share:.1%} of the training {what}"


def find(folder: Path) -> Path | None:
    """The hash file of a run, or of the run that a model folder belongs to; None if there is none."""
    run = folder.absolute().parent if folder.name == "model" else folder
    return run / FILE if (run / FILE).is_file() else None
