"""The vocabulary of GPT-2 (Radford et al., 2019): byte-level BPE, and <|endoftext|> at the end of each text."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heed.vocabularies import files
from heed.vocabularies.byte_bpe import BYTES, MERGES, VOCAB, ByteBPE
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
    try:
        if TOKENIZER in contents:
            tokenizer = Tokenizer.from_str(file.content.decode("utf-8"))
        else:
            lines = contents[MERGES].content.decode("utf-8").splitlines()
            merges = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
            tokenizer = Tokenizer(models.BPE(vocab=files.parse_json(file), merges=merges))
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = decoders.ByteLevel()
    except Exception as error:  # tokenizers raises no more specific error
        raise ValueError(f"{file.path} is damaged: {error}") from error
    if tokenizer.token_to_id(END) is None or type(tokenizer.pre_tokenizer).__name__ != "ByteLevel":
        raise ValueError(f"{file.path} is not byte-level BPE with {END}, as GPT-2 uses: heed cannot read it")
    tokenizer.add_special_tokens([AddedToken(END, special=True, normalized=True)])
    return tokenizer


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
