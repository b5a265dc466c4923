"""The vocabulary of Pegasus (Zhang et al., 2020): 103 special tokens and a SentencePiece unigram model; one for both sides."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.charsmap import precompiled
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.sentencepiece import train
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OFFSET = 103  # how far the ids of pieces are shifted: <mask_1>, <mask_2> and <unk_2> to <unk_102> come before them
SPECIAL_TOKENS = ("mask", "gap")
NAMES = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
NAMES |= {"mask_token": "<mask_2>", "mask_token_sent": "<mask_1>"}
RESERVED = [f"<unk_{i}>" for i in range(2, OFFSET)]
MODEL = "spiece.model"
ScoredPieces = list[tuple[str, float]]


class PegasusVocabulary(FastTokenizer):
    """The ids are those of transformers' PegasusTokenizer from version 5 on, which uses `tokenizers`, not SentencePiece.

    So a space at the end of a text is a separate piece, and there is no byte fallback for unknown characters.
    """

    kind, tokenizer_class = "pegasus", "PegasusTokenizer"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, NAMES)
        offset = files.parse_json(contents.get(CONFIG)).get("offset", OFFSET)
        if offset != OFFSET:
            raise ValueError(f"{contents[CONFIG].path}: offset is {offset!r}; heed reads vocabularies with {OFFSET}")
        super().__init__(contents, _build_tokenizer(contents))
        last, unknown, pad, mask, gap = map(self.tokenizer.token_to_id, NAMES.values())
        self.special = SpecialTokens(pad, unknown, first=pad, last=last, mask=mask, gap=gap)

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.tokenizer.id_to_token(i) or "<unk>" for i in ids]


def _build_tokenizer(contents: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocab, charsmap, name = from_json(contents[TOKENIZER]) if TOKENIZER in contents else _from_spm(contents[MODEL])
    pieces = [piece for piece, _ in vocab]
    for token in {*NAMES.values(), *RESERVED}.difference(pieces):
        raise ValueError(f"{name} has no {token}: it is not the vocabulary of a Pegasus")
    try:
        tokenizer = Tokenizer(models.Unigram(vocab, unk_id=pieces.index("<unk>")))
    except Exception as error:  # tokenizers raises no more specific error
        raise ValueError(f"{name} is damaged: {error}") from error
    characters = precompiled(charsmap, name) if charsmap else normalizers.Replace(Regex(r"\n"), " ")
    tokenizer.normalizer = normalizers.Sequence([characters, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    added = [AddedToken(**token) for token in files.added_tokens(contents, NAMES.values()).values()]
    known = {token.content for token in added}
    missing = [name for name in (*NAMES.values(), *RESERVED) if name not in known]
    tokenizer.add_tokens([*added, *(AddedToken(name, special=True) for name in missing)])
    ends = [("</s>", tokenizer.token_to_id("</s>"))]
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", "$A $B </s>", special_tokens=ends)
    return tokenizer


def from_json(file: File) -> tuple[ScoredPieces, bytes | None, str]:
    """The pieces of a tokenizer.json, and its character normalization."""
    settings = files.parse_json(file)
    model, normalizer = settings.get("model") or {}, settings.get("normalizer") or {}
    vocab = model.get("vocab")
    if not isinstance(vocab, list) or "unk_id" not in model:
        raise ValueError(f"{file.path} is not a unigram model: heed cannot read it")
    steps = normalizer.get("normalizers", [normalizer])
    maps = [step["precompiled_charsmap"] for step in steps if step.get("type") == "Precompiled"]
    try:
        pieces = [(str(piece), float(score)) for piece, score in vocab]
        return pieces, base64.b64decode(maps[0]) if maps else None, file.path
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file.path} is damaged: {error}") from error


def _from_spm(file: File) -> tuple[ScoredPieces, bytes | None, str]:
    """The special tokens and the pieces of a SentencePiece model, and its character normalization."""
    processor = files.load_sentencepiece(file)
    if processor.unk_id() != 2:
        raise ValueError(
            f"{file.path} has <unk> at {processor.unk_id()}; the model of a Pegasus has it at 2, after <pad> and </s>"
        )
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(2, processor.vocab_size())]
    special = [(name, 0.0) for name in ("<pad>", "</s>", "<mask_1>", "<mask_2>")]
    reserved = [(name, -100.0) for name in RESERVED]
    return [*special, *reserved, *pieces], files.charsmap(file.content) or None, file.path


def read(folder: Path) -> tuple[PegasusVocabulary, PegasusVocabulary]:
    """One vocabulary, twice; tokenizer.json has precedence over spiece.model."""
    contents = files.read_existing(folder, [TOKENIZER, MODEL, CONFIG])
    if TOKENIZER not in contents and MODEL not in contents:
        raise ValueError(
            f"{folder} has no {MODEL}: it cannot read text; a Pegasus comes with {MODEL} or with {TOKENIZER}"
        )
    vocabulary = PegasusVocabulary(contents)
    files.refuse_additions(folder, vocabulary.tokenizer.get_vocab())
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[PegasusVocabulary, PegasusVocabulary]:
    """A vocabulary of `size`, including special tokens."""
    minimum = len(NAMES) + len(RESERVED)
    if size <= minimum:
        raise ValueError(f"a Pegasus vocabulary of {size} could not be learned: the special tokens alone are {minimum}")
    options = {"model_type": "unigram", "vocab_size": size - OFFSET, "character_coverage": 0.9999}
    options |= {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    model = train(texts, options, f"a Pegasus vocabulary of {size}")
    vocabulary = PegasusVocabulary({MODEL: File(MODEL, model)})
    return vocabulary, vocabulary
