"""Cached vectors of a searched file: $HEED_CACHE/embeddings-KEY.npy."""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from heed.files import atomic_file, cache_folder
from heed.models.weight_hash import known_hash
from heed.products.ctranslate2_model import KIND
from heed.products.embedder import Embedder

FORMAT = 1  # to be raised whenever vectors change
DIGEST = 32  # bytes of a hash at the end of a file
MAX_KEPT = 16  # files; then the least recently used one goes


def cached_vectors(embedder: Embedder, texts: Sequence[str], **options: Any) -> Float[np.ndarray, "n dim"]:
    """The vectors of texts: cached, or computed and cached if the disk allows it."""
    path = cache_folder() / f"embeddings-{_key(embedder, texts, options.get('too_long'))}.npy"
    with suppress(OSError, ValueError):  # none there, or a damaged one
        vectors = _read(path)
        if vectors.shape == (len(texts), embedder.dim):
            os.utime(path)  # marks it as used now
            return vectors
    vectors = embedder.embed(texts, **options)
    with suppress(OSError):  # the disk is full or read-only
        _write(path, vectors)
        _prune(path)
    return vectors


def _write(path: Path, vectors: np.ndarray) -> None:
    """Write numpy's format followed by a hash, which numpy ignores."""
    with atomic_file(path) as part:
        with open(part, "wb") as file:
            np.save(file, vectors)
        digest = _digest(part, part.stat().st_size, path.name)
        with open(part, "ab") as file:
            file.write(digest)


def _read(path: Path) -> np.ndarray:
    """The vectors of a file; ValueError if they are damaged."""
    with open(path, "rb") as file:
        size = max(0, path.stat().st_size - DIGEST)
        file.seek(size)
        if file.read() != _digest(path, size, path.name):
            raise ValueError(f"{path} is damaged")
    return np.load(path)


def _digest(path: Path, size: int, name: str) -> bytes:
    """A hash of the name of a file and of its first bytes."""
    digest = hashlib.sha256(name.encode())
    with open(path, "rb") as file:
        while size and (block := file.read(min(size, 1 << 20))):
            digest.update(block)
            size -= len(block)
    return digest.digest()


def _key(embedder: Embedder, texts: Sequence[str], too_long: str | None) -> str:
    """A hash of the weights, the embedding settings and the texts."""
    model, digest = embedder.model, hashlib.sha256()
    made = [type(model).__name__, asdict(model.config), embedder.pooling, embedder.normalize, embedder.most, too_long]
    made += [] if embedder.engine is None or embedder.engine.kind == KIND else [embedder.engine.kind]
    digest.update(json.dumps([FORMAT, embedder.vocabulary.key(), made]).encode())
    digest.update(f"{next(model.parameters()).dtype} {known_hash(model)}".encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode()).digest())
    return digest.hexdigest()[:24]


def _prune(path: Path) -> None:
    kept = sorted(path.parent.glob("embeddings-*.npy"), key=lambda own: own.stat().st_mtime, reverse=True)
    for old in kept[MAX_KEPT:]:
        old.unlink(missing_ok=True)
