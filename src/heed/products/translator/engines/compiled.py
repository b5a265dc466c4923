"""Which kernels of the GPU's search Triton has compiled on this machine before: an empty file for each kind in $HEED_CACHE.

Triton keeps the kernels themselves. To ask it, they would have to be compiled; these files say beforehand what a first search will cost.
"""

import dataclasses
import hashlib
import json
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from heed.files import cache_folder
from heed.version import __version__

OTHER = ("layers", "dropout", "max_length")  # parts of the names of settings for which no kernel is compiled


def remember(config: Any, dtype: torch.dtype, beams: int, device: torch.device) -> None:
    """A search of a model with this config has run, so its kernels are compiled."""
    if (path := _file(config, dtype, beams, device)) is not None:
        with suppress(OSError):  # a read-only disk
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


def known(config: Any, dtype: torch.dtype, beams: int, device: torch.device) -> bool:
    """Whether such a search has run on this machine, and Triton still has a cache."""
    path = _file(config, dtype, beams, device)
    return path is not None and path.is_file() and triton_folder().is_dir()


def triton_folder() -> Path:
    """Where Triton keeps compiled kernels."""
    home = Path(os.environ.get("TRITON_HOME") or Path.home())
    return Path(os.environ.get("TRITON_CACHE_DIR") or home / ".triton" / "cache")


def _file(config: Any, dtype: torch.dtype, beams: int, device: torch.device) -> Path | None:
    """The file for this kind of kernels; None where there are none."""
    versions, gpu = _versions(), gpu_name(device)
    if versions is None or gpu is None:
        return None
    shape = {name: own for name, own in dataclasses.asdict(config).items() if not any(one in name for one in OTHER)}
    facts = [type(config).__name__, shape, str(dtype), beams, gpu, str(triton_folder()), *versions]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
    return cache_folder() / "kernels" / digest[:24]


def gpu_name(device: torch.device) -> str | None:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else None


@cache
def _versions() -> tuple[str, ...] | None:
    return (__version__, torch.__version__, version("triton")) if find_spec("triton") else None
