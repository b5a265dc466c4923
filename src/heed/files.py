"""Files and folders that appear complete or not at all, and their hashes."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal


def cache_folder() -> Path:
    """$HEED_CACHE, or ~/.cache/heed: what can be made again."""
    return Path(os.environ.get("HEED_CACHE") or Path.home() / ".cache" / "heed")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path to write to. It is renamed to `path` once its bytes are on the disk, and removed if something fails."""
    part = _part(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield part
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise _with_path(error, path) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def exclusive(path: Path, refusal: str) -> Iterator[None]:
    """Lock a file, which is made if it is not there; the system releases the lock if the process is killed."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with open(path, "ab") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise ValueError(refusal) from None
        except OSError:
            pass  # a file system without locks
        yield


def check_file(path: Path, where: str = "") -> None:
    """Refuse what is no file, and say what it is instead."""
    if path.is_file():
        return
    if path.is_dir():
        raise ValueError(f"{where}{path} is a folder: name a file")
    if path.exists():
        raise ValueError(
            f"{where}{path} is a pipe or a device, and heed reads its files more than once: save the text in a file first"
        )
    raise ValueError(f"{where}{path}: no such file")


def write_bytes(path: Path, data: bytes) -> None:
    with atomic_file(path) as part:
        part.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, values: Any) -> None:
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def atomic_folder(folder: Path, existing: Literal["refuse", "keep", "replace"] = "refuse") -> Iterator[Path]:
    """A folder to write into. It is renamed to `folder` at the end, and removed if something fails.

    An `existing` folder is refused (an empty one is filled), kept (another process made the same first), or replaced.
    """
    if existing == "refuse":
        refuse_existing(folder)
    folder = folder.resolve()  # "." has a name too
    part = _part(folder)
    shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
    part.mkdir(parents=True)
    try:
        yield part
        if existing == "refuse":
            refuse_existing(folder)
        if existing == "replace":
            shutil.rmtree(folder, ignore_errors=True)
        if existing == "refuse" and folder.is_dir():  # it may be someone's working directory: keep it, move the files
            for path in list(part.iterdir()):
                shutil.move(path, folder)
        else:
            _rename(part, folder, existing == "keep")
    except OSError as error:
        raise _with_path(error, folder) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def refuse_existing(folder: Path) -> None:
    """Nothing of the user's is overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists already: choose another folder to write to")


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rename(part: Path, folder: Path, keep: bool) -> None:
    try:
        os.rename(part, folder)
    except OSError:
        if not (keep and folder.is_dir() and any(folder.iterdir())):
            raise


def _with_path(error: OSError, path: Path) -> OSError:
    """The error of a write, which names no file if it comes from one that is open: then it names this one."""
    if error.filename is not None or error.errno is None:
        return error
    place = "HEED_CACHE" if path.is_relative_to(cache_folder().resolve()) else "another place"
    return OSError(f"{path} could not be written: {error.strerror}; make room, or choose {place}")


def _part(path: Path) -> Path:
    """The name of a file or folder until it is complete."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")
