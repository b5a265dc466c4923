"""The target side of a labelled corpus: a label, or a number."""

import hashlib
import math
import unicodedata
from collections.abc import Sequence

import numpy as np

from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary


class Labels(Vocabulary):
    """The names of labels; a label's id is its index. `numbered` are the names that numbers from 0 stand for in files
    of numbered labels (data.classes), if they have any: their order may be another.
    """

    special = SpecialTokens(-1, -1, -1, -1)  # labels are not text: no special tokens

    def __init__(self, names: Sequence[str], numbered: Sequence[str] = ()):
        self.names, self.numbered = list(names), list(numbered)
        self.ids = {name: i for i, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def clean(self, text: str) -> str:
        return unicodedata.normalize("NFC", " ".join(text.split()))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self.index(self.clean(text))] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.pieces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.names[i] for i in ids]

    def key(self) -> str:
        return hashlib.sha256("\n".join(self.names).encode()).hexdigest()

    def index(self, name: str) -> int:
        """The id of a label."""
        if name not in self.ids:
            some = ", ".join(self.names[:5]) + (", …" if len(self.names) > 5 else "")
            raise ValueError(f"{name!r} is not a label of this model; its labels are {some}")
        return self.ids[name]


class Numbers(Vocabulary):
    """Any number; its id is its bits as a 32-bit float."""

    special = SpecialTokens(-1, -1, -1, -1)

    def __len__(self) -> int:
        return 2**32

    def clean(self, text: str) -> str:
        return text.strip()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        values = np.array([parse_number(text) for text in texts], dtype=np.float32)
        return [[bits] for bits in values.view(np.uint32).tolist()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.pieces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [f"{value:g}" for value in np.array(ids, dtype=np.uint32).view(np.float32).tolist()]

    def key(self) -> str:
        return "numbers"


def parse_choice(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text.strip()!r} is not the number of a choice, counted from 0")
    return int(text)


def parse_number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text.strip()!r} is not a number")
    return value
