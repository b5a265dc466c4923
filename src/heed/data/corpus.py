"""A parallel corpus as token ids in memory-mapped arrays: built once, re-used, of any size.

A folder holds for each side the ids of all sentences end to end (`source.ids`), where each begins
(`source.offsets`), and where subwords are to be sampled anew each time also the text itself.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np

from heed.data import filters, readers
from heed.data.filters import FiltersConfig, Rejected, Report
from heed.data.ragged import RaggedRows, places
from heed.data.readers import Line
from heed.files import atomic_folder
from heed.vocabularies.sentencepiece import clean
from heed.vocabularies.vocabulary import Pair

CHUNK = 10_000
SIDES = ("source", "target")
HELD_OUT = "held-out.tsv"


class Sentences:
    """One side of a corpus: `side[i]` are the ids of sentence i."""

    def __init__(self, folder: Path, side: str):
        self.offsets = _map(folder / f"{side}.offsets", np.dtype(np.int64))
        self.ids = _map(folder / f"{side}.ids", np.dtype(_facts(folder)["dtype"]))
        self.lengths = np.diff(self.offsets).astype(np.int32)
        self.text = Texts(folder, side) if (folder / f"{side}.text").is_file() else None

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def take(self, rows: np.ndarray) -> RaggedRows:
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        return RaggedRows(self.ids[places(starts, lengths)], lengths)


class Texts:
    """The text of one side."""

    def __init__(self, folder: Path, side: str):
        self.bytes = _map(folder / f"{side}.text", np.dtype(np.uint8))
        self.offsets = _map(folder / f"{side}.text.offsets", np.dtype(np.int64))

    def __getitem__(self, i: int) -> str:
        return self.bytes[self.offsets[i] : self.offsets[i + 1]].tobytes().decode("utf-8")

    def take(self, rows: np.ndarray) -> RaggedRows:
        """The bytes of some texts, and a space after each."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts + 1
        letters = self.bytes[np.minimum(places(starts, lengths), len(self.bytes) - 1)]
        letters[lengths.cumsum() - 1] = ord(" ")
        return RaggedRows(letters, lengths)


class Corpus:
    """A prepared corpus, opened."""

    def __init__(self, folder: Path):
        self.folder = folder
        facts = _facts(folder)
        self.source = Sentences(folder, "source")
        self.target = Sentences(folder, "target") if "target" in facts["sides"] else self.source
        self.report = Report(**facts["report"])

    def __len__(self) -> int:
        return len(self.source)

    @property
    def longest(self) -> int:
        """How many tokens the longest source has."""
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
    tell: Callable[[int], None] = lambda count: None,
) -> Corpus:
    """Encode what `lines` gives into `folder`, but for the pairs that `skip` marks and the filters take.

    Text without translations has one of the `sides`, and its lines hold it twice. The folder appears under its name only when it is complete.
    """
    dtype = np.uint16 if max(map(len, subwords)) <= 2**16 else np.uint32
    report = Report()
    with atomic_folder(folder, "keep") as aside:
        writers = [_Writer(aside, side, dtype, with_text) for side in sides]
        rejected = Rejected(aside / "rejected.tsv")
        with writers[0], writers[-1], rejected, open(aside / HELD_OUT, "w", encoding="utf-8") as held:
            for chunk in _chunks(lines(), CHUNK):
                held.writelines(_held(chunk, skip, report.read, subwords))
                for line, ids in _kept(chunk, subwords, config, skip, report, rejected):
                    for writer, text, side_ids in zip(writers, (line.source, line.target), ids, strict=False):
                        writer.append(text, side_ids)
                tell(report.read)
        if not report.kept:
            raise ValueError(_nothing_left(report, int(np.count_nonzero(skip == REASONS.index("held out")))))
        facts = {"dtype": np.dtype(dtype).name, "sides": list(sides), "report": asdict(report)}
        (aside / "corpus.json").write_text(json.dumps(facts, indent=2))
    return Corpus(folder)


def _kept(
    chunk: Sequence[Line],
    subwords: Pair,
    config: FiltersConfig,
    skip: np.ndarray,
    report: Report,
    out: Rejected,
) -> Iterator[tuple[Line, tuple[list[int], list[int]]]]:
    start, report.read = report.read, report.read + len(chunk)
    candidates = []
    for number, raw in enumerate(chunk, start):
        line = raw._replace(source=subwords[0].clean(raw.source), target=subwords[1].clean(raw.target))
        rule = filters.by_text(config, line.source, line.target) or REASONS[skip[number]]
        if rule is None:
            candidates.append(line)
        elif rule in report.taken:
            report.taken[rule] += 1
            out.write(rule, line)
    encoded = [part.encode([line[side] for line in candidates]) for side, part in enumerate(subwords)]
    for line, source, target in zip(candidates, *encoded, strict=True):
        rule = filters.by_length(config, len(source), len(target))
        if rule is None:
            report.kept += 1
            yield line, (source, target)
        else:
            report.taken[rule] += 1
            out.write(rule, line)


