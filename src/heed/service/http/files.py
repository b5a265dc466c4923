"""Translated files until they are fetched: in one temporary folder, under names of our own."""

import re
import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path, PurePosixPath
from typing import NamedTuple

KEPT = 600.0  # seconds
MOST = 64 << 20  # bytes of all files; the oldest go first
_SAFE = re.compile(r"[^\w.\- ]+")


class Kept(NamedTuple):
    name: str
    path: Path
    size: int
    since: float


class Files:
    """Files that wait to be fetched. The folder is made with the first of them."""

    def __init__(self):
        self.folder: Path | None = None
        self.known: dict[str, Kept] = {}
        self.lock = threading.Lock()

    def put(self, name: str, data: bytes) -> str:
        """Keep a file for a while; what it can be asked for with."""
        with self.lock:
            self.folder = self.folder or Path(tempfile.mkdtemp(prefix="heed-serve-"))
            self._tidy(len(data))
            token = secrets.token_urlsafe(24)
            path = self.folder / secrets.token_hex(16)
            path.write_bytes(data)
            self.known[token] = Kept(name, path, len(data), time.monotonic())
            return token

    def get(self, token: str) -> tuple[str, bytes] | None:
        with self.lock:
            self._tidy(0)
            kept = self.known.get(token)
            return (kept.name, kept.path.read_bytes()) if kept else None

    def tidy(self) -> None:
        """Remove what has been kept long enough."""
        with self.lock:
            self._tidy(0)

    def _tidy(self, room: int) -> None:
        for token, kept in sorted(self.known.items(), key=lambda both: both[1].since):
            full = sum(own.size for own in self.known.values()) + room > MOST
            if full or time.monotonic() - kept.since > KEPT:
                kept.path.unlink(missing_ok=True)
                del self.known[token]

    def close(self) -> None:
        with self.lock:
            self.known = {}
            if self.folder is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder = None


def safe_name(name: str, target: str = "") -> str:
    """What a file is called: no path, no signs that mean something. With a target, letter.de.docx of letter.docx."""
    path = PurePosixPath(name.replace("\\", "/").split("/")[-1])
    stem, suffix = _SAFE.sub("_", path.stem).strip(". ")[:80] or "file", _SAFE.sub("", path.suffix)[:10]
    into = _SAFE.sub("", target)[:20]
    return f"{stem}.{into}{suffix}" if into else f"{stem}{suffix}"
