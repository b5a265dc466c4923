"""CoNLL files: one word and label per line, in whitespace-separated columns, and a blank line between sentences."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from heed.data.entities import NAMES, entities, guess_scheme, labels_of, violation
from heed.data.readers import lines

DOCUMENT = "-DOCSTART-"
_SPACE = re.compile(r"[ \t]+")  # other white space may be part of a word


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
    """Words, their labels (empty if they are not read), and where they are: the path, and the line of the first
    word.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...]
    path: str
    line: int

    def location(self, place: int = 0) -> str:
        return f"{self.path}, line {self.line + place}"


class ConllFile(NamedTuple):
    """The sentences of a file, and the number of skipped document lines."""

    sentences: list[Sentence]
    documents: int


def read(path: Path, word: int = 1, label: int | None = -1) -> ConllFile:
    """The sentences of a file; without `label`, words only."""
    documents: Counter[str] = Counter()
    found = ConllFile(list(stream(path, word, label, documents)), documents.total())
    if not found.sentences:
        raise ValueError(f"{path} has no sentences: each line should be a word and its label")
    return found


def stream(
    path: Path, word: int = 1, label: int | None = -1, documents: Counter[str] | None = None
) -> Iterator[Sentence]:
    """The same, sentence by sentence; the document lines are counted in `documents`, by the path."""
    words, labels, first = [], [], 1
    for number, line in enumerate(chain(lines(path), [""]), 1):
        text = line.strip(" \t")
        if not text or text.startswith(DOCUMENT):
            if words:
                yield Sentence(tuple(words), tuple(labels), str(path), first)
            words, labels = [], []
            if text and documents is not None:
                documents[str(path)] += 1
            continue
        first = first if words else number
        cells = _SPACE.split(text)
        words.append(_cell(cells, word, path, number, "word"))
        if label is not None:
            labels.append(_cell(cells, label, path, number, "label", other=word))


def _cell(cells: Sequence[str], column: int, path: Path, number: int, what: str, other: int | None = None) -> str:
    place = column - 1 if column > 0 else len(cells) + column
    if not 0 <= place < len(cells) or (other is not None and place == (other - 1 if other > 0 else len(cells) + other)):
        count = f"{len(cells)} column{'s' * (len(cells) != 1)}"
        raise ValueError(
            f"{path}, line {number} has {count}, and none for the {what} (column {column}): fix the line, or choose "
            f"another column (data.{what}, --{what}-column)"
        )
    return cells[place]


def find_scheme(sentences: Sequence[Sentence], repair: bool = False) -> str:
    """The scheme that all labels follow; with `repair`, BIO if there is none."""
    first = {scheme: _first_violation(sentences, scheme) for scheme in ("bio", "iob1", "bioes")}
    names = {label for one in sentences for label in one.labels}
    scheme = guess_scheme(names, lambda scheme: first[scheme] is None)
    likely = "bioes" if any(label.startswith(("E-", "S-", "L-", "U-")) for label in names) else "bio"
    if scheme is None and not repair:
        raise ValueError(_sentence(first[likely], likely))
    return scheme or likely


def _first_violation(sentences: Iterable[Sentence], scheme: str) -> tuple[str, str] | None:
    for one in sentences:
        if (found := violation(one.labels, scheme)) is not None:
            return one.location(found[0]), found[1]
    return None


def _sentence(found: tuple[str, str], scheme: str) -> str:
    return f"{found[0]}: {found[1]}; fix the label, or set task.scheme to the file's scheme (read as {NAMES[scheme]}), or set task.repair to true"


def check_scheme(sentences: Sequence[Sentence], scheme: str, repair: bool = False) -> int:
    """Refuse labels that violate the scheme, or with `repair` count their sentences."""
    if not repair and (found := _first_violation(sentences, scheme)) is not None:
        raise ValueError(_sentence(found, scheme))
    return sum(violation(one.labels, scheme) is not None for one in sentences)


def relabelled(sentence: Sentence, scheme: str, known: Sequence[str]) -> list[str]:
    """The labels of a sentence in the scheme of a model, which must know them."""
    labels = labels_of(entities(sentence.labels), len(sentence.words), scheme)
    for place, label in enumerate(labels):
        if label not in known:
            some = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
            raise ValueError(
                f"{sentence.location(place)}: {sentence.labels[place]!r} is not a label of this model; its labels are "
                f"{some}"
            )
    return labels
