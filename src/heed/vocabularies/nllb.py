"""The vocabulary of NLLB-200 (NLLB team, 2022): SentencePiece's BPE as a tokenizer.json, and 202 languages; one for both sides."""

import base64
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heed.vocabularies import files
from heed.vocabularies.charsmap import precompiled
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.multilingual import Multilingual
from heed.vocabularies.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NAMES = {
    "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>",
    "cls_token": "<s>", "mask_token": "<mask>",
}  # fmt: skip
CODE = re.compile("[a-z]{3}_[A-Z][a-z]{3}")  # eng_Latn: a language in a script


class NllbVocabulary(Multilingual, FastTokenizer):
    """The ids are those of transformers' NllbTokenizer from version 5 on, which uses `tokenizers`, not SentencePiece."""

    kind = "m2m100"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, NAMES)
        FastTokenizer.__init__(self, contents, _build_tokenizer(contents))
        self.legacy = bool(files.parse_json(contents.get(CONFIG)).get("legacy_behaviour"))
        added = self.tokenizer.get_added_tokens_decoder()
        self.languages = {added[i].content: i for i in sorted(added) if CODE.fullmatch(added[i].content)}
        if not self.languages:
            raise ValueError(
                f"{contents[TOKENIZER].path} adds no languages such as eng_Latn: it is not an NLLB tokenizer"
            )
        self.begin, end, unknown, _, pad, _, mask = map(self.tokenizer.token_to_id, NAMES.values())
        self.neutral = SpecialTokens(pad, unknown, first=end, last=end, mask=mask)
        self.choose(None, source=False)

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self.with_end(super().encode(texts))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.tokenizer.id_to_token(i) or "<unk>" for i in ids]

    def key(self) -> str:
        return super().key() + ("-language-last" if self.language_last else "")


def _build_tokenizer(contents: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    file, config = contents[TOKENIZER], files.parse_json(contents.get(CONFIG))
    ids, merges, charsmap = _from_json(file)
    try:
        model = models.BPE(vocab=ids, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=False)
        tokenizer = Tokenizer(model)
    except Exception as error:  # tokenizers raises no more specific error
        raise ValueError(f"{file.path} is damaged: {error}") from error
    if charsmap:
        steps = [precompiled(charsmap, file.path), normalizers.Replace(Regex(r" {2,}"), " ")]
        tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    added = files.added_tokens(contents, NAMES.values())
    tokens = [AddedToken(**token) for token in added.values()]
    known = {token.content for token in tokens}
    more = [*NAMES.values(), *map(files.token_text, files.extra_special_tokens(config))]
    more = [
        AddedToken(name, special=True, lstrip=name == "<mask>") for name in dict.fromkeys(more) if name not in known
    ]
    tokenizer.add_tokens([*tokens, *more])
    for number, token in added.items():
        if tokenizer.token_to_id(token["content"]) != number:
            raise ValueError(f"{file.path} gives {token['content']} the id {number}, which is not the next one")
    end = [("</s>", tokenizer.token_to_id("</s>"))]
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", "$A $B </s>", special_tokens=end)
    return tokenizer


def _from_json(file: File) -> tuple[dict[str, int], list[tuple[str, str]], bytes | None]:
    """The table, the merges and the character normalization."""
    settings = files.parse_json(file)
    model, normalizer = settings.get("model") or {}, settings.get("normalizer") or {}
    if "merges" not in model:
        raise ValueError(f"{file.path} is not byte-pair encoding, as NLLB uses: heed cannot read it")
    ids = files.check_ids(model.get("vocab"), file.path)
    for token in ("<s>", "<pad>", "</s>", "<unk>"):
        if token not in ids:
            raise ValueError(f"{file.path} has no {token}: it is not the vocabulary of an NLLB")
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]]
    return ids, merges, _charsmap(normalizer)


def _charsmap(normalizer: Mapping[str, Any]) -> bytes | None:
    steps = normalizer.get("normalizers", [normalizer])
    maps = [step["precompiled_charsmap"] for step in steps if step.get("type") == "Precompiled"]
    return base64.b64decode(maps[0]) if maps else None


def read(folder: Path) -> tuple[NllbVocabulary, NllbVocabulary]:
    """One vocabulary, twice."""
    contents = files.read_existing(folder, [TOKENIZER, CONFIG])
    if TOKENIZER not in contents:
        raise ValueError(
            f"{folder} has no {TOKENIZER} and no vocab.json: it cannot read text; an NLLB comes with {TOKENIZER}, an M2M-100 with "
            "vocab.json and sentencepiece.bpe.model"
        )
    vocabulary = NllbVocabulary(contents)
    files.refuse_additions(folder, vocabulary.tokenizer.get_vocab())
    return vocabulary, vocabulary
