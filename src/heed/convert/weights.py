"""The weights of a Hugging Face folder: safetensors or old pickles, in one file or in shards. Nothing in them is run."""

import json
import pickle
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heed.models.folder import read_weights

SAFE, OLD = "model.safetensors", "pytorch_model.bin"
OTHER = ("tf_model.h5", "flax_model.msgpack", "rust_model.ot", "model.ckpt.index")


def read(folder: Path) -> dict[str, Tensor]:
    """Every weight by its name, on the CPU. Where there are both kinds, safetensors are taken."""
    for name in (SAFE, OLD):
        if (folder / name).is_file():
            return _file(folder / name)
        if (folder / f"{name}.index.json").is_file():
            return _shards(folder / f"{name}.index.json")
    other = [name for name in OTHER if (folder / name).is_file()]
    instead = f"; heed does not read {', '.join(other)}" if other else ""
    raise ValueError(f"{folder} has no weights: neither {SAFE} nor {OLD}, nor an index of their shards{instead}")


def _file(path: Path) -> dict[str, Tensor]:
    with open(path, "rb") as file:
        if file.read(24).startswith(b"version https://git-lfs"):
            raise ValueError(f"{path} is not the file but git-lfs' note of where it is: run git lfs pull in its folder")
    return _pickle(path) if path.suffix == ".bin" else read_weights(path)


def _shards(index: Path) -> dict[str, Tensor]:
    places = _places(index)
    shards = sorted(set(places.values()))
    missing = [name for name in shards if not (index.parent / name).is_file()]
    if missing:
        raise ValueError(
            f"{index} names {missing[0]}, which is not in the folder ({len(shards) - len(missing)} of {len(shards)} "
            "shards are): copy it again"
        )
    weights = {}
    for shard in shards:
        held = _file(index.parent / shard)
        lacking = [name for name, place in places.items() if place == shard and name not in held]
        if lacking:
            raise ValueError(f"{index} says that {shard} holds {lacking[0]}, but it does not: they do not go together")
        weights |= {name: weight for name, weight in held.items() if places.get(name, shard) == shard}
    return weights


def _places(index: Path) -> dict[str, str]:
    """Which shard holds each weight."""
    try:
        places = json.loads(index.read_text("utf-8"))["weight_map"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{index} is no index of shards: it has no weight_map ({error!r})") from error
    if not isinstance(places, dict) or not places:
        raise ValueError(f"{index} is no index of shards: its weight_map names no weight")
    for shard in places.values():
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise ValueError(f"{index} names {shard!r}; a shard is a file in the same folder")
    return places


def _pickle(path: Path) -> dict[str, Tensor]:
    """An old file of torch, of which tensors alone are read: whatever else it would do is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the pickle is of another protocol
            held = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        asked = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it asks for {asked[1]}" if asked else "it is no plain file of tensors"
        raise ValueError(
            f"{path} is a pickle that holds more than weights ({what}). Opening it could run code, so heed does not: "
            f"ask for the model as {SAFE}"
        ) from error
    except (RuntimeError, EOFError) as error:
        raise ValueError(f"{path} is damaged or cut short ({_line(error)}): copy it again") from error
    if not isinstance(held, dict) or not all(isinstance(weight, Tensor) for weight in held.values()):
        raise ValueError(f"{path} does not hold weights by their names; heed reads what save_pretrained writes")
    return dict(held)


def _line(error: Any) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].split(". ")[0]
