"""A parallel corpus as token ids in memory-mapped arrays: built once, reused, of any size.

A folder holds for each side the concatenated ids of all sentences (`source.ids`), the offsets of the sentences
(`source.offsets`), and the text itself if subwords are sampled anew in every epoch.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from heed.data import contamination, filters, readers
from heed.data.contamination import HashCollector
from heed.data.filters import FilterReport, FiltersConfig, RejectedWriter
from heed.data.readers import Line
from heed.files import atomic_folder
from heed.vocabularies.ragged import RaggedRows, slice_indices
from heed.vocabularies.sentencepiece import clean
from heed.vocabularies.vocabulary import Pair

CHUNK = 10_000
SIDES = ("source", "target")
HELD_OUT = "held-out.tsv"
SKIP_REASONS = (None, "duplicate", "held out", *(rule for rule in filters.RULES if rule != "duplicate"))


class CorpusSide:
    """One side of a corpus: `side[i]` are the ids of sentence i."""

    def __init__(self, folder: Path, side: str):
        self.offsets = _memory_map(folder / f"{side}.offsets", np.dtype(np.int64))
        self.ids = _memory_map(folder / f"{side}.ids", np.dtype(_metadata(folder)["dtype"]))
        self.lengths = np.diff(self.offsets).astype(np.int32)
        self.text = CorpusText(folder, side) if (folder / f"{side}.text").is_file() else None

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def take(self, rows: np.ndarray) -> RaggedRows:
        """The ids of some sentences."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        return RaggedRows(self.ids[slice_indices(starts, lengths)], lengths)


class CorpusText:
    """The text of one side of a corpus."""

    def __init__(self, folder: Path, side: str):
        self.bytes = _memory_map(folder / f"{side}.text", np.dtype(np.uint8))
        self.offsets = _memory_map(folder / f"{side}.text.offsets", np.dtype(np.int64))

    def __getitem__(self, i: int) -> str:
        return self.bytes[self.offsets[i] : self.offsets[i + 1]].tobytes().decode("utf-8")

    def take(self, rows: np.ndarray) -> RaggedRows:
        """The UTF-8 bytes of some texts, each followed by a space."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts + 1
        text = self.bytes[np.minimum(slice_indices(starts, lengths), len(self.bytes) - 1)]
        text[lengths.cumsum() - 1] = ord(" ")
        return RaggedRows(text, lengths)


class Corpus:
    """A prepared corpus, opened from its folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        metadata = _metadata(folder)
        self.source = CorpusSide(folder, "source")
        self.target = CorpusSide(folder, "target") if "target" in metadata["sides"] else self.source
        self.report = FilterReport(**metadata["report"])

    def __len__(self) -> int:
        return len(self.source)

    @property
    def longest(self) -> int:
        """The number of tokens of the longest source."""
        return int(self.source.lengths.max())

    def __reduce__(self):
        return Corpus, (self.folder,)  # another process opens the same files


def build(
    folder: Path,
    lines: Callable[[], Iterable[Line]],
    vocabularies: Pair,
    config: FiltersConfig,
    *,
    skip: np.ndarray,
    with_text: bool = False,
    sides: Sequence[str] = SIDES,
    progress: Callable[[int], None] = lambda count: None,
) -> Corpus:
    """Encode `lines` into `folder`, without the pairs that `skip` marks or the filters reject.

    Text without translations has one of the `sides`, and its lines hold it twice. The folder appears only when complete.
    """
    dtype = np.uint16 if max(map(len, vocabularies)) <= 2**16 else np.uint32
    report = FilterReport()
    with atomic_folder(folder, "keep") as unfinished:
        with ExitStack() as files, open(unfinished / HELD_OUT, "w", encoding="utf-8") as held:
            rejected = files.enter_context(RejectedWriter(unfinished / "rejected.tsv"))
            ids = [_Writer(unfinished / f"{side}.ids", unfinished / f"{side}.offsets", files) for side in sides]
            texts = [unfinished / f"{side}.text" for side in sides if with_text]
            texts = [_Writer(path, path.with_suffix(".text.offsets"), files) for path in texts]
            trained = {side: HashCollector() for side in sides}
            rest = iter(lines())
            while chunk := list(islice(rest, CHUNK)):
                held.writelines(_held_out_rows(chunk, skip, report.read, vocabularies))
                for line, encoded in _kept(chunk, vocabularies, config, skip, report, rejected):
                    for writer, row in zip(ids, encoded, strict=False):
                        writer.append(np.asarray(row, dtype=dtype).tobytes(), len(row))
                    for side, text in zip(sides, line[:2], strict=False):
                        trained[side].add(text)
                    for writer, row in zip(texts, map(str.encode, line[:2]), strict=False):
                        writer.append(row, len(row))
                progress(report.read)
        if not report.kept:
            held_out = np.count_nonzero(skip == SKIP_REASONS.index("held out"))
            others = f"{held_out:,} are held out for validation (data.holdout) and " if held_out else ""
            others += f"the filters took {report.describe()}"
            raise ValueError(f"no pair is left to train on: of {report.read:,}, {others}")
        contamination.write(unfinished / contamination.FILE, trained)
        metadata = {"dtype": np.dtype(dtype).name, "sides": list(sides), "report": asdict(report)}
        (unfinished / "corpus.json").write_text(json.dumps(metadata, indent=2))
    return Corpus(folder)


