"""config.json of a model folder, as this version writes it. Nothing here needs torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heed.config import WORDS, parse_json
from heed.models import MODELS
from heed.models.folder_entries import are_texts, is_whole, wrong_entry
from heed.models.signature import CONFIG

SECTIONS = (
    "model", "task", "processors", "decoding", "alignment", "languages", "trained", "origin", "pretraining", "sha256",
)  # fmt: skip
RENAMED = {"bart-classifier": "bart"}  # names of earlier versions


def read_config(folder: Path) -> dict[str, Any]:
    facts = read_json(folder / CONFIG, "sections: it is not heed's")
    if "model_type" in facts or "architectures" in facts:  # Hugging Face's
        return facts
    facts = upgraded(facts, f"{folder / CONFIG}: ")
    check(facts, f"{folder / CONFIG}: ")
    return facts


def upgraded(facts: dict[str, Any], where: str) -> dict[str, Any]:
    """The facts of a folder that an earlier version wrote, as this version writes them."""
    model, old, labels = facts.get("model"), facts.get("subwords"), facts.get("labels")
    if not isinstance(model, dict) or not isinstance(model.get("name", ""), str):
        return facts  # which is reported later
    if model.get("name") in RENAMED:
        facts = {**facts, "model": {**model, "name": RENAMED[model["name"]]}}
    if old is None or "processors" in facts:
        return facts
    _check_earlier(old, labels, where)
    trained = facts.get("trained")
    task = (trained.get("task") if isinstance(trained, dict) else None) or _default_task(facts["model"])
    sides = {side: {"kind": old.get("kind", "sentencepiece")} for side in ("source", "target")}
    if "kind" not in old:
        sides = {side: {**own, "file": old[side]} for side, own in sides.items()}
    if labels is not None:
        sides = {"text": sides["source"], "labels": {"kind": "labels", "names": labels}}
    elif task == "language":
        sides = {"text": sides["source"]}
    rest = {name: value for name, value in facts.items() if name not in ("subwords", "labels")}
    return {**rest, "task": {"name": task}, "processors": sides}


def _check_earlier(old: Any, labels: Any, where: str) -> None:
    if not isinstance(old, dict):
        raise ValueError(f"{where}subwords is {old!r}; it must be a table")
    if labels is not None and not are_texts(labels):
        raise ValueError(f"{where}labels is {labels!r}; it must be a list of strings")
    for name in ("kind",) if "kind" in old else ("source", "target"):
        if name not in old:
            raise ValueError(f"{where}subwords lists no {name}")
        if not isinstance(old[name], str):
            raise ValueError(f"{where}subwords.{name} is {old[name]!r}; it must be {WORDS[str]}")


def _default_task(model: Mapping[str, Any]) -> str:
    system = MODELS.get(model.get("name"))
    return "classification" if model.get("labels") else system.task if system else "translation"


def check(facts: Mapping[str, Any], where: str) -> None:
    """Check the types of the sections and entries; the contents of sections are checked where they are used."""

    def must(name: str, value: Any, right: bool, what: str) -> None:
        if not right:
            raise ValueError(f"{where}{name} is {value!r}; it must be {what}")

    for name in SECTIONS:
        own = facts.get(name, {})
        nothing = own is None and name == "languages"
        must(name, own, isinstance(own, dict) or nothing, "a table")
    for section in ("model", "task"):
        own = facts.get(section, {}).get("name", "")
        must(f"{section}.name", own, isinstance(own, str), WORDS[str])
    if wrong := wrong_entry(facts):
        must(wrong[0], facts[wrong[0]], False, wrong[1])
    rows, examples = facts.get("alignment"), facts.get("trained", {}).get("examples", [])
    must("trained.examples", examples, are_texts(examples), "a list of strings")
    for side, own in (facts.get("languages") or {}).items():
        must(f"languages.{side}", own, own is None or isinstance(own, str), "the code of a language")
    pairs = facts.get("directions") or []
    right = isinstance(pairs, list) and all(are_texts(own) and len(own) == 2 for own in pairs)
    must("directions", pairs, right, "a list of pairs of languages")
    if rows is not None:
        if sorted(rows) != ["after", "layer"]:
            raise ValueError(
                f"{where}alignment has {', '.join(sorted(rows)) or 'nothing'}; it must have layer and after"
            )
        must("alignment.layer", rows["layer"], is_whole(rows["layer"], 0), "an integer of at least 0")
        must("alignment.after", rows["after"], isinstance(rows["after"], bool), WORDS[bool])


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a file of a model folder; `what` is what the error says is missing if it holds anything else."""
    if not path.is_file():
        raise ValueError(f"{path.parent} is not a model folder: it has no {path.name}")
    try:
        facts = parse_json(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(facts, dict):
        raise ValueError(f"{path} holds no {what}")
    return facts
