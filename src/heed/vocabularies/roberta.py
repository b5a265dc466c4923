"""The vocabulary of RoBERTa (Liu et al., 2019): byte-level BPE, with BART's files and special tokens."""

import json
from collections.abc import Iterable
from pathlib import Path

from heed.vocabularies import byte_bpe, files
from heed.vocabularies.byte_bpe import ByteBPE
from heed.vocabularies.files import CONFIG, File
from heed.vocabularies.vocabulary import Pair

SPECIAL_TOKENS = byte_bpe.SPECIAL_TOKENS


class RobertaVocabulary(ByteBPE):
    """The ids are those of transformers' RobertaTokenizer."""

    kind, tokenizer_class = "roberta", "RobertaTokenizer"


def read(folder: Path) -> tuple[RobertaVocabulary, RobertaVocabulary]:
    """One vocabulary, twice; tokenizer.json has precedence over vocab.json with merges.txt."""
    vocabulary = RobertaVocabulary(byte_bpe.read(folder)[0].files)
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[RobertaVocabulary, RobertaVocabulary]:
    contents = byte_bpe.learn(texts, size)[0].files
    config = {**files.parse_json(contents[CONFIG]), "tokenizer_class": RobertaVocabulary.tokenizer_class}
    contents[CONFIG] = File(CONFIG, json.dumps(config, indent=2).encode())
    vocabulary = RobertaVocabulary(contents)
    return vocabulary, vocabulary