def _kept(
    chunk: list[Line], pair: Pair, config: FiltersConfig, skip: np.ndarray, report: FilterReport, out: RejectedWriter
) -> Iterator[tuple[Line, tuple[list[int], list[int]]]]:
    """The pairs of a chunk that are trained on, with their ids; the others are counted and written down."""
    start, report.read = report.read, report.read + len(chunk)
    candidates = []
    for number, raw in enumerate(chunk, start):
        line = raw._replace(source=pair[0].clean(raw.source), target=pair[1].clean(raw.target))
        rule = filters.rule_for_text(config, line.source, line.target) or SKIP_REASONS[skip[number]]
        if rule is None:
            candidates.append(line)
        elif rule in report.taken:
            report.taken[rule] += 1
            out.write(rule, line)
    encoded = [vocabulary.encode([line[side] for line in candidates]) for side, vocabulary in enumerate(pair)]
    for line, source, target in zip(candidates, *encoded, strict=True):
        rule = filters.rule_for_length(config, len(source), len(target))
        if rule is None:
            report.kept += 1
            yield line, (source, target)
        else:
            report.taken[rule] += 1
            out.write(rule, line)


def _held_out_rows(chunk: Sequence[Line], skip: np.ndarray, start: int, vocabularies: Pair) -> Iterator[str]:
    for number, line in enumerate(chunk, start):
        if SKIP_REASONS[skip[number]] == "held out":
            sides = zip((line.source, line.target), vocabularies, strict=True)
            yield "\t".join(vocabulary.clean(text).replace("\t", " ") for text, vocabulary in sides) + "\n"


def read_held_out(folder: Path) -> list[Line]:
    """The pairs that were held out for validation."""
    return list(readers.table(folder / HELD_OUT, [1, 2]))


def find_skipped(lines: Iterable[Line], config: FiltersConfig, holdout: int = 0, share: float = 1.0) -> np.ndarray:
    """For each pair of a corpus an index into SKIP_REASONS: a duplicate, held out for validation, or neither.

    Takes nine bytes of memory a pair. `data/cleaning.py` does the same with all rules.
    """
    checked = np.fromiter((_hash_pair(line, config) for line in lines), dtype=[("hash", np.uint64), ("good", bool)])
    repeated = find_repeated(checked["hash"])
    return choose_skipped(checked["hash"], repeated, checked["good"], config.duplicates, holdout, share)


def find_repeated(hashes: np.ndarray) -> np.ndarray:
    """Whether each hash occurred before."""
    order = np.argsort(hashes, kind="stable")
    repeated = np.zeros(len(hashes), dtype=bool)
    repeated[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    return repeated


def choose_skipped(
    hashes: np.ndarray, repeated: np.ndarray, good: np.ndarray, duplicates: bool, holdout: int, share: float
) -> np.ndarray:
    """Which pairs are `duplicates`, if these are filtered, and which are held out for validation, of the `good` ones.

    Pairs are held out by a hash of their text, so regardless of their order; at most this `share` of the corpus, but at
    least one.
    """
    reasons = np.zeros(len(hashes), dtype=np.uint8)
    if duplicates:
        reasons[repeated] = 1
    if holdout:
        candidates = np.flatnonzero(good & ~repeated)
        candidates = candidates[np.argsort(hashes[candidates], kind="stable")]
        count = min(holdout, max(1, int(share * len(candidates))))
        reasons[np.isin(hashes, hashes[candidates[:count]])] = 2
        reasons[repeated & (reasons == 2)] = 1
    return reasons


def pair_hash(source: str, target: str) -> int:
    """64 bits of a hash of a pair of texts."""
    return int.from_bytes(hashlib.blake2b(f"{source}\t{target}".encode(), digest_size=8).digest(), "little")


def _hash_pair(line: Line, config: FiltersConfig) -> tuple[int, bool]:
    """A hash of a pair, and whether its text passes the filters."""
    source, target = clean(line.source), clean(line.target)
    return pair_hash(source, target), filters.rule_for_text(config, source, target) is None


class _Writer:
    """Appends rows to a file, and the offsets of their ends to another."""

    def __init__(self, rows: Path, offsets: Path, files: ExitStack):
        self.rows, self.offsets = (files.enter_context(path.open("wb")) for path in (rows, offsets))
        self.end = 0
        self.append(b"", 0)

    def append(self, row: bytes, length: int) -> None:
        self.end += length
        self.rows.write(row)
        self.offsets.write(np.int64(self.end).tobytes())


def _memory_map(path: Path, dtype: np.dtype) -> np.ndarray:
    """A memory-mapped file as a plain array, because np.memmap is slow to slice."""
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray) if path.stat().st_size else np.zeros(0, dtype)


def _metadata(folder: Path) -> dict:
    return json.loads((folder / "corpus.json").read_text())
