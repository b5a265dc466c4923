"""What the vocabularies that cut with `tokenizers` share."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.files import File

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Tokenized:
    """Files, and the tokenizer that they are read into."""

    def __init__(self, own: Mapping[str, File], tokenizer: "Tokenizer"):
        self.files, self.tokenizer = dict(own), tokenizer

    def __getstate__(self) -> dict[str, File]:
        return self.files

    def __setstate__(self, own: dict[str, File]) -> None:
        self.__init__(own)

    def clean(self, text: str) -> str:
        return files.one_line(text)

    def lead(self, text: str) -> str:
        return ""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without the marks around a text; marks that are written in it are marks."""
        return [found.ids for found in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=True)

    def key(self) -> str:
        kind = type(self).__name__.removesuffix("Vocabulary").lower()
        return hashlib.sha256(kind.encode() + self.tokenizer.to_str().encode()).hexdigest()
