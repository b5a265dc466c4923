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
from contextlib import suppress
from functools import cache
from pathlib import Path

from heed.files import atomic_file, cache_folder

SOURCE = Path(__file__).with_name("text_step.c")
FLAGS = (
    "-std=gnu11", "-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-march=native", "-mprefer-vector-width=512", "-fopenmp", "-fPIC", "-Wno-psabi",
    "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
)  # fmt: skip
PATIENCE = 120  # seconds for the compiler


@cache
def unavailable() -> str | None:
    """Why C code does not run here, or None if it does."""
    if os.environ.get("HEED_NATIVE") == "0":
        return "HEED_NATIVE is 0"
    try:
        library()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return _first_line(str(error))
    return None


@cache
def library() -> ctypes.CDLL:
    """The compiled functions."""
    if sys.platform != "linux":
        raise ValueError(f"C code is compiled on Linux only, and this is {sys.platform}")
    compiler = find_compiler()
    ctypes.CDLL(openmp(), ctypes.RTLD_GLOBAL)  # one pool of threads for torch and this code
    name = f"{SOURCE.stem.removesuffix('_step')}-{key(compiler)}.so"
    with suppress(PermissionError):
        return ctypes.CDLL(str(kept(compiler, name)))
    with tempfile.TemporaryDirectory() as folder:  # a cache that is read-only, or that others can write to
        compile_to(compiler, Path(folder, name))
        return ctypes.CDLL(str(Path(folder, name)))


def find_compiler() -> str:
    """$CC, gcc or cc."""
    for name in filter(None, (os.environ.get("CC"), "gcc", "cc")):
        if found := shutil.which(name):
            return found
    raise ValueError("there is no C compiler (install gcc)")


def openmp() -> str:
    """The OpenMP library that torch has loaded, or the system's."""
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libgomp" in line}
    return min(mapped, default="libgomp.so.1")


def key(compiler: str) -> str:
    """A hash of all that the result depends on: source, compiler, C library and CPU."""
    about = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    features = [line for line in about if line.split(":")[0].strip().lower() in ("flags", "features", "model name")]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
    parts = (SOURCE.read_text("utf-8"), *FLAGS, compiler, version, *platform.libc_ver(), *features)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def kept(compiler: str, name: str) -> Path:
    """The compiled code in the cache. A cache in which others could have put it is refused."""
    folder = cache_folder() / "native"
    folder.mkdir(parents=True, exist_ok=True)
    check_own(folder)
    path = folder / name
    if path.exists():
        check_own(path)
    else:
        with atomic_file(path) as part:
            compile_to(compiler, part)
    return path


def check_own(path: Path) -> None:
    """Refuse what belongs to others or what they can write to."""
    found = path.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others can write to {path}")


def compile_to(compiler: str, path: Path) -> None:
    """Compile the source. OpenMP is not linked: its functions are those that the process has loaded."""
    with tempfile.TemporaryDirectory() as folder:
        part = str(Path(folder, "code.o"))
        for words in ([*FLAGS, "-c", str(SOURCE), "-o", part], ["-shared", part, "-lm", "-o", str(path)]):
            done = subprocess.run([compiler, *words], capture_output=True, text=True, timeout=PATIENCE)
            if done.returncode:
                raise ValueError(f"{compiler} does not compile it: {_first_line(done.stderr)}")
    path.chmod(0o700)


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0]
