"""Write vocabularies as tokenizer files for transformers."""

import json
import sys
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from heed.vocabularies import files, m2m100, marian, mbart50
from heed.vocabularies.albert import AlbertVocabulary
from heed.vocabularies.bigbird import BigBirdVocabulary
from heed.vocabularies.byte_bpe import ByteBPE
from heed.vocabularies.ctrl import CTRLVocabulary
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.gpt import GPTVocabulary
from heed.vocabularies.gpt2 import GPT2Vocabulary
from heed.vocabularies.m2m100 import M2M100Vocabulary
from heed.vocabularies.marian import MarianVocabulary
from heed.vocabularies.mbart50 import MBart50Vocabulary
from heed.vocabularies.nllb import NllbVocabulary
from heed.vocabularies.pegasus import PegasusVocabulary
from heed.vocabularies.roberta import RobertaVocabulary
from heed.vocabularies.sentencepiece import Subwords
from heed.vocabularies.text_parts import INPUT_NAMES, InputTokens, TextParts
from heed.vocabularies.vocabulary import Pair, Vocabulary
from heed.vocabularies.wordpiece import WordPieceVocabulary


def input_tokens(vocabularies: Pair, choices: bool) -> InputTokens | None:
    """The tokens around the parts of a text, if there are any: only models that score choices can be exported with
    them.
    """
    first = vocabularies[0]
    tokens = first.tokens if isinstance(first, TextParts) else None
    if tokens is not None and not choices:
        raise ValueError(
            "the model frames texts with tokens that transformers' tokenizers do not support: it cannot be exported"
        )
    return tokens


def write_input_tokens(vocabulary: Vocabulary, tokens: InputTokens, folder: Path) -> None:
    """A tokenizer.json in which they are special tokens, under the names that heed shows. Rows of the model between
    the vocabulary and them become reserved tokens.
    """
    from tokenizers import AddedToken, Tokenizer

    tokenizer = Tokenizer.from_str(vocabulary.tokenizer.to_str())
    unused = [f"<|reserved_token_{row}|>" for row in range(len(vocabulary), tokens.start)]
    names = [*unused, *INPUT_NAMES]
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    found = [tokenizer.token_to_id(name) for name in INPUT_NAMES]
    if found != list(tokens):  # a text could spell one of them
        raise ValueError(
            f"the vocabulary has the names of the tokens around a text, {', '.join(INPUT_NAMES)}: it cannot be exported"
        )
    (folder / TOKENIZER).write_text(tokenizer.to_str(pretty=True), "utf-8", newline="\n")


def write(vocabularies: Pair, folder: Path, max_length: int) -> None:
    """Files for AutoTokenizer. Heed's own vocabularies are exported as Marian's."""
    kinds = [type(side) for side in vocabularies]
    if kinds[0] is not kinds[1] or kinds[0] not in WRITERS:
        names = " and ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"the vocabularies are {names}; transformers has no tokenizer for this combination")
    WRITERS[kinds[0]](vocabularies, folder, max_length)


def _sentencepiece(pair: Pair, folder: Path, max_length: int) -> None:
    """Heed's own vocabulary as Marian's. Its normalization goes into the SentencePiece model; special tokens in a
    text remain text. The ids are the same, except for texts that begin with something like >>fra<<, which Marian
    reads as a language.
    """
    separate = pair[0].model != pair[1].model
    for side, vocabulary in zip(("source", "target"), pair, strict=True):
        (folder / f"{side}.spm").write_bytes(_with_cleaning(vocabulary.model))
        table = {piece: number for number, piece in enumerate(vocabulary.pieces(range(len(vocabulary))))}
        if side == "source" or separate:
            _write_json(folder / (marian.TARGET_VOCAB if side == "target" else marian.VOCAB), table)
    settings = {**marian.NAMES, "bos_token": "<s>", "separate_vocabs": separate, "split_special_tokens": True}
    _write_settings(folder, None, "MarianTokenizer", model_max_length=max_length, **settings)


def _marian(pair: Pair, folder: Path, max_length: int) -> None:
    marian.write(folder, pair)
    separate = pair[0].table.content != pair[1].table.content
    _write_settings(folder, pair[0].config, "MarianTokenizer", separate_vocabs=separate, model_max_length=max_length)


def _one_for_both(pair: Pair, folder: Path, max_length: int) -> None:
    shared = _shared(*pair)
    files.write(folder, shared.files)
    _write_settings(folder, shared.files.get(CONFIG), shared.tokenizer_class, model_max_length=max_length)


