"""Lists of recordings and transcripts in the formats of various corpora."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from heed.data import readers
from heed.files import check_file

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
FSDD = re.compile(r"(\d)_([^_]+)_(\d+)\.(?:wav|flac|ogg)")
FSDD_TEST = 5  # the first recordings of each speaker and digit are the test
INDEX = "index.tsv"
STORED = "mfcc*.npy*"
SHOWN = 3  # missing files that an error names


class Utterance(NamedTuple):
    """A recording and its text. `frames` are (first, count) in the stored features `path`, if there is no audio.

    `transcript` is the spoken text, if `text` is its translation.
    """

    name: str
    text: str
    path: Path
    frames: tuple[int, int] | None = None
    speaker: str = ""
    transcript: str = ""


def read(name: str, kind: str = "auto", split: str = "train") -> list[Utterance]:
    """The recordings of a table or a folder; missing files are reported before anything is computed."""
    path = Path(name)
    kind = form_of(path) if kind == "auto" else kind
    found = list(FORMS[kind](path, split))
    if not found:
        raise ValueError(f"{path}: no recording has a text" + _of_split(kind, split))
    missing = [own.path for own in found if own.frames is None and not own.path.is_file()]
    if missing:
        some = ", ".join(map(str, missing[:SHOWN])) + (" …" if len(missing) > SHOWN else "")
        raise ValueError(f"{path}: {len(missing):,} of {len(found):,} recordings are missing: {some}")
    return found


def form_of(path: Path) -> str:
    """Detect the format of a path."""
    if path.is_dir():
        if (path / INDEX).is_file() and list(path.glob(STORED)):
            return "mfcc"
        if (path / "metadata.csv").is_file():
            return "ljspeech"
        if any(FSDD.fullmatch(own.name) for own in path.iterdir()):
            return "fsdd"
        raise ValueError(
            f"{path} has neither metadata.csv (LJSpeech) nor recordings with names like 7_name_12.wav (FSDD) nor "
            "stored features: give a table of paths and texts"
        )
    check_file(path)
    return "ljspeech" if path.name == "metadata.csv" else "mfcc" if path.name == INDEX else "tsv"


def _of_split(kind: str, split: str) -> str:
    return f" in {split!r} (data.split)" if kind in ("fsdd", "mfcc") else ""


def table(path: Path, split: str) -> Iterator[Utterance]:
    """Path, text and optionally speaker and transcript, separated by tabs; paths are relative to the table."""
    for number, line in enumerate(readers.lines(path), 1):
        if not line.strip():
            continue
        name, text, *more = [part.strip() for part in line.split("\t")] + [""] * ("\t" not in line)
        if not name or not text or len(more) > 2:
            raise ValueError(
                f"{path}, line {number}: the format is path, tab, text and, optionally, tab, speaker, tab, transcript"
            )
        speaker, transcript = [*more, "", ""][:2]
        yield Utterance(f"{path.name}:{number}", clean(text), path.parent / name, None, speaker, clean(transcript))


def ljspeech(path: Path, split: str) -> Iterator[Utterance]:
    """LJSpeech: id|text|normalized text, and wavs/id.wav."""
    path = path / "metadata.csv" if path.is_dir() else path
    for number, line in enumerate(readers.lines(path), 1):
        parts = line.split("|")
        if len(parts) < 2 or not parts[-1].strip():
            raise ValueError(f"{path}, line {number}: the format is id|text, or id|text|normalized text")
        yield Utterance(parts[0], clean(parts[-1]), path.parent / "wavs" / f"{parts[0]}.wav")


def fsdd(path: Path, split: str) -> Iterator[Utterance]:
    """The Free Spoken Digit Dataset: digit_speaker_number.wav; recordings 0 to 4 are "test", the others "train"."""
    if split not in ("train", "test", "all"):
        raise ValueError(f"data.split is {split!r}; {path} has train, test and all")
    for own in sorted(path.iterdir()):
        if match := FSDD.fullmatch(own.name):
            test = int(match[3]) < FSDD_TEST
            if split == "all" or test == (split == "test"):
                yield Utterance(own.stem, DIGITS[int(match[1])], own, None, match[2])


def stored(path: Path, split: str) -> Iterator[Utterance]:
    """An index of split, id, first frame, frames and text, with the features in one array next to it (AN4)."""
    folder = path if path.is_dir() else path.parent
    arrays = sorted(folder.glob(STORED))
    if len(arrays) != 1:
        raise ValueError(f"{folder} has {len(arrays)} arrays of features ({STORED}); there must be exactly one")
    splits = set()
    for number, line in enumerate(readers.lines(folder / INDEX), 1):
        parts = line.split("\t")
        if len(parts) != 5 or not (parts[2].isdecimal() and parts[3].isdecimal()) or not parts[4].strip():
            raise ValueError(f"{folder / INDEX}, line {number}: the format is split, id, first frame, frames, text")
        splits.add(parts[0])
        if split in ("all", parts[0]):
            yield Utterance(parts[1], clean(parts[4]), arrays[0], (int(parts[2]), int(parts[3])))
    if split not in {*splits, "all"}:
        raise ValueError(f"data.split is {split!r}; {folder} has {', '.join(sorted(splits))} and all")


def clean(text: str) -> str:
    return " ".join(text.split())


FORMS = {"tsv": table, "ljspeech": ljspeech, "fsdd": fsdd, "mfcc": stored}
