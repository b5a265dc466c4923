"""The vocabulary of BART (Lewis et al., 2020): byte-level BPE, as GPT-2's, one for both sides."""

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heed.vocabularies import files
from heed.vocabularies.files import CONFIG, WHOLE, File
from heed.vocabularies.tokenized import Tokenized
from heed.vocabularies.vocabulary import Pair, SpecialTokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ("mask",)
NAMES = {
    "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>",
    "cls_token": "<s>", "mask_token": "<mask>",
}  # fmt: skip
VOCAB, MERGES, SPECIAL = "vocab.json", "merges.txt", "special_tokens_map.json"
_PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that byte-level BPE writes as they are
_HIDDEN = [byte for byte in range(256) if byte not in _PRINTED]  # and those that it writes as characters from 256
BYTES = {chr(byte): byte for byte in _PRINTED} | {chr(256 + i): byte for i, byte in enumerate(_HIDDEN)}


class BartVocabulary(Tokenized):
    """Its ids are those of transformers' BartTokenizer: marks that are written in a text are marks.

    Whether <mask> takes the space before it along is said by tokenizer.json, tokenizer_config.json or special_tokens_map.json;
    where none of them does, it does not.
    """

    def __init__(self, own: Mapping[str, File]):
        files.refuse_other_names(own, NAMES)
        super().__init__(own, _built(own))
        ids = {key: self.tokenizer.token_to_id(name) for key, name in NAMES.items()}
        self.marks = SpecialTokens(
            pad=ids["pad_token"],
            unknown=ids["unk_token"],
            first=ids["eos_token"],
            last=ids["eos_token"],
            before=(ids["bos_token"],),
            mask=ids["mask_token"],
        )
        self._size = max(self.tokenizer.get_vocab().values()) + 1
        self._added = {i: token.content for i, token in self.tokenizer.get_added_tokens_decoder().items()}

    def __len__(self) -> int:
        return self._size

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """A piece that is no whole character is written in bytes, and so is what cannot be seen."""
        return [self._added.get(i) or _shown(self.tokenizer.id_to_token(i)) for i in ids]


def _shown(token: str | None) -> str:
    if token is None:
        return "<unk>"
    if not BYTES.keys() >= set(token):
        return token
    text = bytes(BYTES[char] for char in token).decode("utf-8", "surrogateescape")
    return "".join("▁" if char == " " else _in_bytes(char) for char in text)


def _in_bytes(char: str) -> str:
    """A character as it is, or where nothing would be seen its bytes as SentencePiece writes them."""
    if unicodedata.category(char) not in ("Cc", "Cs"):
        return char
    return "".join(f"<0x{byte:02X}>" for byte in char.encode("utf-8", "surrogateescape"))


def _built(own: Mapping[str, File]) -> "Tokenizer":
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    config = files.table(own.get(CONFIG))
    ids, merges, name = _whole(own[WHOLE]) if WHOLE in own else _parts(own[VOCAB], own[MERGES])
    try:
        built = Tokenizer(models.BPE(vocab=ids, merges=merges, continuing_subword_prefix="", end_of_word_suffix=""))
    except Exception as error:  # tokenizers has no kinds of errors
        raise ValueError(f"{name} is damaged: {error}") from error
    space = bool(config.get("add_prefix_space"))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    built.decoder = decoders.ByteLevel()
    added = [AddedToken(**token) for token in files.listed(own, NAMES.values()).values()]
    known = {token.content for token in added}
    added += [
        AddedToken(**{**token, "special": True}) for token in _named(own, config) if token["content"] not in known
    ]
    built.add_tokens(added)
    first, last = ((token, built.token_to_id(token)) for token in ("<s>", "</s>"))
    built.post_processor = processors.RobertaProcessing(last, first, add_prefix_space=space)
    return built


