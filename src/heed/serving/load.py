"""Translators out of folders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from heed import config as settings
from heed.data import subwords as subword_files
from heed.data.subwords import Subwords
from heed.decoding.config import DecodingConfig
from heed.models import folder as model_folder
from heed.serving.translator import Translator


def load(folders: str | Path | Sequence[str | Path], device: str = "auto") -> Translator:
    """The translator of a run folder or a model folder; of several, an ensemble."""
    paths = [find_model(Path(f)) for f in ([folders] if isinstance(folders, str | Path) else folders)]
    place = choose_device(device)
    facts = [model_folder.read_config(path) for path in paths]
    models = [model_folder.load(path).to(place) for path in paths]
    subwords = [_subwords(path, fact) for path, fact in zip(paths, facts, strict=True)]
    for path, pair in zip(paths[1:], subwords[1:], strict=True):
        if [part.model for part in pair] != [part.model for part in subwords[0]]:
            raise ValueError(f"{paths[0]} and {path} have different subwords: an ensemble needs the same in all")
    decoding = settings.read(DecodingConfig, facts[0].get("decoding", {}), f"{paths[0]}/config.json: decoding.")
    return Translator(models, subwords[0], decoding=decoding, max_source=facts[0].get("max_source"), facts=facts[0])


def choose_device(name: str) -> torch.device:
    """A device by name; "auto" is a GPU where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device is {name!r}; it is auto, cpu or cuda (cuda:1 for the second)") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r}, but torch sees no GPU here; use --device cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device is {name!r}, but torch sees {torch.cuda.device_count()} here, counted from cuda:0")
    # cuDNN's attention builds a plan for each new shape, and text has many: 142 ms a step against 32
    torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def find_model(path: Path) -> Path:
    """A model folder as it is; of a run, the model in it."""
    if not path.is_dir():
        raise ValueError(f"{path}: no such folder")
    if (path / "recipe.toml").is_file() and not (path / model_folder.CONFIG).is_file():
        if not (path / "model" / model_folder.CONFIG).is_file():
            raise ValueError(f"{path} has no model yet: its training has not come to its first validation")
        return path / "model"
    return path


def _subwords(folder: Path, facts: dict[str, Any]) -> tuple[Subwords, Subwords]:
    names = facts.get("subwords")
    if not names:
        raise ValueError(f"{folder}/config.json names no subwords: it cannot read text")
    for side in ("source", "target"):
        if side not in names:
            raise ValueError(f"{folder}/config.json: subwords names no {side}")
    model = facts["model"]
    sizes = {"target": model["vocab_size"], "source": model.get("source_vocab_size") or model["vocab_size"]}
    found = {name: subword_files.load(folder / name) for name in {names["source"], names["target"]}}
    for side, size in sizes.items():
        if len(found[names[side]]) != size:
            raise ValueError(
                f"{folder / names[side]} has {len(found[names[side]])} subwords, but the model was made for {size}: "
                "it is of another model"
            )
    return found[names["source"]], found[names["target"]]
