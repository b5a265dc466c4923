"""A vocabulary of phonemes: English text is converted with a pronouncing dictionary, which is part of it."""

import copy
import hashlib
import json
import re
import unicodedata
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from heed.files import check_file
from heed.vocabularies.files import File, parse_json
from heed.vocabularies.sentencepiece import LAST, SPECIAL_TOKENS
from heed.vocabularies.vocabulary import Pair, Vocabulary
from heed.vocabularies.words import NAMES

FILE = "phonemes.json"
SPACE, MARKS = " ", ".,;:!?-"  # between words; marks that can be heard
_PART = re.compile(r"[a-z']+|\S")


class Phonemes(Vocabulary):
    """Each phoneme is a token, as are the space between words and punctuation marks. `words` has the phonemes of each
    word.
    """

    kind, unit, special = "phonemes", "phoneme", SPECIAL_TOKENS

    def __init__(self, words: Mapping[str, str], phonemes: Sequence[str]):
        self.words, self.phonemes = dict(words), list(phonemes)
        self.tokens = [*NAMES, SPACE, *MARKS, *self.phonemes]
        self.ids = {token: i for i, token in enumerate(self.tokens) if i > LAST}

    def __len__(self) -> int:
        return len(self.tokens)

    def clean(self, text: str) -> str:
        """Lowercase, without accents."""
        plain = unicodedata.normalize("NFD", text.lower().replace("’", "'"))
        return "".join(c for c in plain if not unicodedata.combining(c))

    def split(self, text: str) -> list[str]:
        """Words and marks. Silent symbols are dropped; digits, and letters that are not English, are refused."""
        found = []
        for part in _PART.findall(self.clean(text)):
            if (part[0].isalpha() and not part.isascii()) or part.isnumeric():
                raise ValueError(f"{part!r} in {text[:60]!r} has no pronunciation: write it as English words")
            if part in MARKS:
                found.append(part)
            elif part.strip("'") and part.isascii() and part.replace("'", "").isalpha():
                found.append(part if part in self.words else part.strip("'"))
        return found

    def missing(self, texts: Iterable[str]) -> list[str]:
        """The words of texts without a known pronunciation."""
        return sorted({part for text in texts for part in self.split(text)} - self.words.keys() - set(MARKS))

    def extended(self, words: Mapping[str, str], origin: str) -> "Phonemes":
        """The same vocabulary with the pronunciations of more words; `origin` names their source in errors."""
        self._check(words, origin)
        found = copy.copy(self)
        found.words = ChainMap(dict(words), self.words)
        return found

    def add(self, words: Mapping[str, str], origin: str) -> None:
        """Add pronunciations permanently."""
        self._check(words, origin)
        self.words.update(words)

    def _check(self, words: Mapping[str, str], origin: str) -> None:
        for word, spoken in words.items():
            unknown = [one for one in spoken.split() if one not in self.ids]
            if unknown or not spoken.strip():
                raise ValueError(
                    f"{origin} pronounces {word!r} as {spoken!r}, which are not phonemes of the voice: train it with "
                    "recipes/g2p.toml on the same dictionary"
                )

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special tokens; an unknown word is refused."""
        return [[self.ids[token] for token in self._tokens(text)] for text in texts]

    def _tokens(self, text: str) -> list[str]:
        found: list[str] = []
        for part in self.split(text):
            if part in MARKS:
                found.append(part)
                continue
            if part not in self.words:
                raise ValueError(f"{part!r} has no known pronunciation: give a model for such words, --g2p FOLDER")
            found += [SPACE] * bool(found) + self.words[part].split()
        return found

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join("|" if self.tokens[i] == SPACE else self.tokens[i] for i in ids if i > LAST)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return ["▁" if self.tokens[i] == SPACE else self.tokens[i] for i in ids]

    def key(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()

    def text(self) -> str:
        """The content of its file."""
        parts = {"kind": self.kind, "phonemes": self.phonemes, "words": dict(sorted(self.words.items()))}
        return json.dumps(parts, ensure_ascii=False, indent=0) + "\n"


def of_dictionary(dictionary: Mapping[str, Sequence[str]]) -> Phonemes:
    """The first pronunciation of each word, and all phonemes of a dictionary."""
    every = {one for spoken in dictionary.values() for own in spoken for one in own.split()}
    return Phonemes({word: spoken[0] for word, spoken in dictionary.items()}, sorted(every))


def load(path: Path) -> Phonemes:
    check_file(path)
    parts = parse_json(File(str(path), path.read_bytes()))
    phonemes, words = parts.get("phonemes"), parts.get("words")
    right = (
        isinstance(phonemes, list)
        and isinstance(words, dict)
        and all(isinstance(one, str) for one in (*phonemes, *words.values()))
        and len(set(phonemes)) == len(phonemes)
    )
    if parts.get("kind") != "phonemes" or not right:
        raise ValueError(f"{path} is not a vocabulary of phonemes: it needs kind, phonemes and words")
    made = Phonemes({}, phonemes)
    try:
        made.add(words, str(path))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return made


def read(folder: Path) -> Pair:
    """One vocabulary, twice."""
    vocabulary = load(folder / FILE)
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    (folder / FILE).write_text(pair[0].text(), "utf-8", newline="\n")
