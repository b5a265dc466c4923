"""C code for the CPU, which is compiled for this machine at its first use and kept as $HEED_CACHE/native/text-KEY.so.

Where there is no compiler, or HEED_NATIVE is 0, everything runs on torch.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

from heed.files import cache_folder

SOURCE = Path(__file__).with_name("text_step.c")
FLAGS = (
    "-std=gnu11", "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native", "-fopenmp", "-fPIC",
    "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi",
)  # fmt: skip
WIDE = ("-mprefer-vector-width=512",) if platform.machine() == "x86_64" else ()
PATIENCE = 120  # seconds for the compiler
DIGEST = 32  # bytes of a hash at the end of a library, where the system does not look
LOCK = threading.RLock()  # one thread compiles, others wait


def unavailable() -> str | None:
    """Why C code does not run here, or None if it does."""
    with LOCK:
        return opened()[1]


def library() -> ctypes.CDLL:
    """The compiled functions."""
    with LOCK:
        found, reason = opened()
    if found is None:
        raise RuntimeError(reason)
    return found


@cache
def opened() -> tuple[ctypes.CDLL | None, str | None]:
    """The library, or why there is none."""
    if os.environ.get("HEED_NATIVE") == "0":
        return None, "HEED_NATIVE is 0"
    if sys.platform != "linux":
        return None, f"C code is compiled on Linux only, and this is {sys.platform}"
    try:
        return _open(find_compiler()), None
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return None, _first_line(str(error))


def _open(compiler: str) -> ctypes.CDLL:
    """From the cache or, where there is none that can be used, compiled now."""
    ctypes.CDLL(openmp(), ctypes.RTLD_GLOBAL)  # one pool of threads for torch and this code
    kept = cache_folder() / "native" / f"{SOURCE.stem.removesuffix('_step')}-{key(compiler)}.so"
    with suppress(OSError):  # there is none, it is damaged, or it belongs to others
        return load(kept)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, kept.name)
        compile_to(compiler, made)
        with suppress(OSError):  # the disk is full or read-only
            keep(made, kept)
            return load(kept)
        return load(made)


def find_compiler() -> str:
    """$CC, gcc or cc."""
    for name in filter(None, (os.environ.get("CC"), "gcc", "cc")):
        if found := shutil.which(name):
            return found
    raise ValueError("there is no C compiler (install gcc)")


def openmp() -> str:
    """The OpenMP library that torch has loaded, or the system's."""
    lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    mapped = {line.split(maxsplit=5)[-1] for line in lines if "/libgomp" in line}
    near = str(Path(torch.__file__).parent)  # other packages may bring one too
    return min(mapped, key=lambda path: (not path.startswith(near), path), default="libgomp.so.1")


def key(compiler: str) -> str:
    """A hash of all that the result depends on: source, compiler, C library and CPU."""
    about = Path("/proc/cpuinfo").read_text("utf-8", "replace").split("\n\n")[0].splitlines()
    features = [line for line in about if line.split(":")[0].strip().lower() in ("flags", "features", "model name")]
    version = subprocess.run(
        [compiler, "--version"], capture_output=True, encoding="utf-8", errors="replace", timeout=PATIENCE
    ).stdout
    parts = (SOURCE.read_text("utf-8"), *FLAGS, *WIDE, compiler, version, *platform.libc_ver(), *features)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def load(path: Path) -> ctypes.CDLL:
    """Open a library that nobody else can have written. What is checked is what is opened, whatever happens to its path.

    The file stays open: a process knows its libraries by their names, and so the number must not be used again.
    """
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        found = os.fstat(number)
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"others can write to {path}")
        with os.fdopen(os.dup(number), "rb") as file:
            data = file.read()
        if hashlib.sha256(data[:-DIGEST]).digest() != data[-DIGEST:]:  # to open half a library ends the process
            raise OSError(f"{path} is damaged")
        return ctypes.CDLL(f"/proc/self/fd/{number}")
    except OSError:
        os.close(number)
        raise


def keep(made: Path, path: Path) -> None:
    """Copy a library into the cache, where only its user can write to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, part = tempfile.mkstemp(prefix=path.name, dir=path.parent)  # of mode 600
    try:
        with os.fdopen(number, "wb") as file:
            file.write(made.read_bytes())
        os.replace(part, path)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise


def compile_to(compiler: str, path: Path) -> None:
    """Compile the source. OpenMP is not linked: its functions are those that the process has loaded."""
    part = str(path.with_suffix(".o"))
    for words in ([*FLAGS, *WIDE, "-c", str(SOURCE), "-o", part], ["-shared", part, "-lm", "-o", str(path)]):
        done = subprocess.run(
            [compiler, *words], capture_output=True, encoding="utf-8", errors="replace", timeout=PATIENCE
        )
        if done.returncode:
            raise ValueError(f"{compiler} does not compile it: {_first_line(done.stderr)}")
    path.write_bytes(path.read_bytes() + hashlib.sha256(path.read_bytes()).digest())
    path.chmod(0o700)


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0]