REASONS = (None, "duplicate", "held out")


def _held(chunk: Sequence[Line], skip: np.ndarray, start: int, subwords: Pair) -> Iterator[str]:
    for number, line in enumerate(chunk, start):
        if REASONS[skip[number]] == "held out":
            sides = zip((line.source, line.target), subwords, strict=True)
            yield "\t".join(part.clean(text).replace("\t", " ") for text, part in sides) + "\n"


def held_out(folder: Path) -> list[Line]:
    """The pairs that were set aside for validation."""
    return list(readers.table(folder / HELD_OUT, [1, 2]))


def survey(lines: Iterable[Line], config: FiltersConfig, holdout: int = 0, share: float = 1.0) -> np.ndarray:
    """For each pair of a corpus a number into REASONS: a duplicate, held out for validation, or neither.

    Nine bytes a pair are kept in memory. Pairs are held out by a hash of their text, so by no order;
    no more than this `share` of the corpus, but one at least.
    """
    seen = np.fromiter((_look(line, config) for line in lines), dtype=[("hash", np.uint64), ("good", bool)])
    hashes, good = seen["hash"], seen["good"]
    reasons = np.zeros(len(hashes), dtype=np.uint8)
    order = np.argsort(hashes, kind="stable")
    again = np.zeros(len(hashes), dtype=bool)
    again[order[1:]] = hashes[order[1:]] == hashes[order[:-1]]
    if config.duplicates:
        reasons[again] = 1
    if holdout:
        fit = order[(good & ~again)[order]]
        most = min(holdout, max(1, int(share * len(fit))))
        reasons[np.isin(hashes, hashes[fit[:most]])] = 2
        reasons[again & (reasons == 2)] = 1
    return reasons


def _look(line: Line, config: FiltersConfig) -> tuple[int, bool]:
    """A hash of a pair, and whether no rule takes it for its text."""
    source, target = clean(line.source), clean(line.target)
    digest = hashlib.blake2b(f"{source}\t{target}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little"), filters.by_text(config, source, target) is None


class _Writer:
    """Appends one side of a corpus to its files."""

    def __init__(self, folder: Path, side: str, dtype: type, with_text: bool):
        self.dtype = dtype
        self.ids, self.offsets = open(folder / f"{side}.ids", "wb"), open(folder / f"{side}.offsets", "wb")  # noqa: SIM115 (all closed in __exit__)
        self.files, self.place, self.text_place = [self.ids, self.offsets], 0, 0
        self.offsets.write(np.int64(0).tobytes())
        self.text = None
        if with_text:
            self.text = open(folder / f"{side}.text", "wb")  # noqa: SIM115
            self.text_offsets = open(folder / f"{side}.text.offsets", "wb")  # noqa: SIM115
            self.text_offsets.write(np.int64(0).tobytes())
            self.files += [self.text, self.text_offsets]

    def append(self, text: str, ids: Sequence[int]) -> None:
        self.ids.write(np.asarray(ids, dtype=self.dtype).tobytes())
        self.place += len(ids)
        self.offsets.write(np.int64(self.place).tobytes())
        if self.text is not None:
            self.text_place += self.text.write(text.encode())
            self.text_offsets.write(np.int64(self.text_place).tobytes())

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *error) -> None:
        for file in self.files:
            file.close()


def describe(report: Report) -> str:
    """What each rule took, in words."""
    taken = [f"{count:,} for {filters.RULES[rule]}" for rule, count in report.taken.items() if count]
    return ", ".join(taken) or "none"


def _nothing_left(report: Report, held: int) -> str:
    held_out = f"{held:,} are held out for validation (data.holdout) and " if held else ""
    return f"no pair is left to train on: of {report.read:,}, {held_out}the filters took {describe(report)}"


def _chunks(lines: Iterable[Line], size: int) -> Iterator[list[Line]]:
    lines = iter(lines)
    while chunk := list(islice(lines, size)):
        yield chunk


def _map(path: Path, dtype: np.dtype) -> np.ndarray:
    """A file as an array that is read as it is used; a plain array, since np.memmap is slow to slice."""
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray) if path.stat().st_size else np.zeros(0, dtype)


def _facts(folder: Path) -> dict:
    return json.loads((folder / "corpus.json").read_text())
