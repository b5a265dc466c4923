"""The labels of a classification, as the target side of its corpus."""

import hashlib
import unicodedata
from collections.abc import Sequence

from heed.vocabularies.vocabulary import SpecialTokens


class Labels:
    """Names of labels, each with its number."""

    marks = SpecialTokens(-1, -1, -1, -1)  # a label is no text: it has no marks

    def __init__(self, names: Sequence[str]):
        self.names = list(names)
        self.numbers = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def clean(self, text: str) -> str:
        return unicodedata.normalize("NFC", " ".join(text.split()))

    def lead(self, text: str) -> str:
        return ""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self._number(self.clean(text))] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.pieces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.names[i] for i in ids]

    def key(self) -> str:
        return hashlib.sha256("\n".join(self.names).encode()).hexdigest()

    def _number(self, name: str) -> int:
        if name not in self.numbers:
            some = ", ".join(self.names[:5]) + (", …" if len(self.names) > 5 else "")
            raise ValueError(f"{name!r} is no label of this model, which has {some}")
        return self.numbers[name]
