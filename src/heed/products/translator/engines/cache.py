"""Models as CTranslate2 reads them, made once and kept: $HEED_CACHE/ctranslate2-KEY."""

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from heed.convert import ctranslate2
from heed.files import atomic_folder, cache_folder, sha256
from heed.models.package import Package

FORMAT = 1  # of what is kept; a change of how models are converted changes it
MOST = 8  # models that are kept: with another, the one that was not used for the longest time goes
SUMS = "sums.json"


def with_folder(package: Package, kind: str, use: Callable[[Path], Any]) -> Any:
    """What `use` makes of the model's folder. A damaged one is made anew; where nothing can be kept, nothing is."""
    folder = cache_folder() / f"ctranslate2-{key(package, kind)}"
    try:
        if not sound(folder):
            shutil.rmtree(folder, ignore_errors=True)
            _make(package, kind, folder)
            _prune(folder)
        with suppress(OSError):  # a disk for reading only
            os.utime(folder)  # it was used now
    except OSError:  # a disk that is full, or that nobody may write to
        with tempfile.TemporaryDirectory() as once:
            ctranslate2.write_model(package, Path(once), kind)
            return use(Path(once))
    return use(folder)


def key(package: Package, kind: str) -> str:
    """The same for the same weights and settings."""
    model, digest = package.model, hashlib.sha256()
    settings = {**dataclasses.asdict(model.config), "model": type(model).__name__}
    marks = [part.marks for part in package.vocabularies]
    digest.update((package.shortlist or "").encode())
    digest.update(json.dumps([FORMAT, kind, settings, marks, [part.key() for part in package.vocabularies]]).encode())
    for name, weight in model.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().to("cpu", torch.float32).contiguous().numpy())
    return digest.hexdigest()[:24]


def sound(folder: Path) -> bool:
    """Whether all is there as it was written."""
    try:
        return json.loads((folder / SUMS).read_text("utf-8")) == _sums(folder)
    except (OSError, ValueError):
        return False


def _make(package: Package, kind: str, folder: Path) -> None:
    with atomic_folder(folder, "keep") as aside:
        ctranslate2.write_model(package, aside, kind)
        (aside / SUMS).write_text(json.dumps(_sums(aside)), "utf-8")


def _sums(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path) for path in sorted(folder.iterdir()) if path.name != SUMS}


def _prune(folder: Path) -> None:
    """What other processes have opened they have in memory."""
    others = [
        path for path in folder.parent.glob("ctranslate2-*") if path != folder and not path.name.endswith(".part")
    ]
    for path in sorted(others, key=_last_used, reverse=True)[MOST - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process was quicker
        return 0.0
