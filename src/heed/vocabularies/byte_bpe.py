"""Byte-level BPE as in GPT-2, with the special tokens of BART (Lewis et al., 2020); one for both sides."""

import json
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heed.vocabularies import files
from heed.vocabularies.fast_tokenizer import FastTokenizer
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("mask",)
NAMES = {
    "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>",
    "cls_token": "<s>", "mask_token": "<mask>",
}  # fmt: skip
MOST_CHARACTERS = 256  # of a piece whose merge is looked for; those of GPT-2 have up to 128
VOCAB, MERGES, SPECIAL = "vocab.json", "merges.txt", "special_tokens_map.json"
_PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that byte-level BPE writes as they are
_UNPRINTABLE = [byte for byte in range(256) if byte not in _PRINTABLE]  # and those it writes as characters from 256
BYTES = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + i): byte for i, byte in enumerate(_UNPRINTABLE)}


class ByteBPE(FastTokenizer):
    """The ids are those of transformers' BartTokenizer: special tokens written in a text are encoded as such.

    <mask> absorbs the space before it only where tokenizer.json, tokenizer_config.json or special_tokens_map.json says so.
    """

    kind, tokenizer_class = "bart", "BartTokenizer"

    def __init__(self, contents: Mapping[str, File]):
        files.refuse_other_names(contents, NAMES)
        super().__init__(contents, _build_tokenizer(contents))
        begin, end, unknown, _, pad, _, mask = map(self.tokenizer.token_to_id, NAMES.values())
        self.special = SpecialTokens(
            pad, unknown, first=end, last=end, before=(begin,), mask=mask, delimiter=(end, end)
        )
        self._size = max(self.tokenizer.get_vocab().values()) + 1
        self._added = {i: token.content for i, token in self.tokenizer.get_added_tokens_decoder().items()}

    def __len__(self) -> int:
        return self._size

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Incomplete characters and control characters are written as bytes."""
        return [self._added.get(i) or _readable(self.tokenizer.id_to_token(i)) for i in ids]


@lru_cache(1 << 17)  # more tokens than those of most vocabularies
def _readable(token: str | None) -> str:
    if token is None:
        return "<unk>"
    if not BYTES.keys() >= set(token):
        return token
    text = bytes(BYTES[char] for char in token).decode("utf-8", "surrogateescape")
    return "".join("▁" if char == " " else _visible(char) for char in text)


def _visible(char: str) -> str:
    """A character or, if it is invisible, its bytes as SentencePiece writes them."""
    if unicodedata.category(char) not in ("Cc", "Cs"):
        return char
    return "".join(f"<0x{byte:02X}>" for byte in char.encode("utf-8", "surrogateescape"))


def _build_tokenizer(contents: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    config = files.parse_json(contents.get(CONFIG))
    ids, merges, name = _from_json(contents[TOKENIZER]) if TOKENIZER in contents else _from_parts(contents)
    added = files.added_tokens(contents, NAMES.values()).values()
    try:
        tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges, continuing_subword_prefix="", end_of_word_suffix=""))
    except Exception as error:  # tokenizers raises no more specific error
        raise ValueError(f"{name} is damaged: {error}") from error
    check_merges(ids, merges, {*NAMES.values(), *(token["content"] for token in added)}, name)
    prefix_space = bool(config.get("add_prefix_space"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    added = [AddedToken(**token) for token in added]
    known = {token.content for token in added}
    special = [token for token in _special(contents, config) if token["content"] not in known]
    tokenizer.add_tokens([*added, *(AddedToken(**{**token, "special": True}) for token in special)])
    first, last = ((token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>"))
    tokenizer.post_processor = processors.RobertaProcessing(last, first, add_prefix_space=prefix_space)
    return tokenizer


def _special(contents: Mapping[str, File], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The special tokens, including those that a folder adds."""
    old = {} if "added_tokens_decoder" in config else files.parse_json(contents.get(SPECIAL))
    settings = {**config, **old}
    tokens = [settings.get(key) or name for key, name in NAMES.items()] + files.extra_special_tokens(settings)
    return [files.token_fields(token) for token in tokens]


def _checked(pieces: object, path: str) -> dict[str, int]:
    """A table of pieces and ids with the special tokens; <mask> may be missing, and is added later."""
    ids = files.check_ids(pieces, path)
    for token in ("<s>", "<pad>", "</s>", "<unk>"):
        if token not in ids:
            raise ValueError(f"{path} has no {token}: it is not a BART or RoBERTa vocabulary")
    return ids