def _named(own: Mapping[str, File], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tokens with a name, and what a folder adds to them."""
    said = dict(config) if "added_tokens_decoder" in config else {**config, **files.table(own.get(SPECIAL))}
    named = [said.get(key) or name for key, name in NAMES.items()] + files.extra(said)
    return [files.token(one) for one in named]


def _marked(pieces: object, path: str) -> dict[str, int]:
    """A table of pieces and ids that has the marks; <mask> is added where it is not there."""
    ids = files.numbered(pieces, path)
    for token in ("<s>", "<pad>", "</s>", "<unk>"):
        if token not in ids:
            raise ValueError(f"{path} has no {token}: it is not the vocabulary of a BART")
    return ids


def _whole(file: File) -> tuple[dict[str, int], list[tuple[str, str]], str]:
    """The table and the merges of a tokenizer.json."""
    found = files.table(file)
    model, cuts = found.get("model") or {}, found.get("pre_tokenizer") or {}
    if (
        "merges" not in model
        or cuts.get("type") != "ByteLevel"
        or not cuts.get("use_regex", True)
        or found.get("normalizer")
    ):
        raise ValueError(f"{file.path} is not byte-level BPE, the vocabulary of a BART: heed cannot read it")
    merges = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in model["merges"]]
    return _marked(model.get("vocab"), file.path), merges, file.path


def _parts(vocab: File, merges: File) -> tuple[dict[str, int], list[tuple[str, str]], str]:
    """The table and the merges of a vocab.json and a merges.txt."""
    ids = _marked(files.table(vocab), vocab.path)
    try:
        lines = merges.content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{merges.path} is damaged: it is not text ({error})") from error
    found = []
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if line and not line.startswith("#version"):
            found.append(tuple(line.split(" ")))
            if len(found[-1]) != 2:
                raise ValueError(
                    f"{merges.path}, line {number}, is {line!r}; a merge is two pieces with a space between"
                )
    return ids, found, merges.path


def read(folder: Path) -> tuple[BartVocabulary, BartVocabulary]:
    """One vocabulary, twice; tokenizer.json is what counts where there are both it and vocab.json with merges.txt."""
    own = files.gather(folder, [WHOLE, VOCAB, MERGES, CONFIG, SPECIAL])
    missing = [name for name in (VOCAB, MERGES) if name not in own]
    if WHOLE not in own and missing:
        raise ValueError(
            f"{folder} has no {' and no '.join(missing)}: it cannot read text; a BART comes with vocab.json and merges.txt, "
            "or with tokenizer.json"
        )
    one = BartVocabulary(own)
    files.refuse_additions(folder, one.tokenizer.get_vocab())
    return one, one


def write(folder: Path, pair: Pair) -> None:
    files.write(folder, pair[0].files)


def learn(texts: Iterable[str], size: int) -> tuple[BartVocabulary, BartVocabulary]:
    """<s>, <pad>, </s>, <unk>, the 256 bytes, what is made of them, and <mask>, which takes the space before it along."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    least = len(marks) + len(BYTES) + 1
    if size < least:
        raise ValueError(f"a BART vocabulary of {size} could not be learned: the bytes and the marks alone are {least}")
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learned.train_from_iterator(
        iter(texts),
        trainers.BpeTrainer(
            vocab_size=size - 1, special_tokens=marks, initial_alphabet=sorted(BYTES), show_progress=False
        ),
    )
    model = json.loads(learned.to_str())["model"]
    ids = {**model["vocab"], "<mask>": len(model["vocab"])}
    merges = "".join(f"{left} {right}\n" for left, right in model["merges"])
    mask = {"__type": "AddedToken", "content": "<mask>", "lstrip": True, "rstrip": False, "single_word": False}
    contents = {
        VOCAB: json.dumps(ids, ensure_ascii=False),
        MERGES: f"#version: 0.2\n{merges}",
        CONFIG: json.dumps({"tokenizer_class": "BartTokenizer", "mask_token": {**mask, "normalized": False}}, indent=2),
    }
    one = BartVocabulary({name: File(name, content.encode()) for name, content in contents.items()})
    return one, one
