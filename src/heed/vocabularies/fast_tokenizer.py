"""The base of vocabularies that use the `tokenizers` library (Hugging Face's fast tokenizers)."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.files import File
from heed.vocabularies.unicode import surrogates_reported
from heed.vocabularies.vocabulary import AlignedPieces, Vocabulary, trim_span

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class FastTokenizer(Vocabulary):
    """Files by name, and the tokenizer built from them."""

    kind: str
    clean = staticmethod(files.one_line)

    def __init__(self, contents: Mapping[str, File], tokenizer: "Tokenizer"):
        self.files, self.tokenizer = dict(contents), tokenizer

    def __getstate__(self) -> dict[str, File]:
        return self.files

    def __setstate__(self, contents: dict[str, File]) -> None:
        self.__init__(contents)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without the special tokens around a text; special tokens in a text are encoded as such."""
        with surrogates_reported(texts):
            found = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in found]

    def encode_aligned(self, texts: Sequence[str]) -> list[AlignedPieces]:
        """The same ids, with their character spans."""
        with surrogates_reported(texts):
            found = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [
            AlignedPieces(one.ids, [trim_span(text, *span) for span in one.offsets], one.word_ids)
            for text, one in zip(texts, found, strict=True)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=True)

    def special_ids(self) -> set[int]:
        """The ids of all special tokens, including further ones of a folder."""
        return {i for i, token in self.tokenizer.get_added_tokens_decoder().items() if token.special}

    def key(self) -> str:
        return hashlib.sha256(self.kind.encode() + self.tokenizer.to_str().encode()).hexdigest()
