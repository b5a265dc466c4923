"""The vocabulary of GPT (Radford et al., 2018): lowercase words without accents, BPE with </w>, and a line end
token.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files, suffix_bpe
from heed.vocabularies.byte_bpe import MERGES, VOCAB
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.suffix_bpe import LINE_END, LINE_END_SHOWN, UNKNOWN, WORD_END, Tables
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class GPTVocabulary(FastTokenizer):
    """The ids are those of transformers' OpenAIGPTTokenizer. Decoded text is lowercase, with spaces around
    punctuation.
    """

    kind, tokenizer_class = "gpt", "OpenAIGPTTokenizer"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, {"unk_token": UNKNOWN})
        super().__init__(contents, _build_tokenizer(contents))
        last = self.tokenizer.token_to_id(_line_end(contents))
        unknown = self.tokenizer.token_to_id(UNKNOWN)
        self.special = SpecialTokens(pad=last, unknown=unknown, first=last, last=last)
        self._size = max(self.tokenizer.get_vocab().values()) + 1

    def __len__(self) -> int:
        return self._size

    def pieces(self, ids: Sequence[int]) -> list[str]:
        found, begins = [], True
        for i in ids:
            token = self.tokenizer.id_to_token(i) or UNKNOWN
            shown = LINE_END_SHOWN if token == LINE_END else token.removesuffix(WORD_END)
            found.append("▁" * begins + shown if shown != UNKNOWN else shown)
            begins = token.endswith(WORD_END)
        return found


def _line_end(contents: Mapping[str, File]) -> str:
    """The token at the end of each text: eos_token if a folder names one."""
    return files.token_text(files.parse_json(contents.get(CONFIG)).get("eos_token")) or LINE_END


def _build_tokenizer(contents: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken

    ids, merges, path = suffix_bpe.read_tables(contents, "GPT")
    for token in (UNKNOWN, _line_end(contents)):
        if token not in ids and token not in {own["content"] for own in files.added_tokens(contents).values()}:
            raise ValueError(f"{path} has no {token!r}: it is not the vocabulary of a GPT")
    try:
        tokenizer = _tokenizer(Tables(ids, merges, path))
    except Exception as error:  # tokenizers raises no more specific error
        raise ValueError(f"{path} is damaged: {error}") from error
    added = files.added_tokens(contents, (UNKNOWN,)).values()
    tokenizer.add_tokens([AddedToken(**token) for token in added])
    tokenizer.add_special_tokens([AddedToken(UNKNOWN, special=True, normalized=False)])
    return tokenizer


def _tokenizer(tables: Tables | None = None) -> "Tokenizer":
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    options = {"unk_token": UNKNOWN, "end_of_word_suffix": WORD_END, "continuing_subword_prefix": "", "fuse_unk": False}
    known = {} if tables is None else {"vocab": tables.ids, "merges": tables.merges}
    tokenizer = Tokenizer(models.BPE(**known, **options))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix=WORD_END)
    return tokenizer


def read(folder: Path) -> tuple[GPTVocabulary, GPTVocabulary]:
    """One vocabulary, twice; tokenizer.json has precedence over vocab.json with merges.txt."""
    contents = files.read_existing(folder, [TOKENIZER, VOCAB, MERGES, CONFIG])
    suffix_bpe.missing_files(contents, folder, "GPT")
    vocabulary = GPTVocabulary(contents)
    files.refuse_additions(folder, vocabulary.tokenizer.get_vocab())
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Sequence[str], size: int) -> tuple[GPTVocabulary, GPTVocabulary]:
    ids, merges, _ = suffix_bpe.learn(texts, size, _tokenizer(), "GPT")
    contents = {
        VOCAB: json.dumps(ids, ensure_ascii=False),
        MERGES: suffix_bpe.write_merges(merges),
        CONFIG: json.dumps({"tokenizer_class": "OpenAIGPTTokenizer", "unk_token": UNKNOWN}, indent=2),
    }
    vocabulary = GPTVocabulary({name: File(name, content.encode()) for name, content in contents.items()})
    return vocabulary, vocabulary
