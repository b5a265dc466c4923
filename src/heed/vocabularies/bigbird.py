"""The vocabulary of BigBird (Zaheer et al., 2020): a SentencePiece unigram model of unnormalized text."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.files import CONFIG, File
from heed.vocabularies.pegasus import MODEL
from heed.vocabularies.sentencepiece import train
from heed.vocabularies.unigram import BEGIN, END, MASK, UnigramVocabulary, assemble, read_files, read_pieces
from heed.vocabularies.vocabulary import Pair

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("mask",)
NAMES = {
    "pad_token": "<pad>", "eos_token": "</s>", "bos_token": "<s>", "unk_token": "<unk>", "cls_token": BEGIN,
    "sep_token": END, "mask_token": MASK,
}  # fmt: skip


class BigBirdVocabulary(UnigramVocabulary):
    """The ids are those of transformers' BigBirdTokenizer from version 5 on, which does not normalize characters."""

    kind, tokenizer_class, names = "bigbird", "BigBirdTokenizer", NAMES
    segments = False  # as in every version of transformers

    def build(self, contents: Mapping[str, File]) -> "Tokenizer":
        from tokenizers import Regex, decoders, normalizers, pre_tokenizers

        pieces = read_pieces(contents, NAMES, "a BigBird")
        tokenizer = assemble(contents, pieces, [normalizers.Replace(Regex(" {2,}"), "▁")], NAMES)
        spaces = {"replacement": "▁", "prepend_scheme": "always", "split": True}
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(**spaces), decoders.Metaspace(**spaces)
        return tokenizer


def read(folder: Path) -> tuple[BigBirdVocabulary, BigBirdVocabulary]:
    """One vocabulary, twice; tokenizer.json has precedence over spiece.model."""
    vocabulary = BigBirdVocabulary(read_files(folder, "a BigBird"))
    files.refuse_additions(folder, vocabulary.tokenizer.get_vocab())
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[BigBirdVocabulary, BigBirdVocabulary]:
    """A vocabulary of `size`, including special tokens."""
    options = {"model_type": "unigram", "vocab_size": size, "character_coverage": 0.9999}
    options |= {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "control_symbols": [BEGIN, END, MASK]}
    model = train(texts, {**options, "normalization_rule_name": "identity"}, f"a BigBird vocabulary of {size}")
    config = {"tokenizer_class": "BigBirdTokenizer", **NAMES, **files.INPUTS}
    config["mask_token"] = {
        "__type": "AddedToken",
        "content": MASK,
        "lstrip": True,
        "rstrip": False,
        "single_word": False,
    }
    config["mask_token"]["normalized"] = False
    contents = {MODEL: File(MODEL, model), CONFIG: File(CONFIG, json.dumps(config, indent=2).encode())}
    vocabulary = BigBirdVocabulary(contents)
    return vocabulary, vocabulary
