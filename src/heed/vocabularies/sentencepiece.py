"""SentencePiece vocabularies, learned from the corpus."""

import copy
import hashlib
import io
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from heed.files import check_file
from heed.vocabularies.files import all_pieces
from heed.vocabularies.sampling import Sampler, sentencepiece_sampler
from heed.vocabularies.unicode import single_spaced, surrogates_reported
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary

PAD, UNKNOWN, FIRST, LAST = 0, 1, 2, 3  # the same in every SentencePiece vocabulary of heed
UNSAID = frozenset({PAD, UNKNOWN, FIRST, LAST})
BYTES = 256
THREADED_FROM = 64  # texts: with fewer, SentencePiece's threads take longer to start than they save
SPECIAL_TOKENS = SpecialTokens(PAD, UNKNOWN, FIRST, LAST, never=(PAD, UNKNOWN, FIRST))
SPECIAL_PAIR = (SPECIAL_TOKENS, SPECIAL_TOKENS)


@dataclass(frozen=True)
class SubwordsConfig:
    kind: Literal["bpe", "unigram", "words", "characters", "bytes"] = (
        "bpe"  # "words" are whole words; "characters" and "bytes" are for language models
    )
    joint: bool = True  # one vocabulary for both languages, or one for each
    size: int | None = None  # default: chosen by corpus size
    coverage: float = 0.9999  # share of characters covered by the vocabulary; the others are encoded as bytes
    sampling: float = 0.0  # BPE-dropout (0.1 is usual), or alpha of unigram sampling; 0 is off
    lines: int = 500_000  # number of lines to learn the vocabulary from
    source_model: str | None = None  # a SentencePiece model to use instead of learning one
    target_model: str | None = None
    texts: list[str] = field(default_factory=list)  # files to learn the vocabulary from, instead of the corpus
    cut: Literal["spaces", "punctuation"] = "spaces"  # how text is split into whole words
    lower: bool = False  # lowercase words (only with "words")
    least: int = 2  # minimum count of a word; rarer ones are <unk>

    def __post_init__(self):
        if not 0 <= self.sampling < 1:
            raise ValueError(f"subwords.sampling is {self.sampling}; it must be 0 (off) or a number below 1")
        if not 0 < self.coverage <= 1:
            raise ValueError(f"subwords.coverage is {self.coverage}; it must be above 0 and at most 1")


def clean(text: str) -> str:
    """NFC, with runs of whitespace, and of SentencePiece's symbol for it, replaced by one space."""
    return " ".join(unicodedata.normalize("NFC", text).replace("▁", " ").split())


def clean_all(texts: Sequence[str]) -> list[str]:
    """The same for many. Nothing composes across a line break, so that one call normalizes all."""
    joined = unicodedata.normalize("NFC", "\n".join(texts)).replace("▁", " ")
    lines = single_spaced(joined).split("\n")
    return lines if len(lines) == len(texts) else [clean(text) for text in texts]  # a text has line breaks


def encode_all(processor: Any, texts: Sequence[str], **options: Any) -> list[list[Any]]:
    """Encode texts with a SentencePiece processor, in threads where that is faster."""
    with surrogates_reported(texts):
        if len(texts) < THREADED_FROM:
            return [processor.encode(text, **options) for text in texts]
        return processor.encode(texts, **options)


