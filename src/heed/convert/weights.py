"""The weights of a Hugging Face folder: safetensors or pickles, in one file or in shards. No code in them is run."""

import io
import os
import pickle
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heed.config import parse_json
from heed.models.folder import read_weights

SAFE, PICKLE = "model.safetensors", "pytorch_model.bin"
UNREADABLE = ("tf_model.h5", "flax_model.msgpack", "rust_model.ot", "model.ckpt.index")


def read(folder: Path) -> dict[str, Tensor]:
    """All weights by name, on the CPU. If there are both formats, safetensors are read."""
    for name in (SAFE, PICKLE):
        if (folder / name).is_file():
            return _read_file(folder / name)
        if (folder / f"{name}.index.json").is_file():
            return _read_shards(folder / f"{name}.index.json")
    other = [name for name in UNREADABLE if (folder / name).is_file()]
    instead = f"; heed does not read {', '.join(other)}" if other else ""
    raise ValueError(f"{folder} has no weights: neither {SAFE} nor {PICKLE}, nor an index of their shards{instead}")


def _read_file(path: Path) -> dict[str, Tensor]:
    with open(path, "rb") as file:
        if file.read(24).startswith(b"version https://git-lfs"):
            raise ValueError(f"{path} is a Git LFS pointer, not the file itself: run git lfs pull in its folder")
    return _read_pickle(path) if path.suffix == ".bin" else read_weights(path)


def _read_shards(index: Path) -> dict[str, Tensor]:
    shard_of = _read_index(index)
    shards = sorted(set(shard_of.values()))
    missing = [name for name in shards if not (index.parent / name).is_file()]
    if missing:
        raise ValueError(
            f"{index} names {missing[0]}, which is not in the folder ({len(shards) - len(missing)} of {len(shards)} "
            "shards are): copy it again"
        )
    weights = {}
    for shard in shards:
        held = _read_file(index.parent / shard)
        lacking = [name for name, own in shard_of.items() if own == shard and name not in held]
        if lacking:
            raise ValueError(f"{index} says that {shard} holds {lacking[0]}, but it does not: the files do not match")
        weights |= {name: weight for name, weight in held.items() if shard_of.get(name, shard) == shard}
    return weights


def _read_index(index: Path) -> dict[str, str]:
    """The shard of each weight."""
    try:
        shard_of = parse_json(index.read_text("utf-8"))["weight_map"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{index} is not a shard index: it has no weight_map ({error!r})") from error
    if not isinstance(shard_of, dict) or not shard_of:
        raise ValueError(f"{index} is not a shard index: its weight_map is empty")
    for shard in shard_of.values():
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise ValueError(f"{index} names {shard!r}; a shard must be a file in the same folder")
    return shard_of


class _Bounded(io.BufferedReader):
    """A file that never reads more at once than it contains: a damaged pickle may declare lengths of gigabytes."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return super().read(size)
        return super().read(min(size, os.fstat(self.fileno()).st_size))


def _read_pickle(path: Path) -> dict[str, Tensor]:
    """Read a torch.save file with nothing but tensors: anything else is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about the protocol of the pickle
            if zipfile.is_zipfile(path):
                held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            else:
                with _Bounded(io.FileIO(path)) as file:
                    held = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        asked = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it asks for {asked[1]}" if asked else "it is not a plain file of tensors"
        raise ValueError(
            f"{path} is a pickle that contains more than weights ({what}). Loading it could run arbitrary code, so "
            f"heed refuses: get the model as {SAFE}"
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle may say anything, and torch does not check it
        raise ValueError(f"{path} is damaged or truncated ({_line(error)}): copy it again") from error
    if not isinstance(held, dict) or not all(isinstance(weight, Tensor) for weight in held.values()):
        raise ValueError(f"{path} is not a state dict; heed reads what save_pretrained writes")
    return dict(held)


def _line(error: Any) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].split(". ")[0]
