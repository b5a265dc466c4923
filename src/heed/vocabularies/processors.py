"""The processors of a model folder: they convert a user's input to ids and back, and are listed in config.json."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heed.files import sha256, write_bytes
from heed.vocabularies import folder as vocabularies
from heed.vocabularies.histories import Histories
from heed.vocabularies.images import Images
from heed.vocabularies.items import Items
from heed.vocabularies.labels import Labels, Numbers
from heed.vocabularies.text_parts import InputTokens, TextParts, plain
from heed.vocabularies.transcripts import TranscriptCharacters
from heed.vocabularies.vocabulary import Pair, Vocabulary

FILES = {"items": Items, "histories": Histories}  # kinds with a file of their own
INLINE = ("labels", "numbers", "images", "sound", "transcript")  # kinds that config.json holds whole
NO_TEXT = (Labels, Numbers, Items, Histories, Images, TranscriptCharacters)


def is_sound(own: Any) -> bool:
    """Whether a processor computes features of sound. Its module imports torch: there are none before it is imported."""
    module = sys.modules.get("heed.vocabularies.sound")
    return module is not None and isinstance(own, module.SoundFeatures)


def _is_text(own: Any) -> bool:
    return not isinstance(own, NO_TEXT) and not is_sound(own)


def write(folder: Path, processors: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Write the files of processors into a folder; what its config.json says of them."""
    texts = [plain(own) for own in processors.values() if _is_text(own)]
    names, hashes = _write_files(folder, (texts[0], texts[-1])) if texts else ({}, {})
    found: dict[str, dict[str, Any]] = {}
    for name, own in processors.items():
        if isinstance(own, Labels):
            found[name] = {"kind": "labels", "names": own.names} | ({"numbered": own.numbered} if own.numbered else {})
        elif isinstance(own, Numbers):
            found[name] = {"kind": "numbers"}
        elif isinstance(own, TranscriptCharacters) or is_sound(own):
            found[name] = own.facts()
        elif isinstance(own, Items | Histories | Images):
            found[name] = own.write(folder)
        elif "kind" in names:
            found[name] = {"kind": names["kind"]}
        else:
            found[name] = {"kind": "sentencepiece", "file": names["target" if name == "target" else "source"]}
        if isinstance(own, TextParts) and own.tokens is not None:
            found[name] |= {"tokens": own.tokens._asdict()}
        if _is_text(own):
            found[name] |= {"sha256": hashes}
    return found


def _write_files(folder: Path, pair: Pair) -> tuple[dict[str, str], dict[str, str]]:
    """Write vocabularies, each file once; returns their names, as `vocabularies.write` does, and their hashes by
    file.
    """
    with tempfile.TemporaryDirectory() as aside:
        names = vocabularies.write(Path(aside), pair)
        for path in sorted(Path(aside).iterdir()):
            write_bytes(folder / path.name, path.read_bytes())
        return names, {path.name: sha256(path) for path in sorted(Path(aside).iterdir())}


def _check_files(folder: Path, facts: Mapping[str, Mapping[str, Any]], where: str) -> None:
    """Refuse vocabulary files that do not match their hashes; earlier versions have none."""
    for name, own in facts.items():
        stated = own.get("sha256", {})
        if not isinstance(stated, Mapping):
            raise ValueError(f"{where}.{name}.sha256 is {stated!r}; it must be a table")
        for file, right in stated.items():
            path = folder / Path(file).name
            if not path.is_file() or sha256(path) != right:
                what = "is damaged or belongs to another model" if path.is_file() else "is missing"
                raise ValueError(f"{path} {what}: config.json records its hash; copy it again")


def read(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Read what `write` has written; `facts` is what it returned."""
    where = f"{folder}/config.json: processors"
    for name, own in facts.items():
        if not isinstance(own, Mapping) or not isinstance(own.get("kind"), str):
            raise ValueError(f"{where}.{name} is {own!r}; it must be a section with a kind")
    texts = {name: own for name, own in facts.items() if own["kind"] not in (*INLINE, *FILES)}
    pair = vocabularies.read(folder, _pair(texts, where)) if texts else ()
    _check_files(folder, texts, where)  # last: what a vocabulary says of itself tells more
    found = {
        name: _with_tokens(pair[name == "target"], own.get("tokens"), f"{where}.{name}") for name, own in texts.items()
    }
    others = {name: _other(folder, own, f"{where}.{name}") for name, own in facts.items() if name not in texts}
    return {name: (found | others)[name] for name in facts}


def _other(folder: Path, own: Mapping[str, Any], where: str) -> Any:
    """A processor that is not a text vocabulary."""
    if own["kind"] in FILES:
        return FILES[own["kind"]].read(folder, own, where)
    if own["kind"] == "images":
        return Images.read_facts(own, where)
    if own["kind"] == "sound":
        from heed.vocabularies.sound import SoundFeatures

        return SoundFeatures.read(own, where)
    if own["kind"] == "transcript":
        return TranscriptCharacters.read(own, where)
    return Numbers() if own["kind"] == "numbers" else _labels(own, where)


def _with_tokens(vocabulary: Vocabulary, tokens: Any, where: str) -> Vocabulary:
    """A vocabulary with the tokens around the parts of a text, if a folder has any."""
    if tokens is None:
        return vocabulary
    names = InputTokens._fields
    if (
        not isinstance(tokens, Mapping)
        or sorted(tokens) != sorted(names)
        or any(type(i) is not int or i < 0 for i in tokens.values())
    ):
        raise ValueError(f"{where}.tokens is {tokens!r}; it must have the ids {', '.join(names)}")
    return TextParts(vocabulary, InputTokens(**tokens))


def _pair(texts: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, str]:
    """Their names in vocabularies.folder: a kind for both sides, or a file for each."""
    first, *_, last = [*texts.values(), *texts.values()]
    if first["kind"] != "sentencepiece":
        return {"kind": first["kind"]}
    for name, own in texts.items():
        if not isinstance(own.get("file"), str):
            raise ValueError(f"{where}.{name} names no file")
    return {"source": first["file"], "target": last["file"]}


def _labels(own: Mapping[str, Any], where: str) -> Labels:
    parts = {"names": own.get("names"), "numbered": own.get("numbered", [])}
    for part, names in parts.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{where}.{part} is {names!r}; it must be a list of strings")
    return Labels(**parts)
