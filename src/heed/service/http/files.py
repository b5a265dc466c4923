"""Translated files until they are downloaded, in one temporary folder under random names."""

import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from starlette.concurrency import run_in_threadpool

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PREFIX = "heed-serve-"
KEEP_SECONDS = 600.0
CHUNK_BYTES = 1 << 16
MAX_TOTAL_BYTES = 64 << 20  # the oldest files are removed first
_UNSAFE = re.compile(r"[^\w.\- ]+")


class StoredFile(NamedTuple):
    name: str
    path: Path
    size: int
    since: float


class OpenFile(NamedTuple):
    """A file that is being downloaded."""

    name: str
    size: int
    stream: BinaryIO

    async def chunks(self) -> AsyncIterator[bytes]:
        """Its data in small chunks: a slow reader takes no memory."""
        with self.stream:
            while data := await run_in_threadpool(self.stream.read, CHUNK_BYTES):
                yield data


class FileStore:
    """Files that can be downloaded with a secret token. The folder is created with the first of them. Folders of
    killed services are removed at the start.
    """

    def __init__(self):
        remove_abandoned()
        self.folder: Path | None = None
        self.held: int | None = None  # the open folder, whose lock says that it is in use
        self.files: dict[str, StoredFile] = {}
        self.lock = threading.Lock()

    def put(self, name: str, data: bytes) -> str:
        """Store a file for a while; returns its token."""
        with self.lock:
            if self.folder is None:
                self.folder, self.held = _new_folder()
            self._remove_expired(len(data))
            token = secrets.token_urlsafe(24)
            path = self.folder / secrets.token_hex(16)
            path.write_bytes(data)
            self.files[token] = StoredFile(name, path, len(data), time.monotonic())
            return token

    def open(self, token: str) -> OpenFile | None:
        """A file that can be read to its end even if it is removed meanwhile."""
        with self.lock:
            self._remove_expired()
            file = self.files.get(token)
            return OpenFile(file.name, file.size, file.path.open("rb")) if file else None

    def remove_expired(self) -> None:
        with self.lock:
            self._remove_expired()

    def _remove_expired(self, needed: int = 0) -> None:
        """Also removes the oldest files until `needed` bytes are free."""
        for token, file in sorted(self.files.items(), key=lambda item: item[1].since):
            full = sum(other.size for other in self.files.values()) + needed > MAX_TOTAL_BYTES
            if full or time.monotonic() - file.since > KEEP_SECONDS:
                with suppress(OSError):  # Windows removes no file that is being read; the folder goes with the service
                    file.path.unlink(missing_ok=True)
                del self.files[token]

    def close(self) -> None:
        with self.lock:
            self.files = {}
            if self.folder is not None:
                shutil.rmtree(self.folder, ignore_errors=True)
                if self.held is not None:
                    os.close(self.held)
                self.folder = self.held = None


def _new_folder() -> tuple[Path, int | None]:
    """A temporary folder and, if the system supports it, its lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        if fcntl is None:
            return folder, None
        held = _lock(folder)
        if held is not None and folder.is_dir():
            return folder, held
        if held is not None:  # another service took it for an abandoned one before it was locked
            os.close(held)
        elif folder.is_dir():  # a file system without locks
            return folder, None


def _lock(folder: Path) -> int | None:
    """The folder, open and locked; None if another process has it, or it cannot be locked. A killed process holds no
    lock.
    """
    held = None
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return held
    except OSError:
        if held is not None:
            os.close(held)
        return None


def remove_abandoned() -> None:
    """Remove temporary folders left by killed services of this user: they contain users' texts."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and (held := _lock(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def safe_name(name: str, target: str = "") -> str:
    """A file name without path and special characters; with a target language, letter.docx becomes letter.de.docx."""
    path = PurePosixPath(name.replace("\\", "/").split("/")[-1])
    stem, suffix = _UNSAFE.sub("_", path.stem).strip(". ")[:80] or "file", _UNSAFE.sub("", path.suffix)[:10]
    language = _UNSAFE.sub("", target)[:20]
    return f"{stem}.{language}{suffix}" if language else f"{stem}{suffix}"
