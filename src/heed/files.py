"""Files and folders that appear complete or not at all, and their hashes."""

import glob
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

T = TypeVar("T")
WINDOWS = os.name == "nt"
TRIES = 20  # of a rename on Windows, a tenth of a second apart
LOCKED_BYTE = 1 << 30
SUMS = "sums.json"  # in a folder of the cache: the hashes of its other files

# what wrong values lead to
DAMAGES = (TypeError, AttributeError, LookupError, ArithmeticError, UnicodeError, RecursionError)


def cache_folder() -> Path:
    """$HEED_CACHE, or ~/.cache/heed: files that can be regenerated."""
    return Path(os.environ.get("HEED_CACHE") or Path.home() / ".cache" / "heed")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path to write to. It is renamed to `path` once its bytes are on disk, and removed if something fails."""
    part = _part(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    try:
        yield part
        _sync(part)
        _when_free(lambda: os.replace(part, path))
        sync_folder(path.parent)
    except OSError as error:
        raise _with_path(error, path) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def exclusive(path: Path, refusal: str) -> Iterator[None]:
    """Lock a file, which is created if missing; the system releases the lock if the process is killed."""
    with open(path, "ab") as file:
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):
            raise ValueError(refusal) from None
        except OSError:
            pass  # a file system without locks
        yield


def check_file(path: Path, where: str = "") -> None:
    """Refuse anything that is not a file, and say what it is."""
    if path.is_file():
        return
    if path.is_dir():
        raise ValueError(f"{where}{path} is a folder: give a file")
    if path.exists():
        raise ValueError(
            f"{where}{path} is a pipe or a device, and heed reads files more than once: save it as a file first"
        )
    raise ValueError(f"{where}{path}: no such file")


@contextmanager
def damage_reported(what: str) -> Iterator[None]:
    """Report errors in untrusted files as damage of `what`. They may contain any value anywhere, and each library
    that reads them raises its own errors.
    """
    try:
        yield
    except Exception as error:
        if type(error) is not Exception and not isinstance(error, DAMAGES):  # a ValueError says what is wrong
            raise
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ValueError(f"{what} is damaged or in the wrong format ({why}): copy it again") from error


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

    An `existing` folder is refused (an empty one is filled), kept (another process created the same first), or
    replaced.
    """
    if existing == "refuse":
        refuse_existing(folder)
    folder = folder.resolve()  # "." has a name too
    part = _part(folder)
    shutil.rmtree(part, ignore_errors=True)
    _remove_abandoned(folder)
    part.mkdir(parents=True)
    try:
        yield part
        for path in part.rglob("*"):
            sync_folder(path) if path.is_dir() else _sync(path)
        sync_folder(part)
        if existing == "refuse":
            refuse_existing(folder)
        if existing == "replace":
            shutil.rmtree(folder, ignore_errors=True)
        if existing == "refuse" and folder.is_dir():  # it may be someone's working directory: keep it, move the files
            for path in list(part.iterdir()):
                shutil.move(path, folder)
        else:
            _rename(part, folder, existing == "keep")
        sync_folder(folder.parent)
    except OSError as error:
        raise _with_path(error, folder) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """A temporary folder next to `path`, named after it, so that what a killed process has left there is removed."""
    _remove_abandoned(path)
    part = _part(path)
    part.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=part, ignore_cleanup_errors=True) as made:  # mapped files stay on Windows
            yield Path(made)
    finally:
        with suppress(OSError):  # this process uses it for something else too
            part.rmdir()


def refuse_existing(folder: Path) -> None:
    """The user's files are never overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} already exists: choose another folder")


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def json_digest(values: Any) -> str:
    """A hash of plain values, which a file can state about itself."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def write_sums(folder: Path) -> None:
    """Write the hashes of a folder's files next to them."""
    write_json(folder / SUMS, _sums(folder, [path.name for path in folder.iterdir() if path.name != SUMS]))


def check_sums(folder: Path) -> bool:
    """Verify a folder's files against their hashes; ValueError names one that differs. False: an earlier version
    wrote no hashes.
    """
    if not (folder / SUMS).is_file():
        return False
    try:
        stated = dict(json.loads((folder / SUMS).read_text("utf-8")))
        found = _sums(folder, stated)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"its checksums cannot be verified: {error}") from error
    if wrong := [name for name in stated if stated[name] != found[name]]:
        raise ValueError(f"{wrong[0]} has changed since it was written")
    return True


def open_checked(opened: Callable[[Path], T], folder: Path) -> T:
    """Verify what another process opened from the cache, as this process sees it: it may run on another machine."""
    try:
        check_sums(folder)
    except ValueError as error:
        raise ValueError(f"{folder} is damaged ({error}): remove it to prepare it again") from error
    return opened(folder)


def move_away(folder: Path) -> None:
    """Remove a damaged cache folder at once, so that another can take its place."""
    aside = _part(folder)
    try:
        os.rename(folder, aside)
    except FileNotFoundError:
        return  # another process has done so
    shutil.rmtree(aside, ignore_errors=True)


def _sums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    names = sorted(names)
    with ThreadPoolExecutor(4) as threads:  # hashing releases the interpreter's lock
        return dict(zip(names, threads.map(lambda name: sha256(folder / name), names), strict=True))


def _lock(file: BinaryIO) -> None:
    """Lock an open file for this process, or raise PermissionError or BlockingIOError if another has it."""
    if not WINDOWS:
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    import msvcrt

    file.seek(
        LOCKED_BYTE
    )  # Windows lets no other process read what is locked, so it is a byte that the file does not have
    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)


def _when_free(rename: Callable[[], None]) -> None:
    """Rename. Windows refuses while another program, such as a virus scanner, has the file open: then retry for a
    while.
    """
    for _ in range(TRIES if WINDOWS else 0):
        with suppress(PermissionError):
            return rename()
        time.sleep(0.1)
    rename()


def _sync(path: Path) -> None:
    """Wait until the bytes of a file are on disk."""
    with open(path, "rb+") as file:  # Windows refuses this of a file that is open for reading only
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, if the system supports it."""
    with suppress(OSError):  # Windows opens no folder, and some file systems sync none
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _rename(part: Path, folder: Path, keep: bool) -> None:
    try:
        _when_free(lambda: os.rename(part, folder))
    except OSError:
        if not (keep and folder.is_dir() and any(folder.iterdir())):
            raise


def _with_path(error: OSError, path: Path) -> OSError:
    """A write error that names this file: errors of open files name none."""
    if error.filename is not None or error.errno is None:
        return error
    place = "HEED_CACHE" if path.is_relative_to(cache_folder().resolve()) else "another place"
    return OSError(f"{path} could not be written: {error.strerror}; free some disk space, or choose {place}")


def _part(path: Path) -> Path:
    """The name of a file or folder until it is complete."""
    return path.with_name(f".{path.name}.{_machine()}.{os.getpid()}.part")


def _machine() -> str:
    """The machine these process ids belong to: several machines may share a folder."""
    return re.sub(r"\W", "-", platform.node())[:32]


def _remove_abandoned(path: Path) -> None:
    """Remove unfinished copies of the same file or folder left by killed processes of this machine."""
    if WINDOWS:  # it would end the process that is asked for
        return
    before = f".{path.name}.{_machine()}."
    for part in path.parent.glob(f"{glob.escape(before)}*.part"):
        number = part.name.removeprefix(before).removesuffix(".part")
        if number.isascii() and number.isdigit() and not _is_running(int(number)):
            shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user
        return True
    return True
