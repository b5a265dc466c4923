"""The processors of a model folder: what turns a user's input into ids and back, each named in config.json."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heed.vocabularies import folder as vocabularies
from heed.vocabularies.labels import Labels


def write(folder: Path, processors: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Write the files of processors into a folder; what its config.json says of them."""
    texts = [own for own in processors.values() if not isinstance(own, Labels)]
    names = vocabularies.write(folder, (texts[0], texts[-1])) if texts else {}
    found = {}
    for name, own in processors.items():
        if isinstance(own, Labels):
            found[name] = {"kind": "labels", "names": own.names}
        elif "kind" in names:
            found[name] = {"kind": names["kind"]}
        else:
            found[name] = {"kind": "sentencepiece", "file": names["target" if name == "target" else "source"]}
    return found


def read(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What `write` has written; `facts` are what it returned."""
    where = f"{folder}/config.json: processors"
    for name, own in facts.items():
        if not isinstance(own, Mapping) or not isinstance(own.get("kind"), str):
            raise ValueError(f"{where}.{name} is {own!r}; it must be a section with a kind")
    texts = {name: own for name, own in facts.items() if own["kind"] != "labels"}
    pair = vocabularies.read(folder, _pair(texts, where)) if texts else ()
    found = {name: pair[name == "target"] for name in texts}
    labels = {name: _labels(own.get("names"), f"{where}.{name}") for name, own in facts.items() if name not in texts}
    return {name: (found | labels)[name] for name in facts}


def _pair(texts: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, str]:
    """What vocabularies.folder calls them: a kind for both sides, or a file for each."""
    first, *_, last = [*texts.values(), *texts.values()]
    if first["kind"] != "sentencepiece":
        return {"kind": first["kind"]}
    for name, own in texts.items():
        if not isinstance(own.get("file"), str):
            raise ValueError(f"{where}.{name} names no file")
    return {"source": first["file"], "target": last["file"]}


def _labels(names: Any, where: str) -> Labels:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{where}.names is {names!r}; it must be a list of texts")
    return Labels(names)
