"""The files of a vocabulary, kept byte for byte, so that they can be written unchanged."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heed import config

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

CONFIG, TOKENIZER = "tokenizer_config.json", "tokenizer.json"
INPUTS = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}  # what tokenizers with segments give
MOST_IDS = 1 << 24  # of a vocabulary, which has a row of weights for each: a hundred times those of large ones
FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")


class File(NamedTuple):
    """The content of a file, and its path for error messages."""

    path: str
    content: bytes


def read_existing(folder: Path, names: Iterable[str]) -> dict[str, File]:
    """The files of a folder that exist, by name."""
    paths = {name: folder / name for name in names}
    return {name: File(str(path), path.read_bytes()) for name, path in paths.items() if path.is_file()}


def write(folder: Path, files: Mapping[str, File | None]) -> None:
    for name, file in files.items():
        if file is not None:
            (folder / name).write_bytes(file.content)


def parse_json(file: File | None) -> dict[str, Any]:
    """The object in a JSON file; empty if there is no file."""
    if file is None:
        return {}
    try:
        parsed = config.parse_json(file.content)
    except ValueError as error:
        raise ValueError(f"{file.path} is damaged: it is not JSON ({error})") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"{file.path} is not a table: it contains a {type(parsed).__name__} instead of an object")
    return parsed


def check_ids(pieces: object, path: str) -> dict[str, int]:
    """A table of pieces and their ids, checked."""
    if not isinstance(pieces, dict):
        raise ValueError(f"{path} is not a table of pieces and their ids")
    for piece, number in pieces.items():
        if type(number) is not int or not 0 <= number < MOST_IDS:
            raise ValueError(
                f"{path}: the id of {piece!r} is {number!r}; an id must be a number from 0 to {MOST_IDS - 1:,}"
            )
    if len(set(pieces.values())) < len(pieces):
        raise ValueError(f"{path}: two pieces have the same id")
    return pieces


def load_sentencepiece(file: File) -> "SentencePieceProcessor":
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(file.content)
    except (RuntimeError, UnicodeDecodeError) as error:  # the second: its own error quotes bytes of the file
        raise ValueError(f"{file.path} is damaged: it is not a SentencePiece model ({error})") from error
    all_pieces(processor, file.path)
    return processor


def all_pieces(processor: "SentencePieceProcessor", name: str) -> list[str]:
    """The pieces of a SentencePiece model by id; a damaged one, which SentencePiece would read, is refused."""
    try:
        return processor.id_to_piece(list(range(processor.vocab_size())))
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is damaged: it has pieces that are not UTF-8 ({error}); copy it again") from error


def charsmap(model: bytes) -> bytes:
    """The character normalization map of a SentencePiece model; empty if it does not normalize."""
    normalizer = b"".join(value for number, value in _fields(model) if number == 3)
    return b"".join(value for number, value in _fields(normalizer) if number == 2)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protocol buffer that are strings or messages."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position, value, shift = position + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while position < len(message):
        key = varint()
        wire_type = key & 7
        size = {1: 8, 5: 4}.get(wire_type, 0) if wire_type != 2 else varint()
        if wire_type == 0:
            varint()
        elif wire_type == 2:
            yield key >> 3, message[position : position + size]
        position += size


def token_text(token: object) -> str | None:
    """The text of a token, given as a string or as an object with flags."""
    return token.get("content") if isinstance(token, dict) else token if isinstance(token, str) else None


def token_fields(token: object) -> dict[str, Any]:
    """The text and flags of a token, as arguments of `tokenizers.AddedToken`."""
    fields = token if isinstance(token, dict) else {"content": token}
    return {key: fields[key] for key in ("content", *FLAGS) if key in fields}


def extra_special_tokens(settings: Mapping[str, Any]) -> list[object]:
    """The special tokens of a tokenizer's settings that have no role such as eos_token."""
    tokens = settings.get("extra_special_tokens") or settings.get("additional_special_tokens") or []
    return list(tokens.values() if isinstance(tokens, dict) else tokens)


def added_tokens(files: Mapping[str, File], names: Collection[str] = ()) -> dict[int, dict[str, Any]]:
    """The tokens that are never split, by id, from tokenizer_config.json or else tokenizer.json.

    Those with one of the `names` are always special.
    """
    path, added = CONFIG, parse_json(files.get(CONFIG)).get("added_tokens_decoder")
    if added is None:
        path, added = TOKENIZER, parse_json(files.get(TOKENIZER)).get("added_tokens") or []
    if isinstance(added, list):
        added = {token.get("id") if isinstance(token, dict) else None: token for token in added}
    tokens = {}
    for number, token in added.items():
        if not str(number).isdecimal() or not isinstance(token, dict) or not isinstance(token.get("content"), str):
            raise ValueError(f"{files[path].path} is damaged: its added token {number!r} is {token!r}")
        special = bool(token.get("special")) or token["content"] in names
        tokens[int(number)] = {**token_fields(token), "special": special}
    return dict(sorted(tokens.items()))


def has_segments(files: Mapping[str, File], default: bool) -> bool:
    """Whether a vocabulary has segment ids: as stated in tokenizer_config.json, or else `default`."""
    inputs = parse_json(files.get(CONFIG)).get("model_input_names")
    return "token_type_ids" in inputs if isinstance(inputs, list) else default


def refuse_other_names(files: Mapping[str, File], names: Mapping[str, str]) -> None:
    """Raise if a special token such as eos_token has another name than this kind of vocabulary uses."""
    config = parse_json(files.get(CONFIG))
    for key, name in names.items():
        if config.get(key) is not None and token_text(config[key]) != name:
            raise ValueError(f"{files[CONFIG].path}: {key} is {token_text(config[key])!r}; heed reads {name!r}")


def refuse_additions(folder: Path, known: Iterable[str]) -> None:
    """Raise if added_tokens.json of an older folder adds tokens unknown to the vocabulary."""
    names = set(parse_json(read_existing(folder, ["added_tokens.json"]).get("added_tokens.json"))) - set(known)
    if names:
        shown = ", ".join(sorted(names)[:5])
        raise ValueError(
            f"{folder}/added_tokens.json adds {shown} to the vocabulary; heed does not support added tokens"
        )


def one_line(text: str) -> str:
    """The text with each line break replaced by a space."""
    return " ".join(text.splitlines())
