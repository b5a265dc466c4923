"""Translated files until they are downloaded: in one temporary folder, under random names."""

import re
import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path, PurePosixPath
from typing import NamedTuple

KEEP_SECONDS = 600.0
MAX_TOTAL_BYTES = 64 << 20  # the oldest files are removed first
_UNSAFE = re.compile(r"[^\w.\- ]+")


class StoredFile(NamedTuple):
    name: str
    path: Path
    size: int
    since: float


class FileStore:
    """Files that can be downloaded with a secret token. The folder is made with the first of them."""

    def __init__(self):
        self.folder: Path | None = None
        self.files: dict[str, StoredFile] = {}
        self.lock = threading.Lock()

    def put(self, name: str, data: bytes) -> str:
        """Store a file for a while; returns its token."""
        with self.lock:
            self.folder = self.folder or Path(tempfile.mkdtemp(prefix="heed-serve-"))
            self._remove_expired(len(data))
            token = secrets.token_urlsafe(24)
            path = self.folder / secrets.token_hex(16)
            path.write_bytes(data)
            self.files[token] = StoredFile(name, path, len(data), time.monotonic())
            return token

    def get(self, token: str) -> tuple[str, bytes] | None:
        with self.lock:
            self._remove_expired()
            file = self.files.get(token)
            return (file.name, file.path.read_bytes()) if file else None

    def remove_expired(self) -> None:
        with self.lock:
            self._remove_expired()

    def _remove_expired(self, needed: int = 0) -> None:
        """Also removes the oldest files until `needed` bytes are free."""
        for token, file in sorted(self.files.items(), key=lambda item: item[1].since):
            full = sum(other.size for other in self.files.values()) + needed > MAX_TOTAL_BYTES
            if full or time.monotonic() - file.since > KEEP_SECONDS:
                file.path.unlink(missing_ok=True)
                del self.files[token]

    def close(self) -> None:
        with self.lock:
            self.files = {}
            if self.folder is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder = None


def safe_name(name: str, target: str = "") -> str:
    """A file name without path and special characters; with a target language, letter.docx becomes letter.de.docx."""
    path = PurePosixPath(name.replace("\\", "/").split("/")[-1])
    stem, suffix = _UNSAFE.sub("_", path.stem).strip(". ")[:80] or "file", _UNSAFE.sub("", path.suffix)[:10]
    language = _UNSAFE.sub("", target)[:20]
    return f"{stem}.{language}{suffix}" if language else f"{stem}{suffix}"