class Subwords(Vocabulary):
    """A SentencePiece model with heed's four special tokens, and bytes for unknown characters.

    `tags` are further special tokens by name, which only training or translation puts before a text: a tag written in
    a text is text, and a search outputs none.
    """

    clean, clean_all = staticmethod(clean), staticmethod(clean_all)

    def __init__(self, model: bytes, name: str = "the subword model"):
        import sentencepiece

        self.model = model
        self._samplers: dict[float, Sampler] = {}
        self.processor = sentencepiece.SentencePieceProcessor()
        try:
            self.processor.LoadFromSerializedProto(model)
        except (RuntimeError, UnicodeDecodeError) as error:  # the second: its own error quotes bytes of the file
            raise ValueError(f"{name} is not a SentencePiece model: {error}") from error
        special = [self.processor.pad_id(), self.processor.unk_id(), self.processor.bos_id(), self.processor.eos_id()]
        if special != [PAD, UNKNOWN, FIRST, LAST]:
            raise ValueError(
                f"{name} has pad, unk, bos and eos at {special}; heed needs {[PAD, UNKNOWN, FIRST, LAST]}: train it with "
                "--pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"
            )
        self._pieces = all_pieces(self.processor, name)
        ids = range(LAST + 1, len(self._pieces))
        self.tags = {self._pieces[i]: i for i in ids if self.processor.is_control(i)}
        self.special = SPECIAL_TOKENS._replace(never=(*SPECIAL_TOKENS.never, *self.tags.values()))

    def __len__(self) -> int:
        return self.processor.vocab_size()

    def __getstate__(self) -> tuple[bytes, SpecialTokens]:
        return self.model, self.special

    def __setstate__(self, state: tuple[bytes, SpecialTokens]) -> None:
        self.__init__(state[0])
        self.special = state[1]

    @property
    def codes(self) -> dict[str, int]:
        """The control codes of a language model: tags that are not languages."""
        return {tag: number for tag, number in self.tags.items() if not tag.startswith(">>")}

    def with_tag(self, tag: str) -> "Subwords":
        """The same vocabulary with this tag before every text."""
        tagged = copy.copy(self)
        tagged.special = self.special._replace(before=(self.tags[tag],))
        return tagged

    def fixed_special(self) -> SpecialTokens:
        return self.special._replace(before=())

    def key(self) -> str:
        return hashlib.sha256(self.model).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special tokens."""
        return self.encode_clean(clean_all(texts))

    def encode_clean(self, texts: Sequence[str]) -> list[list[int]]:
        return encode_all(self.processor, texts)

    def sample(self, texts: Sequence[str], amount: float, seed: int) -> list[list[int]]:
        """A random segmentation of each text, drawn by `seed`."""
        if amount not in self._samplers:
            self._samplers[amount] = sentencepiece_sampler(self, amount)
        return self._samplers[amount].encode([clean(text) for text in texts], seed)

    def decode(self, ids: Sequence[int]) -> str:
        return self.processor.decode(_said(ids))

    def decode_all(self, rows: Sequence[Sequence[int]]) -> list[str]:
        if not rows:
            return []
        ended = [ids[:-1] if len(ids) and ids[-1] == LAST else ids for ids in rows]
        if not UNSAID.isdisjoint(chain.from_iterable(ended)):  # rarely
            ended = list(map(_said, ended))
        return self.processor.decode(ended)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return list(map(self._pieces.__getitem__, ids))

    def save(self, path: Path) -> None:
        path.write_bytes(self.model)


def _said(ids: Sequence[int]) -> list[int]:
    """Ids without those that are not text."""
    return [i for i in ids if i not in UNSAID]


def load(path: Path) -> Subwords:
    check_file(path)
    return Subwords(path.read_bytes(), str(path))


def learn(texts: Iterable[str], config: SubwordsConfig, size: int, tags: Sequence[str] = ()) -> Subwords:
    """A vocabulary of `size` with these tags, or smaller if the text does not have that many distinct pieces."""
    options = {"model_type": config.kind, "vocab_size": size, "character_coverage": config.coverage}
    options |= {"byte_fallback": True, "normalization_rule_name": "identity"}
    options |= {"pad_id": PAD, "unk_id": UNKNOWN, "bos_id": FIRST, "eos_id": LAST}
    options |= {"control_symbols": list(tags)} if tags else {}
    return Subwords(train((clean(text) for text in texts), options, f"subwords.size: a vocabulary of {size}"))


def train(texts: Iterable[str], options: dict[str, Any], name: str) -> bytes:
    """Train a SentencePiece model; errors name what could not be learned."""
    import sentencepiece

    model = io.BytesIO()
    common = {"hard_vocab_limit": False, "max_sentence_length": 100_000, "minloglevel": 2}
    try:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=model, **common, **options)
    except RuntimeError as error:
        raise ValueError(f"{name} could not be learned: {_reason(str(error))}") from error
    return model.getvalue()


def _reason(message: str) -> str:
    """SentencePiece's message, without its source lines."""
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return f"the texts have so many distinct characters that at least {int(found[1]):,} pieces are needed"
    plain = re.sub(r"^[A-Z_]+: \S+\(\d+\) \[.*\] *", "", message, flags=re.S).strip()
    return plain or "the texts have nothing to learn from"


def choose_size(pairs: int, characters: int) -> int:
    """All bytes, the alphabet, and merges that grow with the square root of the corpus: 4,600 for 29,000 German pairs."""
    size = LAST + 1 + BYTES + min(characters, 8000) + 25 * math.sqrt(pairs)
    return min(32_768, 64 * math.ceil(size / 64))
