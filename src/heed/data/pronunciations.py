"""Pronouncing dictionaries in the format of CMUdict, and parallel files of letters and phonemes for training."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heed.data import readers

COMMENT = ";;;"
VARIANT = re.compile(r"(.+)\(\d+\)")
PHONEME = re.compile(r"[A-Z]{1,3}[0-2]?")
SPELLED = re.compile(r"'?[a-z][a-z']*")  # words that a model learns: letters and apostrophes
MOST_TEST, MOST_VALID = 5000, 1000
SHARE_TEST, SHARE_VALID = 10, 50  # one word in so many is held out
Dictionary = Mapping[str, Sequence[str]]  # the pronunciations of each word, phonemes separated by spaces


def read(path: Path, stress: bool = True) -> dict[str, list[str]]:
    """The pronunciations of each lowercase word, the first one first; without `stress`, vowels have no stress marks."""
    found: dict[str, list[str]] = {}
    for number, line in enumerate(readers.lines(path), 1):
        if line.startswith(COMMENT) or not line.strip():
            continue
        word, *phonemes = line.split("#")[0].split() or [""]
        if not phonemes or not all(map(PHONEME.fullmatch, phonemes)):
            raise ValueError(
                f"{path}, line {number}, is {line[:60]!r}; it must be a word and its phonemes: hello HH AH0 L OW1"
            )
        variant = VARIANT.fullmatch(word)
        own = found.setdefault((variant[1] if variant else word).lower(), [])
        spoken = " ".join(phonemes if stress else (one.rstrip("012") for one in phonemes))
        if spoken not in own:
            own.append(spoken)
    if not found:
        raise ValueError(f"{path} has no words: it must have a word and its phonemes on each line")
    return found


class Parts(NamedTuple):
    """Words for training, validation and testing: no word is in two of them."""

    train: list[str]
    valid: list[str]
    test: list[str]


def split(dictionary: Dictionary, valid: int | None = None, test: int | None = None, seed: int = 0) -> Parts:
    """The words of a dictionary that consist of letters, split at random by the seed."""
    words = sorted(filter(SPELLED.fullmatch, dictionary))
    test = max(1, min(MOST_TEST, len(words) // SHARE_TEST)) if test is None else test
    valid = max(1, min(MOST_VALID, len(words) // SHARE_VALID)) if valid is None else valid
    if min(test, valid) < 1 or test + valid >= len(words):
        raise ValueError(
            f"{valid:,} words to validate on and {test:,} to test on: each must be at least 1, and the dictionary has "
            f"{len(words):,} words of letters"
        )
    drawn = [words[i] for i in np.random.default_rng(seed).permutation(len(words))]
    return Parts(sorted(drawn[test + valid :]), sorted(drawn[test : test + valid]), sorted(drawn[:test]))


def write(folder: Path, dictionary: Dictionary, parts: Parts) -> list[str]:
    """Write parallel files of letters and phonemes; returns the phoneme files of the test set. Training has one line
    per pronunciation, validation only the first. The test set has one file per alternative pronunciation, so that
    each counts as correct: test.phonemes, test.2.phonemes, ...
    """
    pairs = [(word, own) for word in parts.train for own in dictionary[word]]
    _write(folder / "train.letters", [letters(word) for word, _ in pairs])
    _write(folder / "train.phonemes", [own for _, own in pairs])
    for name, words in (("valid", parts.valid), ("test", parts.test)):
        _write(folder / f"{name}.letters", map(letters, words))
    _write(folder / "valid.phonemes", [dictionary[word][0] for word in parts.valid])
    names = []
    for i in range(max(len(dictionary[word]) for word in parts.test)):
        names.append("test.phonemes" if i == 0 else f"test.{i + 1}.phonemes")
        _write(folder / names[-1], [(*dictionary[word], *dictionary[word][:1] * i)[i] for word in parts.test])
    return names


def letters(word: str) -> str:
    """A word as a model reads it: its letters separated by spaces."""
    return " ".join(word)


def _write(path: Path, lines) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
