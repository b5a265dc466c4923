"""Models converted for CTranslate2, cached as $HEED_CACHE/ctranslate2-KEY."""

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

from heed.convert import ctranslate2
from heed.files import atomic_folder, cache_folder, check_sums, write_sums
from heed.models.package import Package
from heed.models.weight_hash import known_hash

FORMAT = 1  # to be raised whenever the conversion changes
MAX_KEPT = 8  # models; then the least recently used one goes


def with_folder(package: Package, kind: str, use: Callable[[Path], Any]) -> tuple[Path | None, Any]:
    """The model's folder in the cache, and the result of `use` on it; on a read-only disk, of a temporary folder
    (None).
    """
    folder = cache_folder() / f"ctranslate2-{key(package, kind)}"
    try:
        if not is_intact(folder):
            shutil.rmtree(folder, ignore_errors=True)
            _convert(package, kind, folder)
            _prune(folder)
        with suppress(OSError):  # a read-only disk
            os.utime(folder)  # marks it as used now
    except OSError:  # the disk is full or read-only
        with tempfile.TemporaryDirectory() as temporary:
            ctranslate2.write_model(package, Path(temporary), kind)
            return None, use(Path(temporary))
    return folder, use(folder)


def key(package: Package, kind: str) -> str:
    """A hash of the weights and settings."""
    model, digest = package.model, hashlib.sha256()
    settings = {**dataclasses.asdict(model.config), "model": type(model).__name__}
    special = [part.fixed_special() for part in package.vocabularies]
    digest.update((package.shortlist or "").encode())
    digest.update(json.dumps([FORMAT, kind, settings, special, [part.key() for part in package.vocabularies]]).encode())
    digest.update(known_hash(model).encode())
    return digest.hexdigest()[:24]


def is_intact(folder: Path) -> bool:
    try:
        return check_sums(folder)
    except ValueError:
        return False


def _convert(package: Package, kind: str, folder: Path) -> None:
    with atomic_folder(folder, "keep") as temporary:
        ctranslate2.write_model(package, temporary, kind)
        write_sums(temporary)


def _prune(folder: Path) -> None:
    """Remove the oldest; other processes have what they opened in memory."""
    kept = [path for path in folder.parent.glob("ctranslate2-*") if not path.name.endswith(".part")]
    for path in sorted({*kept} - {folder}, key=_last_used, reverse=True)[MAX_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process has removed it
        return 0.0