def _from_json(file: File) -> tuple[dict[str, int], list[tuple[str, str]], str]:
    """The table and the merges of a tokenizer.json."""
    settings = files.parse_json(file)
    model, pre_tokenizer = settings.get("model") or {}, settings.get("pre_tokenizer") or {}
    byte_level = pre_tokenizer.get("type") == "ByteLevel" and pre_tokenizer.get("use_regex", True)
    if "merges" not in model or not byte_level or settings.get("normalizer"):
        raise ValueError(f"{file.path} is not byte-level BPE, as BART and RoBERTa use: heed cannot read it")
    return _checked(model.get("vocab"), file.path), merges_of(model, file.path), file.path


def merges_of(model: Mapping[str, Any], path: str) -> list[tuple[str, str]]:
    """The merges of the model of a tokenizer.json, which are strings or lists."""
    merges = model["merges"] if isinstance(model["merges"], list) else [model["merges"]]
    found = [tuple(own.split(" ")) if isinstance(own, str) else own for own in merges]
    for own in found:
        if not isinstance(own, tuple | list) or len(own) != 2 or not all(isinstance(part, str) for part in own):
            raise ValueError(f"{path} is damaged: its merge {own!r} is not two pieces")
    return [tuple(own) for own in found]


def _from_parts(contents: Mapping[str, File]) -> tuple[dict[str, int], list[tuple[str, str]], str]:
    """The table and the merges of a vocab.json and a merges.txt."""
    vocab, merges = contents[VOCAB], contents[MERGES]
    return _checked(files.parse_json(vocab), vocab.path), read_merges(merges), merges.path


def read_merges(file: File) -> list[tuple[str, str]]:
    """The merges of a merges.txt."""
    try:
        lines = file.content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.path} is damaged: it is not text ({error})") from error
    pairs = []
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if line and not line.startswith("#version"):
            pairs.append(tuple(line.split(" ")))
            if len(pairs[-1]) != 2:
                raise ValueError(
                    f"{file.path}, line {number}, is {line!r}; a merge must be two pieces separated by a space"
                )
    return pairs


def check_merges(ids: Mapping[str, int], merges: Iterable[Sequence[str]], added: Collection[str], path: str) -> None:
    """Refuse a table with a piece whose merge is missing: texts would be split into other pieces. Pieces that no two
    others make are allowed: they were added by hand.
    """
    made = {"".join(merge) for merge in merges}
    for piece in ids:
        if piece in made or piece in added or len(piece) > MOST_CHARACTERS:
            continue
        if any(piece[:end] in ids and piece[end:] in ids for end in range(1, len(piece))):
            raise ValueError(
                f"{path} is damaged: the vocabulary has {piece!r}, but no merge makes it; copy all files of the "
                "tokenizer again"
            )


def read(folder: Path) -> tuple[ByteBPE, ByteBPE]:
    """One vocabulary, twice; tokenizer.json has precedence over vocab.json with merges.txt."""
    contents = files.read_existing(folder, [TOKENIZER, VOCAB, MERGES, CONFIG, SPECIAL])
    missing = [name for name in (VOCAB, MERGES) if name not in contents]
    if TOKENIZER not in contents and missing:
        raise ValueError(
            f"{folder} has no {' and no '.join(missing)}: it cannot read text; a BART or a RoBERTa comes with vocab.json and "
            "merges.txt, or with tokenizer.json"
        )
    vocabulary = ByteBPE(contents)
    files.refuse_additions(folder, vocabulary.tokenizer.get_vocab())
    return vocabulary, vocabulary


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[ByteBPE, ByteBPE]:
    """<s>, <pad>, </s>, <unk>, the 256 bytes, their merges, and <mask>, which absorbs the space before it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    minimum = len(special) + len(BYTES) + 1
    if size < minimum:
        raise ValueError(
            f"a byte-level BPE vocabulary of {size} could not be learned: the bytes and special tokens alone are "
            f"{minimum}"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size - 1, special_tokens=special, initial_alphabet=sorted(BYTES), show_progress=False
    )
    tokenizer.train_from_iterator(iter(texts), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    ids = {**model["vocab"], "<mask>": len(model["vocab"])}
    merges = "".join(f"{left} {right}\n" for left, right in model["merges"])
    mask = {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "rstrip": False, "single_word": False}
    contents = {
        VOCAB: json.dumps(ids, ensure_ascii=False),
        MERGES: f"#version: 0.2\n{merges}",
        CONFIG: json.dumps({"tokenizer_class": "BartTokenizer", "mask_token": {**mask, "normalized": False}}, indent=2),
    }
    vocabulary = ByteBPE({name: File(name, content.encode()) for name, content in contents.items()})
    return vocabulary, vocabulary
