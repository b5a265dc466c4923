"""CoNLL files: one word and label per line, in columns separated by tabs or spaces, and a blank line between sentences.

The first line with a word determines the separator and the number of columns; every other line must have as many. A line that begins
with # and has another number is a comment if it stands before a sentence.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from heed.data.entities import NAMES, UNCHANGED, entities, guess_scheme, labels_of, violation
from heed.data.readers import lines

DOCUMENT, COMMENT = "-DOCSTART-", "#"
SKIPPED = {
    "documents": "-DOCSTART- lines",
    "comments": "comment lines",
    "ranges": "lines of multiword tokens and empty nodes (CoNLL-U)",
}
SETTINGS = "set task.scheme to the file's scheme (read as {}), or set task.repair to true"
_SPACE = re.compile(r"[ \t]+")  # other white space may be part of a word
_RANGE = re.compile(r"\d+[-.]\d+")  # in the first of CoNLL-U's columns: it repeats the words after it, or is none
_UNIVERSAL = 10  # the columns of CoNLL-U


@dataclass(frozen=True)
class ConllConfig:
    """The [data] section of tagging."""

    train: list[str] = field(default_factory=list)  # CoNLL files, plain, .gz or .xz
    valid: list[str] = field(default_factory=list)  # validation files
    word: int = 1  # the column of the word, counted from 1; -1 is the last
    label: int = -1  # the column of the label
    holdout: int = 1000  # without validation files, this many sentences are set aside (at most a tenth)
    licence: str | None = None  # licence of the data, for the model card

    def __post_init__(self):
        if not self.train:
            raise ValueError("data.train is empty: give CoNLL files for tagging")
        for name in ("word", "label"):
            if not getattr(self, name):
                raise ValueError(f"data.{name} is 0; columns are counted from 1, or from -1 at the end")
        if self.holdout < 1 and not self.valid:
            raise ValueError(f"data.holdout is {self.holdout}; it must be at least 1 if data.valid is empty")


class Sentence(NamedTuple):
    """Words, their labels (empty if they are not read), and where they are: the path, and the line of each word."""

    words: tuple[str, ...]
    labels: tuple[str, ...]
    path: str
    lines: tuple[int, ...]

    def location(self, place: int = 0) -> str:
        return f"{self.path}, line {self.lines[place]}"


class ConllFile(NamedTuple):
    """The sentences of a file, and how many lines were skipped, by the names of SKIPPED."""

    sentences: list[Sentence]
    skipped: Counter[str]


def read(path: Path, word: int = 1, label: int | None = -1) -> ConllFile:
    """The sentences of a file; without `label`, words only."""
    skipped: Counter[str] = Counter()
    found = ConllFile(list(stream(path, word, label, skipped)), skipped)
    if not found.sentences:
        raise ValueError(f"{path} has no sentences: each line should be a word and its label")
    return found


def stream(
    path: Path, word: int = 1, label: int | None = -1, skipped: Counter[str] | None = None
) -> Iterator[Sentence]:
    """The same, sentence by sentence; skipped lines are counted in `skipped`."""
    skipped = Counter() if skipped is None else skipped
    columns, numbered = _columns(path)
    if columns is None:
        skipped["documents"] += sum(line.strip(" \t").startswith(DOCUMENT) for _, line in numbered)
        return
    chosen = columns.chosen(word, label)
    cells: list[list[str]] = []
    numbers: list[int] = []
    for number, line in chain(numbered, [(0, "")]):
        document = line.strip(" \t").startswith(DOCUMENT)
        if document or not line.strip(" \t"):
            if cells:
                words, *labels = zip(*cells, strict=True)
                yield Sentence(words, labels[0] if labels else (), str(path), tuple(numbers))
            cells, numbers = [], []
            if document:
                skipped["documents"] += 1
            continue
        own = columns.split(line)
        if len(own) != columns.count and line.startswith(COMMENT) and not cells:
            skipped["comments"] += 1
        elif columns.tabs and len(own) == columns.count == _UNIVERSAL and _RANGE.fullmatch(own[0]):
            skipped["ranges"] += 1
        else:
            cells.append(columns.cells(own, number, chosen))
            numbers.append(number)


class _Columns(NamedTuple):
    """The columns of a file, by the `line` that is its first with a word."""

    path: Path
    line: int
    tabs: bool
    count: int

    def split(self, line: str) -> list[str]:
        return [cell.strip(" ") for cell in line.split("\t")] if self.tabs else _SPACE.split(line.strip(" \t"))

    def chosen(self, word: int, label: int | None) -> dict[str, int]:
        """The places of the columns that are read, by what they contain."""
        wanted = {"word": word} | ({} if label is None else {"label": label})
        places = {what: column - 1 if column > 0 else self.count + column for what, column in wanted.items()}
        for what, place in places.items():
            if not 0 <= place < self.count or (what == "label" and place == places["word"]):
                raise ValueError(
                    f"{self.path}, line {self.line} has {_counted(self.count)}, and none for the {what} (column "
                    f"{wanted[what]}): fix the line, or choose another column (data.{what}, --{what}-column)"
                )
        return places

    def cells(self, own: Sequence[str], number: int, chosen: dict[str, int]) -> list[str]:
        """The cells of a line that are read."""
        if len(own) != self.count:
            separator = "tabs" if self.tabs else "spaces, so a word that contains one needs tabs"
            raise ValueError(
                f"{self.path}, line {number} has {_counted(len(own))}, but line {self.line} has {self.count} (separated "
                f"by {separator}): all lines need as many; fix the one that is wrong"
            )
        for what, place in chosen.items():
            if not own[place]:
                raise ValueError(
                    f"{self.path}, line {number} has no {what}, column {place + 1} is empty: fix the line, or choose "
                    f"another column (data.{what}, --{what}-column)"
                )
        return [own[place] for place in chosen.values()]


def _counted(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"


def _columns(path: Path) -> tuple[_Columns | None, Iterator[tuple[int, str]]]:
    """The columns of a file, None if it has no words, and all its lines with their numbers."""
    numbered, before, first = enumerate(lines(path), 1), [], None
    for number, line in numbered:
        before.append((number, line))
        if not line.strip(" \t") or line.strip(" \t").startswith(DOCUMENT):
            continue
        first = first or (number, line)  # if all lines begin with #, they are no comments
        if not line.startswith(COMMENT):
            first = number, line
            break
    if first is None:
        return None, iter(before)
    columns = _Columns(path, first[0], "\t" in first[1].strip(" \t"), 0)
    return columns._replace(count=len(columns.split(first[1]))), chain(before, numbered)


def find_scheme(sentences: Sequence[Sentence], repair: bool = False, remedy: str = SETTINGS) -> str:
    """The scheme that all labels follow; with `repair`, BIO if there is none. `remedy` is what else to do about a label."""
    first = {scheme: _first_violation(sentences, scheme) for scheme in ("bio", "iob1", "bioes")}
    names = {label for one in sentences for label in one.labels}
    scheme = guess_scheme(names, lambda scheme: first[scheme] is None)
    likely = "bioes" if any(label.startswith(("E-", "S-", "L-", "U-")) for label in names) else "bio"
    if scheme is None and not repair:
        raise ValueError(_sentence(first[likely], likely, remedy))
    return scheme or likely


def _first_violation(sentences: Iterable[Sentence], scheme: str) -> tuple[str, str] | None:
    for one in sentences:
        if (found := violation(one.labels, scheme)) is not None:
            return one.location(found[0]), found[1]
    return None


def _sentence(found: tuple[str, str], scheme: str, remedy: str) -> str:
    return f"{found[0]}: {found[1]}; fix the label, or {remedy.format(NAMES[scheme])}"


def check_scheme(sentences: Sequence[Sentence], scheme: str, repair: bool = False) -> int:
    """Refuse labels that violate the scheme, or with `repair` count their sentences."""
    if not repair and (found := _first_violation(sentences, scheme)) is not None:
        raise ValueError(_sentence(found, scheme, SETTINGS))
    return sum(violation(one.labels, scheme) is not None for one in sentences)


def relabelled(sentence: Sentence, scheme: str, known: Sequence[str]) -> list[str]:
    """The labels of a sentence in the scheme of a model, which must know them."""
    labels = list(sentence.labels)
    if scheme != UNCHANGED:
        labels = labels_of(entities(labels), len(labels), scheme)
    for place, label in enumerate(labels):
        if label not in known:
            some = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
            raise ValueError(
                f"{sentence.location(place)}: {sentence.labels[place]!r} is not a label of this model; its labels are "
                f"{some}"
            )
    return labels
