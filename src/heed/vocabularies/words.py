"""A vocabulary of whole words: a list in a text file, and <unk> for all other words."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from heed.files import check_file
from heed.vocabularies.sentencepiece import FIRST, LAST, PAD, SPECIAL_TOKENS, UNKNOWN, SubwordsConfig
from heed.vocabularies.vocabulary import Pair, Vocabulary

NAMES = ("<pad>", "<unk>", "<s>", "</s>")  # of the ids 0 to 3; only <unk> can be written in a text
_OMITTED = (PAD, FIRST, LAST)
HEADER, FILE = "heed-words", "words.txt"
DIGITS = 18  # the most of a count
Cut = Literal["spaces", "punctuation"]
_TOKEN = re.compile(r"<unk>|\d+(?:[.,:]\d+)*|\w+(?:['’\-]\w+)*|[^\w\s]")
_CLOSING = frozenset(".,!?;:%…)]}»”")  # written without a space before
_OPENING = frozenset("([{«“¿¡$£€#")  # written without a space after


class Words(Vocabulary):
    """Words by id, the most frequent first, with the `counts` of the text they were learned from.

    `cut` "spaces" splits only at spaces; "punctuation" also splits punctuation from words, and `decode` joins it
    again by rule.
    """

    kind, special = "words", SPECIAL_TOKENS

    def __init__(self, counts: Sequence[tuple[str, int]], *, cut: Cut = "spaces", lower: bool = False):
        self.cut, self.lower = cut, lower
        self.words, self.counts = [word for word, _ in counts], [count for _, count in counts]
        self.ids = {word: i for i, word in enumerate(self.words)}
        for mark in _OMITTED:  # in a text it is an unknown word like any other
            del self.ids[self.words[mark]]

    def __len__(self) -> int:
        return len(self.words)

    def clean(self, text: str) -> str:
        """NFC, single spaces, and lowercase if the vocabulary is."""
        text = " ".join(unicodedata.normalize("NFC", text).split())
        return text.lower() if self.lower else text

    def split(self, text: str) -> list[str]:
        """The words of a text, known or not."""
        text = self.clean(text)
        return text.split() if self.cut == "spaces" else _TOKEN.findall(text)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special tokens other than <unk>."""
        ids = self.ids
        return [[ids.get(word, UNKNOWN) for word in self.split(text)] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Text; an unknown word is <unk>, other special tokens are omitted."""
        words = [self.words[i] for i in ids if i not in _OMITTED]
        return "".join(" " * spaced + word for word, spaced in zip(words, self._spaced(words), strict=True)).lstrip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        words = [self.words[i] for i in ids]
        spaces = self._spaced(words)
        return ["▁" * (space and i not in _OMITTED) + word for i, word, space in zip(ids, words, spaces, strict=True)]

    def _spaced(self, words: Sequence[str]) -> list[bool]:
        """Which words have a space before them; quotation marks alternately open and close."""
        if self.cut == "spaces":
            return [True] * len(words)
        spaced, opened, quoted = [], False, False
        for word in words:
            quote = word == '"'
            spaced.append(not (opened or word in _CLOSING or (quote and quoted)))
            opened = word in _OPENING or (quote and not quoted)
            quoted ^= quote
        return spaced

    def key(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()

    def text(self) -> str:
        """The content of its file: how text is split, then a word and its count on each line."""
        head = f"{HEADER}\tcut={self.cut}\tlower={str(self.lower).lower()}\n"
        return head + "".join(f"{word}\t{count}\n" for word, count in zip(self.words, self.counts, strict=True))

    def save(self, path: Path) -> None:
        path.write_text(self.text(), "utf-8", newline="\n")


def load(path: Path) -> Words:
    check_file(path)
    try:
        head, *lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is damaged: it is not text ({error})") from error
    header, *fields = head.split("\t")
    options = dict(field.partition("=")[::2] for field in fields)
    valid = options.get("cut") in ("spaces", "punctuation") and options.get("lower") in ("true", "false")
    if header != HEADER or not valid:
        raise ValueError(f"{path} is not a Heed word list: its first line is {head[:60]!r}")
    rows = [_row(line, path, number) for number, line in enumerate(lines, 2)]
    if tuple(word for word, _ in rows[: len(NAMES)]) != NAMES:
        raise ValueError(f"{path}: the first words must be {', '.join(NAMES)}, the special tokens")
    vocabulary = Words(rows, cut=options["cut"], lower=options["lower"] == "true")
    if len(set(vocabulary.words)) < len(vocabulary):
        word = next(word for word, count in Counter(vocabulary.words).items() if count > 1)
        raise ValueError(f"{path}: {word!r} occurs twice")
    return vocabulary


def _row(line: str, path: Path, number: int) -> tuple[str, int]:
    word, tab, count = line.partition("\t")
    if not word or not tab or not count.isascii() or not count.isdigit():
        raise ValueError(f"{path}, line {number}, is {line[:60]!r}; it must be a word, a tab and its count")
    if len(count) > DIGITS:
        raise ValueError(
            f"{path}, line {number}: the count of {word[:60]!r} has {len(count):,} digits, and the limit is {DIGITS}: "
            "copy the file again"
        )
    return word, int(count)


def learn(texts: Iterable[str], config: SubwordsConfig) -> Words:
    """The most frequent words that occur often enough, at most `size`; ties in alphabetical order."""
    if config.least < 1:
        raise ValueError(f"subwords.least is {config.least}; it must be at least 1")
    if config.size is not None and config.size <= len(NAMES):
        raise ValueError(
            f"subwords.size is {config.size}; {len(NAMES)} are special tokens, so it must be at least {len(NAMES) + 1}"
        )
    splitter = Words([(name, 0) for name in NAMES], cut=config.cut, lower=config.lower)
    counts, lines = Counter[str](), 0
    for text in texts:
        counts.update(splitter.split(text))
        lines += 1
    total = counts.total()
    for name in NAMES:
        counts.pop(name, None)
    frequent = sorted((p for p in counts.items() if p[1] >= config.least), key=lambda pair: (-pair[1], pair[0]))
    kept = frequent[: None if config.size is None else config.size - len(NAMES)]
    if not kept:
        raise ValueError(f"no word occurs {config.least} times in the text: lower subwords.least, or use more text")
    unknown = total - sum(count for _, count in kept)
    special = [("<pad>", 0), ("<unk>", unknown), ("<s>", 0), ("</s>", lines)]
    return Words([*special, *kept], cut=config.cut, lower=config.lower)


def read(folder: Path) -> Pair:
    """One vocabulary for both sides, or one for each."""
    if (folder / FILE).is_file():
        shared = load(folder / FILE)
        return shared, shared
    return load(folder / f"source.{FILE}"), load(folder / f"target.{FILE}")


def write(folder: Path, pair: Pair) -> None:
    for side, vocabulary in zip(("source.", "target."), pair, strict=True):
        vocabulary.save(folder / f"{'' if pair[0] is pair[1] else side}{FILE}")
