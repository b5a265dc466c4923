"""Shared by the SentencePiece vocabularies of ALBERT and BigBird: their files, and the tokenizer built from them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heed.vocabularies import files
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.pegasus import MODEL, ScoredPieces, from_json
from heed.vocabularies.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BEGIN, END, MASK = "[CLS]", "[SEP]", "[MASK]"


class Pieces(NamedTuple):
    """The pieces with their scores, the model's character normalization map, and the path for errors."""

    scored: ScoredPieces
    charsmap: bytes | None
    path: str


class UnigramVocabulary(FastTokenizer):
    """A text is `[CLS] text [SEP]`. `names` are the special tokens by role.

    `segments` says whether there are segment ids if tokenizer_config.json does not say; Heed's vocabularies do.
    """

    names: Mapping[str, str]
    segments: bool

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, self.names)
        super().__init__(contents, self.build(contents))
        pad, unknown, first, last, mask = (
            self.tokenizer.token_to_id(self.names[f"{role}_token"]) for role in ("pad", "unk", "cls", "sep", "mask")
        )
        ends = {"first": first, "last": last, "before": (first,), "delimiter": (last,)}
        segments = files.has_segments(contents, self.segments)
        self.special = SpecialTokens(pad, unknown, **ends, mask=mask, segments=segments)

    def build(self, contents: Mapping[str, File]) -> "Tokenizer":
        raise NotImplementedError

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.tokenizer.id_to_token(i) or "<unk>" for i in ids]


def read_pieces(contents: Mapping[str, File], names: Mapping[str, str], owner: str) -> Pieces:
    """The pieces of a tokenizer.json, or else of a spiece.model; `owner` is the expected model."""
    found = Pieces(*from_json(contents[TOKENIZER])) if TOKENIZER in contents else _from_model(contents[MODEL])
    known = {piece for piece, _ in found.scored}
    for token in names.values():
        if token not in known:
            raise ValueError(f"{found.path} has no {token}: it is not the vocabulary of {owner}")
    return found


def _from_model(file: File) -> Pieces:
    processor = files.load_sentencepiece(file)
    scored = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.vocab_size())]
    return Pieces(scored, files.charsmap(file.content) or None, file.path)


def assemble(
    contents: Mapping[str, File], pieces: Pieces, steps: Sequence[Any], names: Mapping[str, str]
) -> "Tokenizer":
    """A unigram model after these steps of normalization, with the special tokens."""
    from tokenizers import AddedToken, Tokenizer, models, normalizers, processors

    try:
        unknown = [piece for piece, _ in pieces.scored].index(names["unk_token"])
        tokenizer = Tokenizer(models.Unigram(pieces.scored, unk_id=unknown, byte_fallback=False))
    except Exception as error:  # tokenizers raises no more specific error
        raise ValueError(f"{pieces.path} is damaged: {error}") from error
    tokenizer.normalizer = normalizers.Sequence(list(steps))
    config = files.parse_json(contents.get(CONFIG))
    added = [AddedToken(**token) for token in files.added_tokens(contents, names.values()).values()]
    known = {token.content for token in added}
    special = [config.get(key) or name for key, name in names.items()] + files.extra_special_tokens(config)
    missing = {own["content"]: own for own in map(files.token_fields, special) if own["content"] not in known}
    tokenizer.add_tokens([*added, *(AddedToken(**{**own, "special": True}) for own in missing.values())])
    marks = [(token, tokenizer.token_to_id(token)) for token in (BEGIN, END)]
    tokenizer.post_processor = processors.TemplateProcessing(
        f"{BEGIN} $A {END}", f"{BEGIN} $A {END} $B:1 {END}:1", special_tokens=marks
    )
    return tokenizer


def read_files(folder: Path, owner: str) -> dict[str, File]:
    """The files of a folder; one without a vocabulary is refused."""
    contents = files.read_existing(folder, [TOKENIZER, MODEL, CONFIG])
    if TOKENIZER not in contents and MODEL not in contents:
        raise ValueError(
            f"{folder} has no {MODEL}: it cannot read text; {owner} comes with {MODEL} or with {TOKENIZER}"
        )
    return contents
