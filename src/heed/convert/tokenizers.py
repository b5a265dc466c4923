"""Vocabularies as tokenizer files that transformers reads."""

import json
import sys
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from heed.vocabularies import byte_bpe, files, marian, pegasus
from heed.vocabularies.byte_bpe import ByteBPE
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.marian import MarianVocabulary
from heed.vocabularies.pegasus import PegasusVocabulary
from heed.vocabularies.sentencepiece import Subwords
from heed.vocabularies.vocabulary import Pair, Vocabulary


def write(subwords: Pair, folder: Path, max_length: int) -> None:
    """Files that AutoTokenizer reads; heed's own vocabularies go out as Marian's."""
    kinds = [type(side) for side in subwords]
    if kinds[0] is not kinds[1] or kinds[0] not in WRITERS:
        names = " and ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"the vocabularies are {names}; transformers has no tokenizer for these two together")
    WRITERS[kinds[0]](subwords, folder, max_length)


def _own(pair: Pair, folder: Path, max_length: int) -> None:
    """Heed's own as Marian's, with its cleaning in the SentencePiece model; a mark written in a text stays text, as here.

    The ids are equal but for a text that begins with something like >>fra<<, which Marian reads as a language.
    """
    separate = pair[0].model != pair[1].model
    for side, part in zip(("source", "target"), pair, strict=True):
        (folder / f"{side}.spm").write_bytes(_cleaned(part.model))
        table = {piece: number for number, piece in enumerate(part.pieces(range(len(part))))}
        if side == "source" or separate:
            _json(folder / (marian.TARGET_VOCAB if side == "target" else marian.VOCAB), table)
    said = {**marian.NAMES, "bos_token": "<s>", "separate_vocabs": separate, "split_special_tokens": True}
    _settings(folder, None, {"tokenizer_class": "MarianTokenizer", "model_max_length": max_length, **said})


def _marian(pair: Pair, folder: Path, max_length: int) -> None:
    marian.write(folder, pair)
    said = {"separate_vocabs": pair[0].table.content != pair[1].table.content, "model_max_length": max_length}
    _settings(folder, pair[0].config, {"tokenizer_class": "MarianTokenizer", **said})


def _bart(pair: Pair, folder: Path, max_length: int) -> None:
    one = _same(*pair)
    byte_bpe.write(folder, pair)
    said = {"tokenizer_class": "BartTokenizer", "model_max_length": max_length}
    _settings(folder, one.files.get(CONFIG), said)


def _pegasus(pair: Pair, folder: Path, max_length: int) -> None:
    """With a tokenizer.json always: transformers reads spiece.model only with protobuf, and with some settings wrongly."""
    one = _same(*pair)
    pegasus.write(folder, pair)
    if TOKENIZER not in one.files:
        (folder / TOKENIZER).write_text(one.tokenizer.to_str(pretty=True), "utf-8")
    said = {"tokenizer_class": "PegasusTokenizer", "model_max_length": max_length}
    _settings(folder, one.files.get(CONFIG), said)


WRITERS = {Subwords: _own, MarianVocabulary: _marian, ByteBPE: _bart, PegasusVocabulary: _pegasus}


def _same(source: Vocabulary, target: Vocabulary) -> Any:
    if source.key() != target.key():
        raise ValueError(
            f"the two sides have different vocabularies; a {type(source).__name__} is one for both in transformers"
        )
    return source


def _settings(folder: Path, config: File | None, said: dict[str, Any]) -> None:
    _json(folder / CONFIG, {**files.parse_json(config), **said})


def _json(path: Path, table: dict[str, Any]) -> None:
    path.write_text(json.dumps(table, ensure_ascii=False, indent=2), "utf-8")


def _cleaned(model: bytes) -> bytes:
    """A SentencePiece model that cleans as heed does; one that changes characters in its own way is left to it."""
    import sentencepiece

    if files.charsmap(model):
        return model
    sentencepiece.set_min_log_level(2)  # it tells of the size of its tables
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    rules = sentencepiece.SentencePieceNormalizer(
        norm_map=_rules(),
        add_dummy_prefix=processor.normalize("a") != "a",
        escape_whitespaces=True,
        remove_extra_whitespaces=True,
    )
    processor.LoadFromSerializedProto(model + rules.serialized_model_proto())  # messages one after another are merged
    return processor.serialized_model_proto()


@cache
def _rules() -> list[tuple[str, str]]:
    """What `heed.vocabularies.sentencepiece.clean` does: NFC, character by character, and white space is a space."""
    rules = {}
    for char in map(chr, range(sys.maxunicode + 1)):
        if char.isspace() or char == "▁":
            rules[char] = " "
        elif (apart := unicodedata.normalize("NFD", char)) != char:
            composed = unicodedata.normalize("NFC", char)
            rules |= {way: composed for way in (char, apart) if way != composed}
    del rules[" "]
    return list(rules.items())
