"""A parallel corpus as token ids in memory-mapped arrays: built once, reused, of any size.

A folder holds for each side the concatenated ids of all sentences (`source.ids`), the offsets of the sentences
(`source.offsets`), and the text itself if subwords are sampled anew in every epoch.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from heed.data import filters, readers
from heed.data.filters import FilterReport, FiltersConfig, RejectedWriter
from heed.data.readers import Line
from heed.files import atomic_folder
from heed.vocabularies.ragged import RaggedRows, slice_indices
from heed.vocabularies.sentencepiece import clean
from heed.vocabularies.vocabulary import Pair

CHUNK = 10_000
SIDES = ("source", "target")
HELD_OUT = "held-out.tsv"
SKIP_REASONS = (None, "duplicate", "held out")


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
    subwords: Pair,
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
    dtype = np.uint16 if max(map(len, subwords)) <= 2**16 else np.uint32
    report = FilterReport()
    with atomic_folder(folder, "keep") as unfinished:
        writers = [_Writer(unfinished, side, dtype, with_text) for side in sides]
        rejected = RejectedWriter(unfinished / "rejected.tsv")
        with writers[0], writers[-1], rejected, open(unfinished / HELD_OUT, "w", encoding="utf-8") as held:
            for chunk in _chunks(lines(), CHUNK):
                held.writelines(_held_out_rows(chunk, skip, report.read, subwords))
                for line, ids in _kept(chunk, subwords, config, skip, report, rejected):
                    for writer, text, side_ids in zip(writers, (line.source, line.target), ids, strict=False):
                        writer.append(text, side_ids)
                progress(report.read)
        if not report.kept:
            raise ValueError(_nothing_left(report, int(np.count_nonzero(skip == SKIP_REASONS.index("held out")))))
        metadata = {"dtype": np.dtype(dtype).name, "sides": list(sides), "report": asdict(report)}
        (unfinished / "corpus.json").write_text(json.dumps(metadata, indent=2))
    return Corpus(folder)


def _kept(
    chunk: Sequence[Line],
    subwords: Pair,
    config: FiltersConfig,
    skip: np.ndarray,
    report: FilterReport,
    rejected: RejectedWriter,
) -> Iterator[tuple[Line, tuple[list[int], list[int]]]]:
    """The pairs of a chunk that are trained on, with their ids; the others are counted and written down."""
    start, report.read = report.read, report.read + len(chunk)
    candidates = []
    for number, raw in enumerate(chunk, start):
        line = raw._replace(source=subwords[0].clean(raw.source), target=subwords[1].clean(raw.target))
        rule = filters.rule_for_text(config, line.source, line.target) or SKIP_REASONS[skip[number]]
        if rule is None:
            candidates.append(line)
        elif rule in report.taken:
            report.taken[rule] += 1
            rejected.write(rule, line)
    encoded = [vocabulary.encode([line[side] for line in candidates]) for side, vocabulary in enumerate(subwords)]
    for line, source, target in zip(candidates, *encoded, strict=True):
        rule = filters.rule_for_length(config, len(source), len(target))
        if rule is None:
            report.kept += 1
            yield line, (source, target)
        else:
            report.taken[rule] += 1
            rejected.write(rule, line)


def _held_out_rows(chunk: Sequence[Line], skip: np.ndarray, start: int, subwords: Pair) -> Iterator[str]:
    for number, line in enumerate(chunk, start):
        if SKIP_REASONS[skip[number]] == "held out":
            sides = zip((line.source, line.target), subwords, strict=True)
            yield "\t".join(vocabulary.clean(text).replace("\t", " ") for text, vocabulary in sides) + "\n"


def read_held_out(folder: Path) -> list[Line]:
    """The pairs that were held out for validation."""
    return list(readers.table(folder / HELD_OUT, [1, 2]))


def find_skipped(lines: Iterable[Line], config: FiltersConfig, holdout: int = 0, share: float = 1.0) -> np.ndarray:
    """For each pair of a corpus an index into SKIP_REASONS: a duplicate, held out for validation, or neither.

    Takes nine bytes of memory a pair. Pairs are held out by a hash of their text, so regardless of their order;
    at most this `share` of the corpus, but at least one.
    """
    checked = np.fromiter((_hash_pair(line, config) for line in lines), dtype=[("hash", np.uint64), ("good", bool)])
    hashes, good = checked["hash"], checked["good"]
    reasons = np.zeros(len(hashes), dtype=np.uint8)
    order = np.argsort(hashes, kind="stable")
    repeated = np.zeros(len(hashes), dtype=bool)
    repeated[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    if config.duplicates:
        reasons[repeated] = 1
    if holdout:
        candidates = order[(good & ~repeated)[order]]
        count = min(holdout, max(1, int(share * len(candidates))))
        reasons[np.isin(hashes, hashes[candidates[:count]])] = 2
        reasons[repeated & (reasons == 2)] = 1
    return reasons


def _hash_pair(line: Line, config: FiltersConfig) -> tuple[int, bool]:
    """A hash of a pair, and whether its text passes the filters."""
    source, target = clean(line.source), clean(line.target)
    digest = hashlib.blake2b(f"{source}\t{target}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little"), filters.rule_for_text(config, source, target) is None


class _Writer:
    """Appends one side of a corpus to its files."""

    def __init__(self, folder: Path, side: str, dtype: type, with_text: bool):
        self.dtype = dtype
        self.ids, self.offsets = open(folder / f"{side}.ids", "wb"), open(folder / f"{side}.offsets", "wb")  # noqa: SIM115 (all closed in __exit__)
        self.files, self.end, self.text_end = [self.ids, self.offsets], 0, 0
        self.offsets.write(np.int64(0).tobytes())
        self.text = None
        if with_text:
            self.text = open(folder / f"{side}.text", "wb")  # noqa: SIM115
            self.text_offsets = open(folder / f"{side}.text.offsets", "wb")  # noqa: SIM115
            self.text_offsets.write(np.int64(0).tobytes())
            self.files += [self.text, self.text_offsets]

    def append(self, text: str, ids: Sequence[int]) -> None:
        self.ids.write(np.asarray(ids, dtype=self.dtype).tobytes())
        self.end += len(ids)
        self.offsets.write(np.int64(self.end).tobytes())
        if self.text is not None:
            self.text_end += self.text.write(text.encode())
            self.text_offsets.write(np.int64(self.text_end).tobytes())

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *error) -> None:
        for file in self.files:
            file.close()


def _nothing_left(report: FilterReport, held: int) -> str:
    held_out = f"{held:,} are held out for validation (data.holdout) and " if held else ""
    return f"no pair is left to train on: of {report.read:,}, {held_out}the filters took {report.describe()}"


def _chunks(lines: Iterable[Line], size: int) -> Iterator[list[Line]]:
    lines = iter(lines)
    while chunk := list(islice(lines, size)):
        yield chunk


def _memory_map(path: Path, dtype: np.dtype) -> np.ndarray:
    """A memory-mapped file as a plain array, because np.memmap is slow to slice."""
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray) if path.stat().st_size else np.zeros(0, dtype)


def _metadata(folder: Path) -> dict:
    return json.loads((folder / "corpus.json").read_text())
