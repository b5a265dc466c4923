"""The vocabulary of ALBERT (Lan et al., 2020): a SentencePiece unigram model over whitespace-separated words."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.charsmap import precompiled
from heed.vocabularies.files import CONFIG, File
from heed.vocabularies.pegasus import MODEL
from heed.vocabularies.sentencepiece import train
from heed.vocabularies.unigram import BEGIN, END, MASK, UnigramVocabulary, assemble, read_files, read_pieces
from heed.vocabularies.vocabulary import Pair

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("mask",)
NAMES = {
    "pad_token": "<pad>", "unk_token": "<unk>", "bos_token": BEGIN, "eos_token": END, "cls_token": BEGIN, "sep_token": END,
    "mask_token": MASK,
}  # fmt: skip
CLEANING = {"do_lower_case": True, "keep_accents": False}  # with transformers' defaults


class AlbertVocabulary(UnigramVocabulary):
    """The ids are those of transformers' AlbertTokenizer. tokenizer_config.json says whether case and accents are
    kept.
    """

    kind, tokenizer_class, names = "albert", "AlbertTokenizer", NAMES
    segments = True  # as up to version 4 of transformers; its version 5 asks to be told

    def build(self, contents: Mapping[str, File]) -> "Tokenizer":
        from tokenizers import decoders, normalizers, pre_tokenizers

        pieces = read_pieces(contents, NAMES, "an ALBERT")
        if [piece for piece, _ in pieces.scored].index("<unk>") != 1:
            raise ValueError(f"{pieces.path} does not have <unk> at 1, after <pad>, as an ALBERT vocabulary does")
        config = {**CLEANING, **files.parse_json(contents.get(CONFIG))}
        steps = [normalizers.Replace(quotes, '"') for quotes in ("``", "''")]
        steps += [] if config["keep_accents"] else [normalizers.NFKD(), normalizers.StripAccents()]
        steps += [normalizers.Lowercase()] if config["do_lower_case"] else []
        steps += [precompiled(pieces.charsmap, pieces.path)] if pieces.charsmap else []
        tokenizer = assemble(contents, pieces, steps, NAMES)
        spaces = {"replacement": "▁", "prepend_scheme": "always"}
        words = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**spaces)]
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Sequence(words), decoders.Metaspace(**spaces)
        return tokenizer


def read(folder: Path) -> tuple[AlbertVocabulary, AlbertVocabulary]:
    """One vocabulary, twice; tokenizer.json has precedence over spiece.model."""
    vocabulary = AlbertVocabulary(read_files(folder, "an ALBERT"))
    files.refuse_additions(folder, vocabulary.tokenizer.get_vocab())
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[AlbertVocabulary, AlbertVocabulary]:
    """A vocabulary of `size`, including special tokens, that keeps case and accents."""
    options = {"model_type": "unigram", "vocab_size": size, "character_coverage": 0.9999}
    options |= {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": [BEGIN, END, MASK]}
    model = train(texts, options, f"an ALBERT vocabulary of {size}")
    config = {"tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": True, **files.INPUTS}
    contents = {MODEL: File(MODEL, model), CONFIG: File(CONFIG, json.dumps(config, indent=2).encode())}
    vocabulary = AlbertVocabulary(contents)
    return vocabulary, vocabulary
