"""A model folder: config.json and model.safetensors. Plain data, nothing that runs."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from heed.config import WORDS, read
from heed.files import atomic_file, write_json
from heed.models import MODELS

WEIGHTS, CONFIG = "model.safetensors", "config.json"
SECTIONS = ("model", "subwords", "decoding", "alignment", "languages", "trained", "origin")
NAMES = (("model", "name"), ("subwords", "kind"), ("subwords", "source"), ("subwords", "target"))


def save(folder: Path, model: nn.Module, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Write weights and config.json, of which `facts` are further plain entries; what the file says."""
    folder.mkdir(parents=True, exist_ok=True)
    name = next(name for name, (kind, _) in MODELS.items() if type(model) is kind)
    write_weights(folder / WEIGHTS, model.state_dict())
    every = {"model": {"name": name, **asdict(model.config)}, **facts}
    write_json(folder / CONFIG, every)
    return every


def load(folder: Path) -> nn.Module:
    """The model of a folder, in evaluation mode."""
    facts = read_config(folder)
    values = dict(facts.get("model", {}))
    name = values.pop("name", None)
    if name not in MODELS:
        raise ValueError(f"{folder / CONFIG}: model.name is {name!r}; heed has {', '.join(MODELS)}")
    kind, config = MODELS[name]
    model = kind(read(config, values, f"{folder / CONFIG}: model."))
    put(model, read_weights(folder / WEIGHTS), folder / WEIGHTS)
    return model.eval()


def read_config(folder: Path) -> dict[str, Any]:
    facts = read_json(folder / CONFIG, "sections: it is not heed's")
    if "model_type" not in facts and "architectures" not in facts:  # theirs have other names
        check(facts, f"{folder / CONFIG}: ")
    return facts


def check(facts: Mapping[str, Any], where: str) -> None:
    """Whether what all of heed's folders have is of the kind that it should be; what is within is read by whom it concerns."""

    def must(name: str, value: Any, right: bool, what: str) -> None:
        if not right:
            raise ValueError(f"{where}{name} is {value!r}; it must be {what}")

    for name in SECTIONS:
        own = facts.get(name, {})
        nothing = own is None and name in ("languages", "subwords")
        must(name, own, isinstance(own, dict) or nothing, "a section of names and values")
    for section, name in NAMES:
        own = (facts.get(section) or {}).get(name, "")
        must(f"{section}.{name}", own, isinstance(own, str), WORDS[str])
    most, labels, rows = facts.get("max_source"), facts.get("labels") or [], facts.get("alignment")
    must("max_source", most, most is None or _whole(most, 1), "a whole number of at least 1")
    texts = isinstance(labels, list) and all(isinstance(label, str) for label in labels)
    must("labels", labels, texts, "a list of texts")
    if rows is not None:
        if sorted(rows) != ["after", "layer"]:
            raise ValueError(
                f"{where}alignment has {', '.join(sorted(rows)) or 'nothing'}; it must have layer and after"
            )
        must("alignment.layer", rows["layer"], _whole(rows["layer"], 0), "a whole number of at least 0")
        must("alignment.after", rows["after"], isinstance(rows["after"], bool), WORDS[bool])


def _whole(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A file of a model folder that holds names and values; `what` says what one with anything else lacks."""
    if not path.is_file():
        raise ValueError(f"{path.parent} is not a model folder: it has no {path.name}")
    try:
        facts = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(facts, dict):
        raise ValueError(f"{path} holds no {what}")
    return facts


def put(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Load weights into a model: every one of them, and no other."""
    own = model.state_dict()
    unknown, missing = sorted(set(weights) - set(own)), sorted(set(own) - set(weights))
    if unknown:
        raise ValueError(f"{path} holds {some(unknown)}, which this model does not have: is it of another model?")
    if missing:
        raise ValueError(f"{path} lacks {some(missing)}: it is of another model, or not complete")
    for name, weight in weights.items():
        if weight.shape != own[name].shape:
            raise ValueError(
                f"{path}: {name} has shape {tuple(weight.shape)}, but by {CONFIG} it should be {tuple(own[name].shape)}"
            )
    model.load_state_dict(weights)


def read_weights(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ValueError(f"{path.parent} has no weights: {path.name} is missing")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or cut short ({error}): copy it again") from error


def write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    with atomic_file(path) as part:
        save_weights({name: weight.detach().cpu().contiguous() for name, weight in weights.items()}, part)


def save_weights(weights: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """A file of weights that may be read by whom other files may be: safetensors (0.8) keeps its own for the owner alone."""
    path.unlink(missing_ok=True)
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(dict(weights), path, metadata=metadata)
    except SafetensorError as error:
        path.unlink(missing_ok=True)
        raise ValueError(f"{path} could not be written: {error}; make room, or choose another place") from error
    path.chmod(mode)


def some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
