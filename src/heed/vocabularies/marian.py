"""The vocabularies of MarianMT (Junczys-Dowmunt et al., 2018): one SentencePiece model per side, and a table of ids."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.vocabularies import files
from heed.vocabularies.files import CONFIG, File
from heed.vocabularies.sentencepiece import encode_all, train
from heed.vocabularies.vocabulary import Pair, SpecialTokens, Vocabulary

NAMES = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
VOCAB, TARGET_VOCAB = "vocab.json", "target_vocab.json"


class MarianVocabulary(Vocabulary):
    """One side; the ids are those of transformers' MarianTokenizer, which does not normalize punctuation, even with sacremoses.

    A language tag such as >>fra<< before a text is one id: the table's, or that of <unk>. `config` is tokenizer_config.json:
    if it names a bos_token, as in exported Heed models, decoder inputs begin with that.
    """

    kind, clean = "marian", staticmethod(files.one_line)

    def __init__(self, spm: File, table: File, config: File | None = None):
        self.spm, self.table, self.config = spm, table, config
        self.processor = files.load_sentencepiece(spm)
        self._ids = files.check_ids(files.parse_json(table), table.path)
        for name in NAMES.values():
            if name not in self._ids:
                raise ValueError(f"{table.path} has no {name}: it is not the table of a Marian model")
        settings, added = files.parse_json(config), _added_ids(config)
        self._ids = self._ids | added
        special = {*NAMES.values(), *_special_names(settings)}
        for name in special - self._ids.keys():
            raise ValueError(
                f"{table.path} has no {name}, which tokenizer_config.json names: heed cannot extend a vocabulary"
            )
        self._skipped = {self._ids[name] for name in special}
        self._unsplit = set() if settings.get("split_special_tokens") else special | added.keys()
        longest_first = sorted(self._unsplit, key=len, reverse=True)
        self._unsplit_pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._size = max(self._ids.values()) + 1
        pad, unknown, last = (self._ids[name] for name in ("<pad>", "<unk>", "</s>"))
        first = self._ids.get(files.token_text(settings.get("bos_token")), pad)
        self.special = SpecialTokens(pad, unknown, first, last, never=tuple(sorted({pad, first})))

    def __len__(self) -> int:
        return self._size

    def __getstate__(self) -> tuple[File, File, File | None]:
        return self.spm, self.table, self.config

    def __setstate__(self, state: tuple[File, File, File | None]) -> None:
        self.__init__(*state)

    def language_tag(self, text: str) -> str:
        tag = re.match(r">>.*?<<\s*", text)
        return tag[0] if tag else ""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without special tokens around a text; special tokens in it are encoded as such."""
        parts = [self._parts(text) for text in texts]
        to_split = [part for row in parts for single, part in row if not single]
        split = iter(encode_all(self.processor, to_split, out_type=str))
        pieces = [[piece for single, part in row for piece in ([part] if single else next(split))] for row in parts]
        return [[self._ids.get(piece, self.special.unknown) for piece in row] for row in pieces]

    def _parts(self, text: str) -> list[tuple[bool, str]]:
        """The parts of a text that are a single token (True), and those that SentencePiece splits further."""
        parts, start = [], 0
        for match in [*self._unsplit_pattern.finditer(text), None]:
            part = text[start : match.start() if match else None]
            if part.startswith(">>") and "<<" in part:
                end = part.index("<<") + 2
                parts.append((True, part[:end]))
                part = part[end:]
            if part:
                parts.append((False, part))
            if match:
                parts.append((True, match[0]))
                start = match.end()
        return parts

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self._pieces[i] for i in ids if i in self._pieces and i not in self._skipped]
        return self.processor.decode_pieces(pieces).replace("▁", " ").strip() if pieces else ""

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._pieces.get(i, "<unk>") for i in ids]

    @cached_property
    def _pieces(self) -> dict[int, str]:
        return {number: piece for piece, number in self._ids.items()}

    def key(self) -> str:
        facts = [sorted(self._ids.items()), sorted(self._skipped), sorted(self._unsplit), self.special]
        return hashlib.sha256(b"marian" + self.spm.content + json.dumps(facts).encode()).hexdigest()


def _added_ids(config: File | None) -> dict[str, int]:
    """The tokens that tokenizer_config.json adds to the table; its special tokens must have the usual names."""
    contents = {CONFIG: config} if config else {}
    files.refuse_other_names(contents, NAMES)
    added = files.added_tokens(contents)
    for token in added.values():
        if any(token.get(flag) for flag in ("lstrip", "rstrip", "single_word")):
            raise ValueError(
                f"{contents[CONFIG].path}: {token['content']} absorbs the text next to it, which heed does not support"
            )
    return {token["content"]: number for number, token in added.items()}


def _special_names(settings: Mapping[str, Any]) -> set[str]:
    """The further special tokens in tokenizer_config.json."""
    names = [settings.get(f"{role}_token") for role in ("bos", "sep", "cls", "mask")]
    return {name for name in map(files.token_text, [*names, *files.extra_special_tokens(settings)]) if name}


def read(folder: Path) -> tuple[MarianVocabulary, MarianVocabulary]:
    """Both sides. Each has its own table if there is a target_vocab.json, unless tokenizer_config.json says otherwise."""
    contents = files.read_existing(folder, ["source.spm", "target.spm", VOCAB, TARGET_VOCAB, CONFIG])
    default = TARGET_VOCAB in contents and CONFIG not in contents
    separate = bool(files.parse_json(contents.get(CONFIG)).get("separate_vocabs", default))
    for name in ("source.spm", "target.spm", VOCAB, *([TARGET_VOCAB] if separate else [])):
        if name not in contents:
            raise ValueError(
                f"{folder} has no {name}: it cannot read text; a Marian model comes with source.spm, target.spm and vocab.json"
                + (" and, where the sides differ, target_vocab.json" if separate else "")
            )
    source = MarianVocabulary(contents["source.spm"], contents[VOCAB], contents.get(CONFIG))
    target_table = contents[TARGET_VOCAB if separate else VOCAB]
    target = MarianVocabulary(contents["target.spm"], target_table, contents.get(CONFIG))
    files.refuse_additions(folder, source._ids)
    return source, target


def write(folder: Path, pair: Pair) -> None:
    source, target = pair
    contents = {"source.spm": source.spm, "target.spm": target.spm, VOCAB: source.table, CONFIG: source.config}
    if target.table.content != source.table.content:
        contents[TARGET_VOCAB] = target.table
    files.write(folder, contents)


def learn(texts: Iterable[str], size: int) -> tuple[MarianVocabulary, MarianVocabulary]:
    """One vocabulary for both sides: </s>, <unk>, pieces, 256 bytes for unknown characters, and <pad>."""
    options = {"model_type": "unigram", "vocab_size": size - 1, "character_coverage": 0.9999, "byte_fallback": True}
    options |= {"eos_id": 0, "unk_id": 1, "bos_id": -1}
    spm = File("source.spm", train(texts, options, f"a Marian vocabulary of {size}"))
    processor = files.load_sentencepiece(spm)
    pieces = [*processor.id_to_piece(list(range(processor.vocab_size()))), "<pad>"]
    table = json.dumps({piece: number for number, piece in enumerate(pieces)}, ensure_ascii=False, indent=2)
    vocabulary = MarianVocabulary(spm, File(VOCAB, table.encode()))
    return vocabulary, vocabulary
