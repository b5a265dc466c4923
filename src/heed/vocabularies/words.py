"""Whole words as a vocabulary: a list in a text file, and one mark for all words that are not in it."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from heed.vocabularies.sentencepiece import FIRST, LAST, MARKS, PAD, UNKNOWN, SubwordsConfig
from heed.vocabularies.vocabulary import Pair

NAMES = ("<pad>", "<unk>", "<s>", "</s>")  # of the ids 0 to 3; of these a text can say <unk> alone
_SILENT = (PAD, FIRST, LAST)
KIND, FILE = "heed-words", "words.txt"
Cut = Literal["spaces", "punctuation"]
_TOKEN = re.compile(r"<unk>|\d+(?:[.,:]\d+)*|\w+(?:['’\-]\w+)*|[^\w\s]")
_CLOSING = frozenset(".,!?;:%…)]}»”")  # written against the word before
_OPENING = frozenset("([{«“¿¡$£€#")  # and against the word after


class Words:
    """Words by number, the most frequent first. `counts` says how often each occurred in what they were taken from.

    `cut` "spaces" takes words as the spaces of a text part them; "punctuation" also parts words from what is written
    against them, and `decode` puts it back by rule.
    """

    marks = MARKS

    def __init__(self, counts: Sequence[tuple[str, int]], *, cut: Cut = "spaces", lower: bool = False):
        self.cut, self.lower = cut, lower
        self.words, self.counts = [word for word, _ in counts], [count for _, count in counts]
        self.numbers = {word: i for i, word in enumerate(self.words)}
        for mark in _SILENT:  # written in a text it is a word like others, and none that is known
            del self.numbers[self.words[mark]]

    def __len__(self) -> int:
        return len(self.words)

    def clean(self, text: str) -> str:
        """One way to write each character (NFC), single spaces, and small letters if it has no others."""
        text = " ".join(unicodedata.normalize("NFC", text).split())
        return text.lower() if self.lower else text

    def lead(self, text: str) -> str:
        return ""

    def split(self, text: str) -> list[str]:
        """The words of a text, known or not."""
        text = self.clean(text)
        return text.split() if self.cut == "spaces" else _TOKEN.findall(text)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without marks, but for that of unknown words."""
        known = self.numbers
        return [[known.get(word, UNKNOWN) for word in self.split(text)] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Text; an unknown word is <unk>, the other marks are left out."""
        words = [self.words[i] for i in ids if i not in _SILENT]
        return "".join(" " * begins + word for word, begins in zip(words, self._begin(words), strict=True)).lstrip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        words = [self.words[i] for i in ids]
        begin = self._begin(words)
        return ["▁" * (begins and i not in _SILENT) + word for i, word, begins in zip(ids, words, begin, strict=True)]

    def _begin(self, words: Sequence[str]) -> list[bool]:
        """Which of these are not written against the one before: of quotation marks, every other is."""
        if self.cut == "spaces":
            return [True] * len(words)
        found, against, quoted = [], False, False
        for word in words:
            quote = word == '"'
            found.append(not (against or word in _CLOSING or (quote and quoted)))
            against = word in _OPENING or (quote and not quoted)
            quoted ^= quote
        return found

    def key(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()

    def text(self) -> str:
        """What its file holds: how text is cut, then a word and its count a line."""
        head = f"{KIND}\tcut={self.cut}\tlower={str(self.lower).lower()}\n"
        return head + "".join(f"{word}\t{count}\n" for word, count in zip(self.words, self.counts, strict=True))

    def save(self, path: Path) -> None:
        path.write_text(self.text(), "utf-8", newline="\n")


def load(path: Path) -> Words:
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        head, *lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is damaged: it is not text ({error})") from error
    kind, *facts = head.split("\t")
    said = dict(fact.partition("=")[::2] for fact in facts)
    if kind != KIND or said.get("cut") not in ("spaces", "punctuation") or said.get("lower") not in ("true", "false"):
        raise ValueError(f"{path} is not a list of words of heed's: its first line is {head[:60]!r}")
    rows = [_row(line, path, number) for number, line in enumerate(lines, 2)]
    if tuple(word for word, _ in rows[: len(NAMES)]) != NAMES:
        raise ValueError(f"{path}: the first words must be {', '.join(NAMES)}, the marks")
    found = Words(rows, cut=said["cut"], lower=said["lower"] == "true")
    if len(set(found.words)) < len(found):
        word = next(word for word, count in Counter(found.words).items() if count > 1)
        raise ValueError(f"{path}: {word!r} stands there twice")
    return found


def _row(line: str, path: Path, number: int) -> tuple[str, int]:
    word, tab, count = line.partition("\t")
    if not word or not tab or not count.isascii() or not count.isdigit():
        raise ValueError(f"{path}, line {number}, is {line[:60]!r}; it must be a word, a tab and how often it occurred")
    return word, int(count)


def learn(texts: Iterable[str], config: SubwordsConfig) -> Words:
    """The words that occur often enough, as many as there is room for; of equals, first what comes first in order."""
    if config.least < 1:
        raise ValueError(f"subwords.least is {config.least}; it must be at least 1")
    if config.size is not None and config.size <= len(NAMES):
        raise ValueError(
            f"subwords.size is {config.size}; {len(NAMES)} are marks, so it must be at least {len(NAMES) + 1}"
        )
    reader = Words([(name, 0) for name in NAMES], cut=config.cut, lower=config.lower)
    counts: Counter[str] = Counter()
    lines = 0
    for text in texts:
        counts.update(reader.split(text))
        lines += 1
    total = counts.total()
    for name in NAMES:
        counts.pop(name, None)
    often = sorted((pair for pair in counts.items() if pair[1] >= config.least), key=lambda pair: (-pair[1], pair[0]))
    kept = often[: None if config.size is None else config.size - len(NAMES)]
    if not kept:
        raise ValueError(
            f"no word occurs {config.least} times in the text: set subwords.least lower, or give more text"
        )
    unknown = total - sum(count for _, count in kept)
    return Words(
        [("<pad>", 0), ("<unk>", unknown), ("<s>", 0), ("</s>", lines), *kept], cut=config.cut, lower=config.lower
    )


def read(folder: Path) -> Pair:
    """One for both sides, or one a side."""
    if (folder / FILE).is_file():
        one = load(folder / FILE)
        return one, one
    return load(folder / f"source.{FILE}"), load(folder / f"target.{FILE}")


def write(folder: Path, pair: Pair) -> None:
    source, target = pair
    if source is target:
        source.save(folder / FILE)
        return
    source.save(folder / f"source.{FILE}")
    target.save(folder / f"target.{FILE}")
