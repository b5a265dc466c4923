"""Vocabularies of single characters or bytes: text as it is, without learned units."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from heed.files import check_file
from heed.vocabularies.files import File, parse_json
from heed.vocabularies.sentencepiece import LAST, SPECIAL_TOKENS, UNKNOWN, SubwordsConfig
from heed.vocabularies.vocabulary import Pair, Vocabulary
from heed.vocabularies.words import NAMES

FILE = "characters.json"
REPLACEMENT = "\ufffd"  # an unknown character, and bytes that are no character


class Characters(Vocabulary):
    """Each character is a token; `codes` are control codes with their ids, which no text can spell."""

    kind, unit = "characters", "character"

    def __init__(self, characters: Sequence[str], codes: Sequence[str] = ()):
        self.characters = list(characters)
        first = len(NAMES) + len(self.characters)
        self.codes = {code: first + i for i, code in enumerate(codes)}
        self.ids = {character: len(NAMES) + i for i, character in enumerate(self.characters)}
        self.tokens = [*NAMES, *self.characters, *codes]
        self.special = SPECIAL_TOKENS._replace(never=(*SPECIAL_TOKENS.never, *self.codes.values()))

    def __len__(self) -> int:
        return len(self.tokens)

    def clean(self, text: str) -> str:
        return text

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special tokens; a character not seen in training is the unknown token."""
        return [[self.ids.get(character, UNKNOWN) for character in text] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        end = len(NAMES) + len(self.characters)
        known = (self.tokens[i] if i > LAST else REPLACEMENT for i in ids if LAST < i < end or i == UNKNOWN)
        return "".join(known)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return ["▁" if self.tokens[i] == " " else self.tokens[i] for i in ids]

    def key(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()

    def text(self) -> str:
        """The content of its file."""
        parts = {"kind": self.kind, "characters": self.characters, "codes": list(self.codes)}
        return json.dumps(parts, ensure_ascii=False, indent=0) + "\n"


class Bytes(Characters):
    """Each byte of the UTF-8 of a text is a token: nothing is unknown."""

    kind, unit = "bytes", "byte"

    def __init__(self, codes: Sequence[str] = ()):
        super().__init__([f"<0x{byte:02X}>" for byte in range(256)], codes)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[len(NAMES) + byte for byte in text.encode()] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(i - len(NAMES) for i in ids if 0 <= i - len(NAMES) < 256).decode("utf-8", errors="replace")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Printable ASCII unchanged, other bytes by number."""
        return [self._piece(i) for i in ids]

    def _piece(self, i: int) -> str:
        byte = i - len(NAMES)
        return "▁" if byte == ord(" ") else chr(byte) if ord(" ") < byte < 127 else self.tokens[i]


def learn(kind: str, texts: Iterable[str], config: SubwordsConfig, codes: Sequence[str] = ()) -> Characters:
    """The characters of a text, most frequent first, at most `size` including special tokens and codes; or all
    bytes.
    """
    for code in codes:
        if code.split() != [code] or code in NAMES:
            raise ValueError(f"the control code is {code!r}; it must be one word")
    if kind == "bytes":
        return Bytes(codes)
    counts = Counter[str]()
    for text in texts:
        counts.update(text)
    frequent = sorted(counts, key=lambda character: (-counts[character], character))
    others = len(NAMES) + len(codes)
    if config.size is not None and config.size <= others:
        raise ValueError(
            f"subwords.size is {config.size}; {others} are special tokens, so it must be at least {others + 1}"
        )
    return Characters(frequent[: None if config.size is None else config.size - others], codes)


def load(path: Path) -> Characters:
    check_file(path)
    parts = parse_json(File(str(path), path.read_bytes()))
    characters, codes = parts.get("characters"), parts.get("codes")
    lists = [own for own in (characters, codes) if isinstance(own, list) and all(isinstance(one, str) for one in own)]
    if parts.get("kind") not in ("characters", "bytes") or len(lists) < 2:
        raise ValueError(f"{path} is not a vocabulary of characters: it needs kind, characters and codes")
    vocabulary = Bytes(codes) if parts["kind"] == "bytes" else Characters(characters, codes)
    if vocabulary.characters != characters or len({*characters, *codes}) < len(characters) + len(codes):
        raise ValueError(f"{path} is damaged: its characters do not match a vocabulary of {parts['kind']}")
    return vocabulary


def read(folder: Path) -> Pair:
    """One vocabulary, twice."""
    vocabulary = load(folder / FILE)
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    (folder / FILE).write_text(pair[0].text(), "utf-8", newline="\n")
