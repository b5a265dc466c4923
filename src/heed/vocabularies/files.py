"""The files of a vocabulary: kept as they were, so that what was read is written again to the byte."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

CONFIG, WHOLE = "tokenizer_config.json", "tokenizer.json"
FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")


class File(NamedTuple):
    """What a file holds, and its path, which errors name."""

    path: str
    content: bytes


def gather(folder: Path, names: Iterable[str]) -> dict[str, File]:
    """Those of the files that are there."""
    paths = {name: folder / name for name in names}
    return {name: File(str(path), path.read_bytes()) for name, path in paths.items() if path.is_file()}


def write(folder: Path, files: Mapping[str, File | None]) -> None:
    for name, file in files.items():
        if file is not None:
            (folder / name).write_bytes(file.content)


def table(file: File | None) -> dict[str, Any]:
    """What a JSON file says; nothing where there is no file."""
    if file is None:
        return {}
    try:
        found = json.loads(file.content)
    except ValueError as error:
        raise ValueError(f"{file.path} is damaged: it is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise ValueError(
            f"{file.path} is not a table: it holds a {type(found).__name__}, and names with values are needed"
        )
    return found


def numbered(pieces: object, path: str) -> dict[str, int]:
    """A table of pieces and their ids."""
    if not isinstance(pieces, dict):
        raise ValueError(f"{path} is not a table of pieces and their ids")
    for piece, number in pieces.items():
        if type(number) is not int or number < 0:
            raise ValueError(f"{path}: the id of {piece!r} is {number!r}; an id is a number from 0")
    if len(set(pieces.values())) < len(pieces):
        raise ValueError(f"{path}: two pieces have the same id")
    return pieces


def sentencepiece(file: File) -> "SentencePieceProcessor":
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(file.content)
    except RuntimeError as error:
        raise ValueError(f"{file.path} is damaged: it is not a SentencePiece model ({error})") from error
    return processor


def charsmap(model: bytes) -> bytes:
    """How a SentencePiece model writes characters alike; empty where it takes them as they are."""
    normalizer = b"".join(value for number, value in _fields(model) if number == 3)
    return b"".join(value for number, value in _fields(normalizer) if number == 2)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protocol buffer that are strings or messages themselves."""
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        key = number()
        kind = key & 7
        size = {1: 8, 5: 4}.get(kind, 0) if kind != 2 else number()
        if kind == 0:
            number()
        elif kind == 2:
            yield key >> 3, message[place : place + size]
        place += size


def content(token: object) -> str | None:
    """The text of a token, which files write as text or as a table with more about it."""
    return token.get("content") if isinstance(token, dict) else token if isinstance(token, str) else None


def token(said: object) -> dict[str, Any]:
    """A token with the flags that `tokenizers` knows."""
    table = said if isinstance(said, dict) else {"content": said}
    return {key: table[key] for key in ("content", *FLAGS) if key in table}


def extra(said: Mapping[str, Any]) -> list[object]:
    """The special tokens without a part of their own that settings name."""
    found = said.get("extra_special_tokens") or said.get("additional_special_tokens") or []
    return list(found.values() if isinstance(found, dict) else found)


def listed(files: Mapping[str, File], names: Collection[str] = ()) -> dict[int, dict[str, Any]]:
    """The tokens that are cut out of text whole, by id, as tokenizer_config.json or else tokenizer.json has them.

    Those with one of the `names` are special, whatever the file says.
    """
    path, found = CONFIG, table(files.get(CONFIG)).get("added_tokens_decoder")
    if found is None:
        path, found = WHOLE, table(files.get(WHOLE)).get("added_tokens") or []
    if isinstance(found, list):
        found = {one.get("id") if isinstance(one, dict) else None: one for one in found}
    tokens = {}
    for number, one in found.items():
        if not str(number).isdecimal() or not isinstance(one, dict) or not isinstance(one.get("content"), str):
            raise ValueError(f"{files[path].path} is damaged: its added token {number!r} is {one!r}")
        tokens[int(number)] = {**token(one), "special": bool(one.get("special")) or one["content"] in names}
    return dict(sorted(tokens.items()))


def refuse_other_names(files: Mapping[str, File], names: Mapping[str, str]) -> None:
    """Tokens such as eos_token must be called what this family calls them."""
    config = table(files.get(CONFIG))
    for key, name in names.items():
        if config.get(key) is not None and content(config[key]) != name:
            raise ValueError(f"{files[CONFIG].path}: {key} is {content(config[key])!r}; heed reads {name!r}")


def refuse_additions(folder: Path, known: Iterable[str]) -> None:
    """What older folders add to a vocabulary in added_tokens.json must be in it."""
    names = set(table(gather(folder, ["added_tokens.json"]).get("added_tokens.json"))) - set(known)
    if names:
        shown = ", ".join(sorted(names)[:5])
        raise ValueError(f"{folder}/added_tokens.json adds {shown} to the vocabulary; heed cannot read such additions")


def one_line(text: str) -> str:
    """Each break of a line becomes a space; nothing else changes."""
    return " ".join(text.splitlines())
