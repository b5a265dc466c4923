"""The vocabulary of Pegasus (Zhang et al., 2020): a SentencePiece unigram model behind 103 marks, one for both sides."""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.files import CONFIG, WHOLE, File
from heed.vocabularies.tokenized import Tokenized
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

OFFSET = 103  # how far the pieces are shifted: <mask_1>, <mask_2> and <unk_2> to <unk_102> stand before them
SPECIAL_TOKENS = ("mask", "gap")
NAMES = {
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask_2>",
    "mask_token_sent": "<mask_1>",
}
RESERVED = [f"<unk_{i}>" for i in range(2, OFFSET)]
MODEL = "spiece.model"
Scored = list[tuple[str, float]]


class PegasusVocabulary(Tokenized):
    """Its ids are those of transformers' PegasusTokenizer from version 5 on: it cuts with `tokenizers`, not with SentencePiece.

    So a space at the end of a text is a piece of its own, and a character is unknown where SentencePiece might know its bytes.
    """

    def __init__(self, own: Mapping[str, File]):
        files.refuse_other_names(own, NAMES)
        offset = files.table(own.get(CONFIG)).get("offset", OFFSET)
        if offset != OFFSET:
            raise ValueError(f"{own[CONFIG].path}: offset is {offset!r}; heed reads vocabularies with {OFFSET}")
        super().__init__(own, _built(own))
        ids = {key: self.tokenizer.token_to_id(name) for key, name in NAMES.items()}
        self.marks = SpecialTokens(
            pad=ids["pad_token"],
            unknown=ids["unk_token"],
            first=ids["pad_token"],
            last=ids["eos_token"],
            mask=ids["mask_token"],
            gap=ids["mask_token_sent"],
        )

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.tokenizer.id_to_token(i) or "<unk>" for i in ids]


def _built(own: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocab, charsmap, name = _whole(own[WHOLE]) if WHOLE in own else _shifted(own[MODEL])
    pieces = [piece for piece, _ in vocab]
    for token in {*NAMES.values(), *RESERVED}.difference(pieces):
        raise ValueError(f"{name} has no {token}: it is not the vocabulary of a Pegasus")
    try:
        built = Tokenizer(models.Unigram(vocab, unk_id=pieces.index("<unk>")))
        lines = normalizers.Precompiled(charsmap) if charsmap else normalizers.Replace(Regex(r"\n"), " ")
    except Exception as error:  # tokenizers has no kinds of errors
        raise ValueError(f"{name} is damaged: {error}") from error
    built.normalizer = normalizers.Sequence([lines, normalizers.Replace(Regex(" {2,}"), " ")])
    built.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    built.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    added = [AddedToken(**token) for token in files.listed(own, NAMES.values()).values()]
    known = {token.content for token in added}
    built.add_tokens(
        [*added, *(AddedToken(name, special=True) for name in (*NAMES.values(), *RESERVED) if name not in known)]
    )
    last = built.token_to_id("</s>")
    built.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A $B </s>", special_tokens=[("</s>", last)]
    )
    return built


def _whole(file: File) -> tuple[Scored, bytes | None, str]:
    """The pieces of a tokenizer.json, and how it writes characters alike."""
    found = files.table(file)
    model, normalizer = found.get("model") or {}, found.get("normalizer") or {}
    vocab = model.get("vocab")
    if not isinstance(vocab, list) or "unk_id" not in model:
        raise ValueError(f"{file.path} is not a unigram model, the vocabulary of a Pegasus: heed cannot read it")
    steps = normalizer.get("normalizers", [normalizer])
    maps = [step["precompiled_charsmap"] for step in steps if step.get("type") == "Precompiled"]
    try:
        return (
            [(str(piece), float(score)) for piece, score in vocab],
            base64.b64decode(maps[0]) if maps else None,
            file.path,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file.path} is damaged: {error}") from error


def _shifted(file: File) -> tuple[Scored, bytes | None, str]:
    """The pieces of a SentencePiece model behind the marks, and how it writes characters alike."""
    processor = files.sentencepiece(file)
    if processor.unk_id() != 2:
        raise ValueError(
            f"{file.path} has <unk> at {processor.unk_id()}; the model of a Pegasus has it at 2, after <pad> and </s>"
        )
    own = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(2, processor.vocab_size())]
    marks = [(name, 0.0) for name in ("<pad>", "</s>", "<mask_1>", "<mask_2>")] + [(name, -100.0) for name in RESERVED]
    return [*marks, *own], files.charsmap(file.content) or None, file.path


def read(folder: Path) -> tuple[PegasusVocabulary, PegasusVocabulary]:
    """One vocabulary, twice; tokenizer.json is what counts where there are both it and spiece.model."""
    own = files.gather(folder, [WHOLE, MODEL, CONFIG])
    if WHOLE not in own and MODEL not in own:
        raise ValueError(f"{folder} has no {MODEL}: it cannot read text; a Pegasus comes with {MODEL} or with {WHOLE}")
    one = PegasusVocabulary(own)
    files.refuse_additions(folder, one.tokenizer.get_vocab())
    return one, one


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[PegasusVocabulary, PegasusVocabulary]:
    """A vocabulary of `size`, its marks included."""
    import sentencepiece

    least = len(NAMES) + len(RESERVED)
    if size <= least:
        raise ValueError(f"a Pegasus vocabulary of {size} could not be learned: the marks alone are {least}")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type="unigram",
            vocab_size=size - OFFSET,
            hard_vocab_limit=False,
            character_coverage=0.9999,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            max_sentence_length=100_000,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(f"a Pegasus vocabulary of {size} could not be learned: {error}") from error
    one = PegasusVocabulary({MODEL: File(MODEL, model.getvalue())})
    return one, one