def _unigram(pair: Pair, folder: Path, max_length: int) -> None:
    """Always with a tokenizer.json: transformers reads spiece.model only with protobuf, and reads some settings
    incorrectly.
    """
    shared = _shared(*pair)
    files.write(folder, shared.files)
    if TOKENIZER not in shared.files:
        (folder / TOKENIZER).write_text(shared.tokenizer.to_str(pretty=True), "utf-8", newline="\n")
    _write_settings(folder, shared.files.get(CONFIG), shared.tokenizer_class, model_max_length=max_length)


def _mbart50(pair: Pair, folder: Path, max_length: int) -> None:
    """With a tokenizer.json, like Pegasus."""
    mbart50.write(folder, pair)
    if TOKENIZER not in pair[0].files:
        (folder / TOKENIZER).write_text(pair[0].tokenizer.to_str(pretty=True), "utf-8", newline="\n")
    _write_settings(folder, pair[0].files.get(CONFIG), "MBart50Tokenizer", model_max_length=max_length, **_chosen(pair))


def _m2m100(pair: Pair, folder: Path, max_length: int) -> None:
    m2m100.write(folder, pair)
    _write_settings(folder, pair[0].files.get(CONFIG), "M2M100Tokenizer", model_max_length=max_length, **_chosen(pair))


def _nllb(pair: Pair, folder: Path, max_length: int) -> None:
    m2m100.write(folder, pair)
    _write_settings(folder, pair[0].files.get(CONFIG), "NllbTokenizer", model_max_length=max_length, **_chosen(pair))


def _chosen(pair: Pair) -> dict[str, str]:
    """The tokenizer's default direction, if any."""
    chosen = zip(("src_lang", "tgt_lang"), (vocabulary.language for vocabulary in pair), strict=True)
    return {name: code for name, code in chosen if code is not None}


WRITERS = {
    Subwords: _sentencepiece,
    MarianVocabulary: _marian,
    ByteBPE: _one_for_both,
    GPTVocabulary: _one_for_both,
    GPT2Vocabulary: _one_for_both,
    CTRLVocabulary: _one_for_both,
    WordPieceVocabulary: _one_for_both,
    RobertaVocabulary: _one_for_both,
    AlbertVocabulary: _unigram,
    BigBirdVocabulary: _unigram,
    PegasusVocabulary: _unigram,
    MBart50Vocabulary: _mbart50,
    M2M100Vocabulary: _m2m100,
    NllbVocabulary: _nllb,
}


def _shared(source: Vocabulary, target: Vocabulary) -> Any:
    if source.key() != target.key():
        raise ValueError(
            f"the two sides have different vocabularies; a {type(source).__name__} has a single one in transformers"
        )
    return source


def _write_settings(folder: Path, config: File | None, name: str, **settings: Any) -> None:
    _write_json(folder / CONFIG, {**files.parse_json(config), "tokenizer_class": name, **settings})


def _write_json(path: Path, table: dict[str, Any]) -> None:
    path.write_text(json.dumps(table, ensure_ascii=False, indent=2), "utf-8", newline="\n")


def _with_cleaning(model: bytes) -> bytes:
    """A SentencePiece model that normalizes text as heed does; one with its own normalization keeps it."""
    import sentencepiece

    if files.charsmap(model):
        return model
    sentencepiece.set_min_log_level(2)  # it reports the size of its tables
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    prefix = processor.normalize("a") != "a"
    rules = sentencepiece.SentencePieceNormalizer(
        norm_map=_rules(), add_dummy_prefix=prefix, escape_whitespaces=True, remove_extra_whitespaces=True
    )
    processor.LoadFromSerializedProto(model + rules.serialized_model_proto())  # concatenated messages are merged
    return processor.serialized_model_proto()


@cache
def _rules() -> list[tuple[str, str]]:
    """`heed.vocabularies.sentencepiece.clean` as rules: NFC of each character, and any whitespace becomes a space."""
    rules = {}
    for char in map(chr, range(sys.maxunicode + 1)):
        if char.isspace() or char == "▁":
            rules[char] = " "
        elif (decomposed := unicodedata.normalize("NFD", char)) != char:
            composed = unicodedata.normalize("NFC", char)
            rules |= {form: composed for form in (char, decomposed) if form != composed}
    del rules[" "]
    return list(rules.items())
