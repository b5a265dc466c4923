"""The vocabularies of MarianMT (Junczys-Dowmunt et al., 2018): a SentencePiece model a side, and a table of ids."""

import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.vocabularies import files
from heed.vocabularies.files import CONFIG, File
from heed.vocabularies.sentencepiece import encoded
from heed.vocabularies.vocabulary import Pair, SpecialTokens

NAMES = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
VOCAB, TARGET_VOCAB = "vocab.json", "target_vocab.json"


class MarianVocabulary:
    """One side; its ids are those of transformers' MarianTokenizer, which leaves punctuation as it is, sacremoses or not.

    A language tag such as >>fra<< in front of a text is one id: the table's, or that of <unk>. `config` is
    tokenizer_config.json: where it names a bos_token, as heed's own models do when they go out, a decoder begins with that.
    """

    def __init__(self, spm: File, table: File, config: File | None = None):
        self.spm, self.table, self.config = spm, table, config
        self.processor = files.sentencepiece(spm)
        self._ids = files.numbered(files.table(table), table.path)
        for name in NAMES.values():
            if name not in self._ids:
                raise ValueError(f"{table.path} has no {name}: it is not the table of a Marian model")
        settings, added = files.table(config), _added(config)
        self._ids = self._ids | added
        special = {*NAMES.values(), *_named(settings)}
        for name in special - self._ids.keys():
            raise ValueError(
                f"{table.path} has no {name}, which tokenizer_config.json names: heed cannot add to a vocabulary"
            )
        self._skipped = {self._ids[name] for name in special}
        self._whole = set() if settings.get("split_special_tokens") else special | added.keys()
        self._cut = re.compile(
            "|".join(re.escape(name) for name in sorted(self._whole, key=len, reverse=True)) or "(?!)"
        )
        self._size = max(self._ids.values()) + 1
        pad, unknown, last = (self._ids[name] for name in ("<pad>", "<unk>", "</s>"))
        first = self._ids.get(files.content(settings.get("bos_token")), pad)
        self.marks = SpecialTokens(pad, unknown, first, last, never=tuple(sorted({pad, first})))

    def __len__(self) -> int:
        return self._size

    def __getstate__(self) -> tuple[File, File, File | None]:
        return self.spm, self.table, self.config

    def __setstate__(self, state: tuple[File, File, File | None]) -> None:
        self.__init__(*state)

    def clean(self, text: str) -> str:
        return files.one_line(text)

    def lead(self, text: str) -> str:
        tag = re.match(r">>.*?<<\s*", text)
        return tag[0] if tag else ""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids without marks; marks that are written in a text are marks."""
        parts = [self._parts(text) for text in texts]
        rest = [part for own in parts for whole, part in own if not whole]
        plain = iter(encoded(self.processor, rest, out_type=str))
        pieces = [[piece for whole, part in own for piece in ([part] if whole else next(plain))] for own in parts]
        return [[self._ids.get(piece, self.marks.unknown) for piece in own] for own in pieces]

    def _parts(self, text: str) -> list[tuple[bool, str]]:
        """A text cut into what is one token (True) and what SentencePiece cuts further."""
        parts, start = [], 0
        for match in [*self._cut.finditer(text), None]:
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
        facts = [sorted(self._ids.items()), sorted(self._skipped), sorted(self._whole), self.marks]
        return hashlib.sha256(b"marian" + self.spm.content + json.dumps(facts).encode()).hexdigest()


def _added(config: File | None) -> dict[str, int]:
    """What tokenizer_config.json adds to the table; the usual tokens must have their usual names."""
    own = {CONFIG: config} if config else {}
    files.refuse_other_names(own, NAMES)
    added = files.listed(own)
    for token in added.values():
        if any(token.get(flag) for flag in ("lstrip", "rstrip", "single_word")):
            raise ValueError(
                f"{own[CONFIG].path}: {token['content']} takes the text beside it along; heed cannot read that"
            )
    return {token["content"]: number for number, token in added.items()}


def _named(settings: Mapping[str, Any]) -> set[str]:
    """The further tokens to which tokenizer_config.json gives a part to play."""
    names = [settings.get(f"{part}_token") for part in ("bos", "sep", "cls", "mask")]
    return {name for name in map(files.content, [*names, *files.extra(settings)]) if name}


def read(folder: Path) -> tuple[MarianVocabulary, MarianVocabulary]:
    """Both sides; they have a table each where there is a target_vocab.json and tokenizer_config.json does not deny it."""
    found = files.gather(folder, ["source.spm", "target.spm", VOCAB, TARGET_VOCAB, CONFIG])
    separate = bool(
        files.table(found.get(CONFIG)).get("separate_vocabs", TARGET_VOCAB in found and CONFIG not in found)
    )
    for name in ("source.spm", "target.spm", VOCAB, *([TARGET_VOCAB] if separate else [])):
        if name not in found:
            raise ValueError(
                f"{folder} has no {name}: it cannot read text; a Marian model comes with source.spm, target.spm and vocab.json"
                + (" and, where the sides differ, target_vocab.json" if separate else "")
            )
    tables = found[VOCAB], found[TARGET_VOCAB if separate else VOCAB]
    pair = [
        MarianVocabulary(found[f"{side}.spm"], own, found.get(CONFIG))
        for side, own in zip(("source", "target"), tables, strict=True)
    ]
    files.refuse_additions(folder, pair[0]._ids)
    return pair[0], pair[1]


def write(folder: Path, pair: Pair) -> None:
    source, target = pair
    own = {"source.spm": source.spm, "target.spm": target.spm, VOCAB: source.table, CONFIG: source.config}
    if target.table.content != source.table.content:
        own[TARGET_VOCAB] = target.table
    files.write(folder, own)


def learn(texts: Iterable[str], size: int) -> tuple[MarianVocabulary, MarianVocabulary]:
    """One vocabulary for both sides: </s>, <unk>, pieces, a byte for whatever has no piece, and <pad>."""
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type="unigram",
            vocab_size=size - 1,
            hard_vocab_limit=False,
            character_coverage=0.9999,
            byte_fallback=True,
            eos_id=0,
            unk_id=1,
            bos_id=-1,
            max_sentence_length=100_000,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(f"a Marian vocabulary of {size} could not be learned: {error}") from error
    spm = File("source.spm", model.getvalue())
    processor = files.sentencepiece(spm)
    pieces = [*processor.id_to_piece(list(range(processor.vocab_size()))), "<pad>"]
    table = json.dumps({piece: number for number, piece in enumerate(pieces)}, ensure_ascii=False, indent=2)
    one = MarianVocabulary(spm, File(VOCAB, table.encode()))
    return one, one
