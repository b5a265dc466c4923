"""Heed's model folders, as packages."""

from pathlib import Path
from typing import Any

from heed.config import meant
from heed.convert import sentence_transformers
from heed.convert.ctranslate2_names import names
from heed.data import shortlist
from heed.models import folder as model_folder
from heed.models import signature
from heed.models.package import Package
from heed.vocabularies import processors


def find_model(path: Path) -> Path:
    """A model folder, or the model of a run."""
    if not path.is_dir():
        raise ValueError(f"{path}: no such folder{_similar(path)}")
    if (path / "recipe.toml").is_file() and not (path / model_folder.CONFIG).is_file():
        if not (path / "model" / model_folder.CONFIG).is_file():
            raise ValueError(f"{path} has no model yet: its training has not reached its first validation")
        return path / "model"
    found = sentence_transformers.transformer_folder(path)
    if found == path and not (path / model_folder.CONFIG).is_file() and (inside := _models_in(path)):
        raise ValueError(f"{path} is not a model folder, but contains some: give one of them, such as {inside[0]}")
    return found


def _models_in(folder: Path) -> list[Path]:
    """The runs and model folders in a folder such as runs/."""
    files = ("recipe.toml", model_folder.CONFIG)
    return [own for own in sorted(folder.iterdir()) if any((own / name).is_file() for name in files)]


def _similar(path: Path) -> str:
    """The folder next to a missing one that was probably meant."""
    beside = [own.name for own in path.parent.iterdir() if own.is_dir()] if path.parent.is_dir() else []
    near = meant(path.name, beside)
    return f"; did you mean {path.with_name(near)}?" if near else ""


def read_package(path: Path, facts: dict[str, Any]) -> Package:
    """A model with its processors and metadata; `facts` are those of its config.json."""
    task, own = task_of(path, facts), _processors(path, facts)
    rest = {name: value for name, value in facts.items() if name not in ("model", "task", "processors", "sha256")}
    package = Package(model_folder.load(path), task, own, rest)
    if "target" in own and signature.check_beside(path / shortlist.FILE, facts):
        return package._replace(shortlist=shortlist.read(path, names(own["target"])))
    return package


def task_of(folder: Path, facts: dict[str, Any]) -> str:
    if not facts.get("processors"):
        raise ValueError(f"{folder}/config.json lists no subwords: it cannot read text")
    return facts.get("task", {}).get("name", "translation")


def _processors(folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    sections, model = facts["processors"], facts.get("model", {})
    found = processors.read(folder, sections)
    sizes = {"source": model.get("source_vocab_size") or model.get("vocab_size")}
    for name, own in found.items():
        choices = model.get("choices") or model.get("head") == "choice"
        if sections[name]["kind"] == "numbers" or (sections[name]["kind"] == "labels" and choices):
            continue  # the head has one output, for any number of them
        kind = sections[name]["kind"]
        if kind in ("histories", "sound", "images"):
            continue  # an id beyond the last item is one that the model does not know; the rest is checked by the product
        size = model.get(kind) if kind in ("labels", "items") else sizes.get(name, model.get("vocab_size"))
        if not isinstance(size, int):
            continue  # reading the model reports it
        exact = kind in ("sentencepiece", "labels", "items")  # other families round their size up
        if len(own) > size or (exact and len(own) < size):
            what = kind if kind in ("labels", "items") else "subwords"
            raise ValueError(
                f"{folder / sections[name].get('file', sections[name]['kind'])} has {len(own)} {what}, but the model "
                f"expects {size}: it belongs to another model"
            )
    return found
