"""The vocabulary of mBART-50 (Tang et al., 2020): a SentencePiece unigram model and 52 languages; one for both sides."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.charsmap import precompiled
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.multilingual import Multilingual
from heed.vocabularies.pegasus import ScoredPieces, from_json
from heed.vocabularies.sentencepiece import train
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("mask",)
NAMES = {
    "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>",
    "cls_token": "<s>", "mask_token": "<mask>",
}  # fmt: skip
MODEL = "sentencepiece.bpe.model"
CODES = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO "
    "ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF "
    "pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
)
LANGUAGES = tuple(CODES.split())


class MBart50Vocabulary(Multilingual, FastTokenizer):
    """The ids are those of transformers' MBart50Tokenizer from version 5 on, which uses `tokenizers`, not SentencePiece."""

    kind = "mbart50"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, NAMES)
        FastTokenizer.__init__(self, contents, _build_tokenizer(contents))
        self.begin, end, unknown, _, pad, _, mask = map(self.tokenizer.token_to_id, NAMES.values())
        self.neutral = SpecialTokens(pad, unknown, first=end, last=end, mask=mask)
        self.languages = {code: self.tokenizer.token_to_id(code) for code in LANGUAGES}
        self.choose(None, source=False)

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.tokenizer.id_to_token(i) or "<unk>" for i in ids]


def _build_tokenizer(contents: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocab, charsmap, name = from_json(contents[TOKENIZER]) if TOKENIZER in contents else _from_spm(contents[MODEL])
    pieces = [piece for piece, _ in vocab]
    for token in [*NAMES.values(), *LANGUAGES]:
        if token not in pieces:
            raise ValueError(f"{name} has no {token}: it is not the vocabulary of an mBART-50")
    try:
        tokenizer = Tokenizer(models.Unigram(vocab, unk_id=pieces.index("<unk>"), byte_fallback=False))
    except Exception as error:  # tokenizers raises no more specific error
        raise ValueError(f"{name} is damaged: {error}") from error
    steps = [precompiled(charsmap, name)] if charsmap else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(r" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    added = [AddedToken(**token) for token in files.added_tokens(contents, NAMES.values()).values()]
    known = {token.content for token in added}
    missing = [
        AddedToken(name, special=True) for name in (*NAMES.values(), *LANGUAGES) if name not in {*known, "<mask>"}
    ]
    mask = [AddedToken("<mask>", special=True, lstrip=True)] if "<mask>" not in known else []
    tokenizer.add_tokens([*added, *missing, *mask])
    marks = [(token, tokenizer.token_to_id(token)) for token in ("en_XX", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing("en_XX $A </s>", "en_XX $A $B </s>", special_tokens=marks)
    return tokenizer


def _from_spm(file: File) -> tuple[ScoredPieces, bytes | None, str]:
    """The order of fairseq: its special tokens, the pieces of the SentencePiece model from the fourth on, the languages, <mask>."""
    processor = files.load_sentencepiece(file)
    if [processor.unk_id(), processor.bos_id(), processor.eos_id()] != [0, 1, 2]:
        raise ValueError(f"{file.path} does not begin with <unk>, <s> and </s>, as the model of an mBART-50 does")
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(3, processor.vocab_size())]
    special = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]
    added = [(name, 0.0) for name in (*LANGUAGES, "<mask>")]
    return [*special, *pieces, *added], files.charsmap(file.content) or None, file.path


def read(folder: Path) -> tuple[MBart50Vocabulary, MBart50Vocabulary]:
    """One vocabulary, twice; tokenizer.json has precedence over sentencepiece.bpe.model."""
    contents = files.read_existing(folder, [TOKENIZER, MODEL, CONFIG])
    if TOKENIZER not in contents and MODEL not in contents:
        raise ValueError(
            f"{folder} has no {MODEL}: it cannot read text; an mBART-50 comes with {MODEL} or with {TOKENIZER}"
        )
    named = files.parse_json(contents.get(CONFIG)).get("tokenizer_class")
    if named in ("MBartTokenizer", "MBartTokenizerFast"):
        raise ValueError(
            f"{folder} has the vocabulary of the original mBART, where texts end with their language code; heed "
            "supports mBART-50"
        )
    vocabulary = MBart50Vocabulary(contents)
    files.refuse_additions(folder, vocabulary.tokenizer.get_vocab())
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[MBart50Vocabulary, MBart50Vocabulary]:
    """A vocabulary of `size`, including special tokens and languages."""
    minimum = len({*NAMES.values()}) + len(LANGUAGES)
    if size <= minimum:
        raise ValueError(
            f"an mBART-50 vocabulary of {size} could not be learned: special tokens and languages alone are {minimum}"
        )
    options = {"model_type": "unigram", "vocab_size": size - len(LANGUAGES) - 2, "character_coverage": 0.9999}
    model = train(texts, options, f"an mBART-50 vocabulary of {size}")
    vocabulary = MBart50Vocabulary({MODEL: File(MODEL, model)})
    return vocabulary, vocabulary
