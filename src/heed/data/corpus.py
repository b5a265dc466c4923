"""A parallel corpus as token ids in memory-mapped arrays: built once, reused, of any size. For each side, the folder
has the concatenated ids of all sentences (`source.ids`), their offsets (`source.offsets`), and the text itself if
subwords are sampled in every epoch.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from heed.data import contamination, filters, readers
from heed.data.contamination import HashCollector
from heed.data.duplicates import SKIP_REASONS
from heed.data.filters import FilterReport, FiltersConfig, RejectedWriter
from heed.data.readers import Line
from heed.files import atomic_folder, open_checked, write_sums
from heed.vocabularies.ragged import RaggedRows, slice_indices
from heed.vocabularies.vocabulary import Pair

CHUNK = 10_000
SIDES = ("source", "target")
HELD_OUT = "held-out.tsv"


class CorpusSide:
    """One side of a corpus: `side[i]` are the ids of sentence i."""

    def __init__(self, folder: Path, side: str):
        self.offsets = _memory_map(folder / f"{side}.offsets", np.dtype(np.int64))
        self.ids = _memory_map(folder / f"{side}.ids", np.dtype(_metadata(folder)["dtype"]))
        _check_offsets(folder / f"{side}.offsets", self.offsets, self.ids)
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
        _check_offsets(folder / f"{side}.text.offsets", self.offsets, self.bytes)

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
        self.report, self.facts = FilterReport(**metadata["report"]), metadata.get("facts", {})
        parts = metadata.get("parts") or [{"report": metadata["report"], "prefix": []}]
        self.reports = [FilterReport(**part["report"]) for part in parts]  # of each of several corpora
        self.prefixes = [part["prefix"] for part in parts]  # the ids of the tags that each source begins with
        self.counts = [report.kept for report in self.reports]  # their rows follow each other
        if {len(self.source), len(self.target)} != {sum(self.counts)}:
            raise ValueError(
                f"it has {len(self.source):,} sources and {len(self.target):,} targets, not {sum(self.counts):,}"
            )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def longest(self) -> int:
        """The length of the longest source in tokens."""
        return int(self.source.lengths.max())

    def prefixes_of(self, rows: np.ndarray) -> list[list[int]]:
        """The ids of the tags that the sources of some rows begin with."""
        corpora = np.searchsorted(np.cumsum(self.counts), rows, side="right")
        return [self.prefixes[number] for number in corpora.tolist()]

    def __reduce__(self):
        return open_checked, (Corpus, self.folder)  # another process opens the same files


def build(  # noqa: PLR0913 (the parts of a corpus, each by its name)
    folder: Path,
    lines: Callable[[], Iterable[Line]],
    vocabularies: Pair,
    config: FiltersConfig,
    *,
    skip: np.ndarray,
    with_text: bool = False,
    sides: Sequence[str] = SIDES,
    prefixes: Sequence[list[int]] = ((),),
    progress: Callable[[int], None] = lambda count: None,
) -> Corpus:
    """Encode `lines` into `folder`, without pairs that are marked in `skip` or rejected by the filters. Monolingual
    text has a single side, which its lines contain twice. `prefixes` are, for each corpus, the ids put before its
    sources. The folder appears only when complete.
    """
    dtype = np.uint16 if max(map(len, vocabularies)) <= 2**16 else np.uint32
    reports, read = [FilterReport() for _ in prefixes], 0
    with atomic_folder(folder, "keep") as unfinished:
        with ExitStack() as files, open(unfinished / HELD_OUT, "w", encoding="utf-8", newline="\n") as held:
            rejected = files.enter_context(RejectedWriter(unfinished / "rejected.tsv"))
            ids = [_Writer(unfinished / f"{side}.ids", unfinished / f"{side}.offsets", files) for side in sides]
            texts = [unfinished / f"{side}.text" for side in sides if with_text]
            texts = [_Writer(path, path.with_suffix(".text.offsets"), files) for path in texts]
            trained = {side: HashCollector() for side in sides}
            for chunk in _chunks(lines()):
                number = chunk[0].corpus
                own = skip[read : read + len(chunk)]
                held.writelines(_held_out_rows(chunk, own, vocabularies))
                for line, encoded in _kept(
                    chunk, vocabularies, config, own, reports[number], rejected, prefixes[number]
                ):
                    for writer, row in zip(ids, encoded, strict=False):
                        writer.append(np.asarray(row, dtype=dtype).tobytes(), len(row))
                    for side, text in zip(sides, line[:2], strict=False):
                        trained[side].add(text)
                    for writer, row in zip(texts, map(str.encode, line[:2]), strict=False):
                        writer.append(row, len(row))
                read += len(chunk)
                progress(read)
        report = filters.total(reports)
        if not report.kept:
            held_out = np.count_nonzero(skip == SKIP_REASONS.index("held out"))
            others = f"{held_out:,} are held out for validation (data.holdout) and " if held_out else ""
            others += f"the filters removed {report.describe()}"
            raise ValueError(f"no training pair is left: of {report.read:,}, {others}")
        contamination.write(unfinished / contamination.FILE, trained)
        metadata = {"dtype": np.dtype(dtype).name, "sides": list(sides), "report": asdict(report)}
        each = zip(reports, prefixes, strict=True)
        metadata["parts"] = [{"report": asdict(own), "prefix": list(prefix)} for own, prefix in each]
        _finish(unfinished, metadata)
    return Corpus(folder)


def write_rows(
    folder: Path,
    rows: Iterable[tuple[Sequence[int], Sequence[int]]],
    largest: int,
    facts: Mapping[str, Any],
    texts: Iterable[str] = (),
) -> Corpus:
    """A corpus of rows of ids below `largest`, already encoded; `facts` describes them, `texts` are their texts."""
    dtype, count = np.dtype(np.uint16 if largest <= 2**16 else np.uint32), 0
    with atomic_folder(folder, "keep") as unfinished:
        with ExitStack() as files:
            writers = [_Writer(unfinished / f"{side}.ids", unfinished / f"{side}.offsets", files) for side in SIDES]
            for row in rows:
                count += 1
                for writer, ids in zip(writers, row, strict=True):
                    writer.append(np.asarray(ids, dtype=dtype).tobytes(), len(ids))
        trained = HashCollector()
        for text in texts:
            trained.add(text)
        contamination.write(unfinished / contamination.FILE, {SIDES[0]: trained})
        metadata = {"dtype": dtype.name, "sides": SIDES, "report": asdict(FilterReport(count, count)), "facts": facts}
        _finish(unfinished, metadata)
    return Corpus(folder)


def _chunks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines in chunks of one corpus."""
    for _, own in groupby(lines, lambda line: line.corpus):
        while chunk := list(islice(own, CHUNK)):
            yield chunk


