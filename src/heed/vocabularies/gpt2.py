"""The vocabulary of GPT-2 (Radford et al., 2019): byte-level BPE, and <|endoftext|> at the end of each text."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.byte_bpe import BYTES, MERGES, VOCAB, ByteBPE, check_merges, merges_of, read_merges
from heed.vocabularies.charsmap import check_normalizer
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END = "<|endoftext|>"
NAMES = dict.fromkeys(("bos_token", "eos_token", "unk_token"), END)


class GPT2Vocabulary(ByteBPE):
    """The ids are those of transformers' GPT2Tokenizer. Every byte has a token, so no text is unknown."""

    kind, tokenizer_class = "gpt2", "GPT2Tokenizer"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, NAMES)
        FastTokenizer.__init__(self, contents, _build_tokenizer(contents))
        end = self.tokenizer.token_to_id(END)
        self.special = SpecialTokens(pad=end, unknown=-1, first=end, last=end)
        self._size = max(self.tokenizer.get_vocab().values()) + 1
        self._added = {i: token.content for i, token in self.tokenizer.get_added_tokens_decoder().items()}


def _build_tokenizer(contents: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    file = contents.get(TOKENIZER) or contents[VOCAB]
    ids, merges = _from_json(file) if TOKENIZER in contents else _from_parts(contents)
    added = files.added_tokens(contents)
    _check_bytes(ids, added, file.path)
    try:
        if TOKENIZER in contents:
            tokenizer = Tokenizer.from_str(file.content.decode("utf-8"))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            tokenizer.model.dropout = None
        else:
            tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges))
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = decoders.ByteLevel()
    except Exception as error:  # tokenizers raises no more specific error
        raise ValueError(f"{file.path} is damaged: {error}") from error
    if merges is not None:
        path = (contents.get(TOKENIZER) or contents[MERGES]).path
        check_merges(ids, merges, {END, *(token["content"] for token in added.values())}, path)
    if tokenizer.token_to_id(END) is None or type(tokenizer.pre_tokenizer).__name__ != "ByteLevel":
        raise _foreign(file.path)
    tokenizer.add_special_tokens([AddedToken(END, special=True, normalized=True)])
    return tokenizer


def _foreign(path: str) -> ValueError:
    return ValueError(f"{path} is not byte-level BPE with {END}, as GPT-2 uses: heed cannot read it")


def _from_json(file: File) -> tuple[dict[str, int], list[tuple[str, str]] | None]:
    """The table and the merges of a tokenizer.json; None if its pieces need none. What the library would read and
    then panic over is refused.
    """
    settings = files.parse_json(file)
    model = settings.get("model")
    foreign = ("continuing_subword_prefix", "end_of_word_suffix")
    if not isinstance(model, dict) or "merges" not in model or any(model.get(name) for name in foreign):
        raise _foreign(file.path)
    check_normalizer(settings.get("normalizer"), file.path)
    ids, merges = files.check_ids(model.get("vocab"), file.path), merges_of(model, file.path)
    return ids, None if model.get("ignore_merges") else merges


def _from_parts(contents: Mapping[str, File]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    vocab = contents[VOCAB]
    return files.check_ids(files.parse_json(vocab), vocab.path), read_merges(contents[MERGES])


def _check_bytes(ids: Mapping[str, int], added: Mapping[int, object], path: str) -> None:
    """Refuse a table that lost a byte, which would be left out of every text: its id is missing too. A vocabulary
    that was learned without some bytes has no such gap.
    """
    missing = [byte for char, byte in BYTES.items() if char not in ids]
    known = {*ids.values(), *added}
    if missing and len(known) <= max(known, default=-1):
        raise ValueError(f"{path} is damaged: it has no piece for byte 0x{missing[0]:02X}; copy it again")


def read(folder: Path) -> tuple[GPT2Vocabulary, GPT2Vocabulary]:
    """One vocabulary, twice; tokenizer.json has precedence over vocab.json with merges.txt."""
    contents = files.read_existing(folder, [TOKENIZER, VOCAB, MERGES, CONFIG])
    if TOKENIZER not in contents and not {VOCAB, MERGES} <= contents.keys():
        raise ValueError(
            f"{folder} has no {TOKENIZER}, and no {VOCAB} with {MERGES}: it cannot read text; a GPT-2 comes with one or the other"
        )
    vocabulary = GPT2Vocabulary(contents)
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[GPT2Vocabulary, GPT2Vocabulary]:
    """The 256 bytes, their merges, and <|endoftext|>."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    if size < len(BYTES) + 1:
        raise ValueError(
            f"a GPT-2 vocabulary of {size} could not be learned: the bytes and {END} alone are {len(BYTES) + 1}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END], initial_alphabet=sorted(BYTES), show_progress=False
    )
    tokenizer.train_from_iterator(iter(texts), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    contents = {
        VOCAB: json.dumps(model["vocab"], ensure_ascii=False),
        MERGES: "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in model["merges"]),
        CONFIG: json.dumps({"tokenizer_class": "GPT2Tokenizer", **NAMES}, indent=2),
    }
    vocabulary = GPT2Vocabulary({name: File(name, content.encode()) for name, content in contents.items()})
    return vocabulary, vocabulary
