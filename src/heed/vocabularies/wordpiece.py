"""WordPiece (Schuster and Nakajima, 2012) as in BERT and ELECTRA: words split at punctuation, and pieces of them marked by ##."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("mask",)
NAMES = {
    "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]",
}  # fmt: skip
VOCAB, CONTINUES = "vocab.txt", "##"
# how text is cleaned, by the names of tokenizer_config.json, with transformers' defaults
CLEANING = {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True}


class WordPieceVocabulary(FastTokenizer):
    """The ids are those of transformers' BertTokenizer. tokenizer_config.json says whether case and accents are
    kept.
    """

    kind, tokenizer_class = "wordpiece", "BertTokenizer"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, NAMES)
        super().__init__(contents, _build_tokenizer(contents))
        pad, unknown, first, last, mask = map(self.tokenizer.token_to_id, NAMES.values())
        ends = {"first": first, "last": last, "before": (first,), "delimiter": (last,)}
        segments = files.has_segments(contents, default=True)
        self.special = SpecialTokens(pad, unknown, **ends, mask=mask, segments=segments)
        self._size = max(self.tokenizer.get_vocab().values()) + 1
        self._added = {i: token.content for i, token in self.tokenizer.get_added_tokens_decoder().items()}

    def __len__(self) -> int:
        return self._size

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._added.get(i) or _shown(self.tokenizer.id_to_token(i)) for i in ids]


def _shown(token: str | None) -> str:
    if token is None:
        return NAMES["unk_token"]
    return token.removeprefix(CONTINUES) if token.startswith(CONTINUES) else f"▁{token}"


def _build_tokenizer(contents: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken, processors

    config = files.parse_json(contents.get(CONFIG))
    ids, path = _from_json(contents[TOKENIZER]) if TOKENIZER in contents else _from_text(contents[VOCAB])
    for token in NAMES.values():
        if token not in ids:
            raise ValueError(f"{path} has no {token}: it is not the WordPiece vocabulary of a BERT")
    tokenizer = _tokenizer(ids, {name: config.get(name, default) for name, default in CLEANING.items()})
    added = [AddedToken(**token) for token in files.added_tokens(contents, NAMES.values()).values()]
    known = {token.content for token in added}
    special = [config.get(key) or name for key, name in NAMES.items()] + files.extra_special_tokens(config)
    missing = [own for own in map(files.token_fields, special) if own["content"] not in known]
    tokenizer.add_tokens([*added, *(AddedToken(**{**own, "special": True}) for own in missing)])
    first, last = ((token, tokenizer.token_to_id(token)) for token in (NAMES["cls_token"], NAMES["sep_token"]))
    tokenizer.post_processor = processors.BertProcessing(last, first)
    return tokenizer


def _tokenizer(ids: dict[str, int], cleaning: Mapping[str, bool | None]) -> "Tokenizer":
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    lower, accents, chinese = (cleaning[name] for name in CLEANING)
    tokenizer = Tokenizer(models.WordPiece(vocab=ids, unk_token=NAMES["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=lower, strip_accents=accents, handle_chinese_chars=chinese
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUES)
    return tokenizer


def _from_json(file: File) -> tuple[dict[str, int], str]:
    """The table of a tokenizer.json; transformers takes the normalization from tokenizer_config.json."""
    model = files.parse_json(file).get("model") or {}
    if model.get("continuing_subword_prefix", CONTINUES) != CONTINUES or "merges" in model:
        raise ValueError(f"{file.path} is not WordPiece with {CONTINUES}, as BERT uses: heed cannot read it")
    return files.check_ids(model.get("vocab"), file.path), file.path


def _from_text(file: File) -> tuple[dict[str, int], str]:
    """The table of a vocab.txt: a line is a piece, and its number its id."""
    try:
        lines = file.content.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.path} is damaged: it is not text ({error})") from error
    return {line.removesuffix("\r"): number for number, line in enumerate(lines)}, file.path


def read(folder: Path) -> tuple[WordPieceVocabulary, WordPieceVocabulary]:
    """One vocabulary, twice; tokenizer.json has precedence over vocab.txt."""
    contents = files.read_existing(folder, [TOKENIZER, VOCAB, CONFIG])
    if TOKENIZER not in contents and VOCAB not in contents:
        raise ValueError(
            f"{folder} has no {VOCAB} and no {TOKENIZER}: it cannot read text; a BERT comes with one or the other"
        )
    vocabulary = WordPieceVocabulary(contents)
    files.refuse_additions(folder, vocabulary.tokenizer.get_vocab())
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int, lower: bool = False) -> tuple[WordPieceVocabulary, WordPieceVocabulary]:
    """The special tokens, the characters of the texts, and pieces. `lower`: lowercase without accents, Hangul
    decomposed.
    """
    from tokenizers import trainers

    cleaning, texts, first = {**CLEANING, "do_lower_case": lower}, list(texts), list(NAMES.values())
    for _ in range(
        2
    ):  # the first time the trainer numbers the characters within words in random order, and so chooses among equals
        tokenizer = _tokenizer({name: number for number, name in enumerate(first)}, cleaning)
        trainer = trainers.WordPieceTrainer(
            vocab_size=size, special_tokens=first, continuing_subword_prefix=CONTINUES, show_progress=False
        )
        tokenizer.train_from_iterator(iter(texts), trainer)
        ids = tokenizer.get_vocab()
        inner = [piece for piece in ids if piece.startswith(CONTINUES) and len(piece) == len(CONTINUES) + 1]
        first = [*NAMES.values(), *sorted(inner)]
    if len(ids) > size:
        raise ValueError(
            f"a WordPiece vocabulary of {size} could not be learned: the special tokens and the characters alone are {len(ids)}"
        )
    contents = {
        VOCAB: "".join(f"{piece}\n" for piece in sorted(ids, key=ids.__getitem__)),
        CONFIG: json.dumps({"tokenizer_class": "BertTokenizer", **cleaning, **NAMES}, indent=2),
    }
    vocabulary = WordPieceVocabulary({name: File(name, content.encode()) for name, content in contents.items()})
    return vocabulary, vocabulary