def _kept(
    chunk: list[Line],
    pair: Pair,
    config: FiltersConfig,
    skip: np.ndarray,
    report: FilterReport,
    out: RejectedWriter,
    prefix: Sequence[int],
) -> Iterator[tuple[Line, tuple[list[int], list[int]]]]:
    """The training pairs of a chunk, with their ids; rejected pairs are counted and reported."""
    report.read += len(chunk)
    candidates = []
    for number, raw in enumerate(chunk):
        line = raw._replace(source=pair[0].clean(raw.source), target=pair[1].clean(raw.target))
        rule = filters.rule_for_text(config, line.source, line.target) or SKIP_REASONS[skip[number]]
        if rule is None:
            candidates.append(line)
        elif rule in report.taken:
            report.taken[rule] += 1
            out.write(rule, line)
    encoded = [vocabulary.encode([line[side] for line in candidates]) for side, vocabulary in enumerate(pair)]
    encoded[0] = [[*prefix, *ids] for ids in encoded[0]] if prefix else encoded[0]
    for line, source, target in zip(candidates, *encoded, strict=True):
        rule = filters.rule_for_length(config, len(source), len(target))
        if rule is None:
            report.kept += 1
            yield line, (source, target)
        else:
            report.taken[rule] += 1
            out.write(rule, line)


def _held_out_rows(chunk: Sequence[Line], skip: np.ndarray, vocabularies: Pair) -> Iterator[str]:
    for number, line in enumerate(chunk):
        if SKIP_REASONS[skip[number]] == "held out":
            sides = zip((line.source, line.target), vocabularies, strict=True)
            cells = [vocabulary.clean(text).replace("\t", " ") for text, vocabulary in sides]
            yield "\t".join([*cells, str(line.corpus)]) + "\n"


def read_held_out(folder: Path) -> list[Line]:
    """The pairs that were held out for validation."""
    found = []
    for number, row in enumerate(readers.lines(folder / HELD_OUT), 1):
        source, target, *corpus = row.split("\t")  # an earlier version wrote no corpus
        found.append(Line(source, target, f"{HELD_OUT}:{number}", int(corpus[0]) if corpus else 0))
    return found


class _Writer:
    """Appends rows to a file, and their end offsets to another."""

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


def _check_offsets(path: Path, offsets: np.ndarray, items: np.ndarray) -> None:
    """Refuse offsets that do not run from the first item to the last, before they are used."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(items) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"{path.name} does not match the data it indexes")


def _finish(folder: Path, metadata: Mapping[str, Any]) -> None:
    """Write the description of a corpus, and the checksums of its files."""
    (folder / "corpus.json").write_text(json.dumps(metadata, indent=2), "utf-8", newline="\n")
    write_sums(folder)


def _metadata(folder: Path) -> dict:
    return json.loads((folder / "corpus.json").read_text("utf-8"))
