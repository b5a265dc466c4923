"""Commands of heed in forked children, and a shim through which their n-th write fails or is their last."""

import builtins
import errno
import gc
import importlib
import io
import multiprocessing
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

CPU_SECONDS, WALL_SECONDS = 60, 900  # of one command; more is a hang
HANGS = (-signal.SIGALRM, -signal.SIGXCPU)  # how such a command ends
KILLED = 77  # the exit code of a child that the shim ends
BLOCK = 10  # sentences that are translated or tagged and written together, instead of 2,000
ERRORS = {"write": errno.ENOSPC, "fsync": errno.EIO}
DATA = "data"  # the folder that commands learn from
TRIED: set[str] = set()  # names of modules that commands have imported
IMPORTED = ("cli", "tasks", "runs", "products", "models", "vocabularies")


class Answer(NamedTuple):
    """What a command has answered; a negative code is a signal."""

    code: int
    out: str
    err: str


class Stop(NamedTuple):
    """What happens at the n-th write, rename, fsync or removal: "kill" ends the child, "fail" fails it, "full" fails all from there on."""

    number: int
    kind: str
    file: str = ""  # only writes to a file of this name count


def warm() -> None:
    """Import what commands need: a child then has it."""
    import ctranslate2  # noqa: F401

    import heed

    for layer in IMPORTED:
        package = importlib.import_module(f"heed.{layer}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    import torch.optim.adamw

    import heed.cli.main

    torch.set_num_threads(1)
    assert heed
    gc.collect()
    gc.freeze()  # children would copy what a collection of theirs marks


def call(words: Sequence[str], folder: Path, stop: Stop | None = None) -> tuple[Answer, int]:
    """Run a command in a folder, with a cache of its own there; its answer, and how many writes it made."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as outside:
        files = [Path(outside) / name for name in ("out", "err", "count", "modules")]
        child = os.fork()
        if not child:
            _run(list(words), folder, files, stop)
        _, status = os.waitpid(child, 0)
        out, err, count, modules = (path.read_text("utf-8", "replace") if path.is_file() else "" for path in files)
        _import_too(modules.split())
        return Answer(os.waitstatus_to_exitcode(status), out, err), int(count or 0)


def _import_too(names: Sequence[str]) -> None:
    """Import what a command has imported: the next child has it."""
    for name in names:
        if name not in TRIED:
            TRIED.add(name)
            with suppress(Exception):
                importlib.import_module(name)


def _run(words: list[str], folder: Path, files: list[Path], stop: Stop | None) -> None:
    """The child: it does not return."""
    code = 99
    try:
        signal.alarm(WALL_SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        for number, path in zip((1, 2), files, strict=False):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        os.environ["HEED_CACHE"] = str(folder / "cache")
        os.environ["COLUMNS"] = "400"
        tempfile.tempdir = str(folder)
        _make_quick()
        shim = Shim(stop, files[2])
        from heed.cli.main import main

        known = {*sys.modules}
        with shim:
            code = main(words)
        with shim.open(files[3], "w") as file:
            file.write("\n".join(sys.modules.keys() - known))
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _make_quick() -> None:
    """Small blocks and validation data, no fonts in pages, and batches made in forks: a new interpreter imports all again."""
    from heed.data.synthetic import phrasebook
    from heed.lab import viewer
    from heed.products import text_batches
    from heed.runs import backtranslate, distill

    backtranslate.BLOCK = distill.BLOCK = text_batches.CHUNK = BLOCK
    phrasebook.write = partial(phrasebook.write, valid=BLOCK)
    viewer.find_fonts, viewer.font_faces = lambda text: None, lambda fonts: ""
    fork = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda method=None: fork


class Shim:
    """Counts every write, rename, fsync, removal and new folder of this process, and stops it at one of them."""

    NAMES = ("replace", "rename", "fsync", "unlink", "rmdir", "mkdir", "truncate")

    def __init__(self, stop: Stop | None, count: Path):
        self.stop, self.count, self.done = stop, str(count), 0
        self.originals = {name: getattr(os, name) for name in self.NAMES}
        self.open = io.open

    def __enter__(self) -> None:
        from safetensors import torch as safetensors

        from heed.models import folder

        for name, original in self.originals.items():
            setattr(os, name, self._counted(name, original))
        os.remove = os.unlink
        io.open = builtins.open = self._opened
        folder.save_file = self._weights(safetensors.save_file)

    def __exit__(self, *error: object) -> None:
        self._note()

    def _note(self) -> None:
        with self.open(self.count, "w") as file:
            file.write(str(self.done))

    def tick(self, what: str, half: Callable[[], Any] = lambda: None, file: str = "") -> None:
        """One more; `half` is what a process that ends in the middle of it has done."""
        if self.stop is not None and self.stop.file not in ("", file):
            return
        self.done += 1
        if self.stop is None or self.done < self.stop.number:
            return
        if self.done > self.stop.number and self.stop.kind != "full":
            return
        if self.stop.kind == "kill":
            half()
            self._note()
            os._exit(KILLED)
        if what in ("unlink", "rmdir"):
            return  # a full disk can still be cleared
        raise OSError(ERRORS.get(what, errno.ENOSPC), os.strerror(ERRORS.get(what, errno.ENOSPC)))

    def _counted(self, name: str, original: Callable) -> Callable:
        def counted(*args: Any, **options: Any) -> Any:
            self.tick(name)
            return original(*args, **options)

        return counted

    def _opened(self, file: Any, mode: str = "r", buffering: int = -1, *args: Any, **options: Any) -> Any:
        """As io.open, but writes can fail. A file that is open by its number is left alone."""
        if isinstance(file, int) or not set(mode) & set("wax+") or buffering == 0:
            return self.open(file, mode, buffering, *args, **options)
        raw = _Raw(file, mode.replace("b", "").replace("t", ""), self)
        buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, *args, **options)

    def _weights(self, save: Callable) -> Callable:
        """Safetensors writes without Python's files: half of a file, or an error of its own kind."""
        from safetensors import SafetensorError

        def saved(tensors: Any, path: Any, metadata: Any = None) -> None:
            def half() -> None:
                save(tensors, path, metadata=metadata)
                with self.open(path, "rb+") as file:
                    file.truncate(Path(path).stat().st_size // 2)

            try:
                self.tick("write", half)
            except OSError as error:
                half()
                raise SafetensorError(f"Error while serializing: I/O error: {error.strerror}") from error
            save(tensors, path, metadata=metadata)

        return saved


class _Raw(io.FileIO):
    """A file of which a write can fail, after half of it."""

    def __init__(self, file: Any, mode: str, shim: Shim):
        super().__init__(file, mode)
        self.shim = shim

    def write(self, data: Any) -> int:
        data = bytes(data)
        self.shim.tick("write", lambda: super(_Raw, self).write(data[: len(data) // 2]), Path(self.name).name)
        return super().write(data)


def copy(source: Path, folder: Path) -> None:
    """Make a folder equal to another one, but for its data, which no command changes."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and path.name != DATA:
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()
    kept = shutil.ignore_patterns(DATA) if (folder / DATA).is_dir() else None
    shutil.copytree(source, folder, ignore=kept, dirs_exist_ok=True)
