"""Checks for heed doctor: versions, CPU, GPU, engines, cache, disk and optional packages, and their problems."""

import importlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from heed.files import cache_folder
from heed.version import __version__

EXTRAS = {  # of pyproject.toml: the module, and what it is for
    "tensorboard": ("tensorboard", "training curves in TensorBoard"),
    "parquet": ("pyarrow", "logs of interactions in Parquet"),
    "audio": ("soundfile", "FLAC, Ogg and MP3 files"),
    "faiss": ("faiss", "recommendation with millions of items (--search faiss)"),
    "ray": ("ray", "bulk work on a Ray cluster"),
    "spark": ("pyspark", "bulk work on a Spark cluster"),
}
PROGRAMS = {"espeak-ng": "heed speak-corpus"}
ENVIRONMENT = (
    "HEED_CACHE", "HEED_NATIVE", "CC", "HF_HOME", "HF_HUB_OFFLINE", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES",
)  # fmt: skip
LITTLE = 2e9  # bytes of free disk


@dataclass(frozen=True)
class Problem:
    """`broken`: heed, or part of it, does not work. `advice` says what to do."""

    what: str
    advice: str
    broken: bool = False


def examine() -> dict[str, Any]:
    """All sections by name, problems first."""
    problems: list[Problem] = []
    found = {
        "heed": _heed(),
        "packages": _packages(problems),
        "cpu": _cpu(problems),
        "gpu": _gpu(problems),
        "engines": {},
        "cache": _cache(problems),
        "disk": _disk(problems),
        "extras": _extras(),
        "environment": {name: _private(os.environ[name]) for name in ENVIRONMENT if name in os.environ},
    }
    found["engines"] = _engines(bool(found["gpu"].get("devices")))
    problems.sort(key=lambda problem: not problem.broken)
    return {"problems": list(map(asdict, problems)), **found}


def _private(text: str) -> str:
    """A path without the user's name."""
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text


def _heed() -> dict[str, str]:
    return {
        "version": __version__,
        "folder": _private(str(Path(__file__).parents[1])),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def _packages(problems: list[Problem]) -> dict[str, str]:
    """The versions of Heed's dependencies; one that is missing, too old or does not load is a problem."""
    found: dict[str, str] = {}
    for name, lowest in _requirements():
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
            problems.append(Problem(f"{name} is not installed.", f"pip install '{name}>={lowest}'", broken=True))
            continue
        if _numbers(found[name]) < _numbers(lowest):
            what = f"{name} is {found[name]}, which is older than {lowest}."
            problems.append(Problem(what, f"pip install --upgrade '{name}>={lowest}'", broken=True))
    for module in ("torch", "sentencepiece", "ctranslate2"):  # those with libraries of their own
        try:
            importlib.import_module(module)
        except (ImportError, OSError) as error:
            if find_spec(module) is not None:
                what = f"{module} is installed but does not load: {_private(' '.join(str(error).split()))}"
                problems.append(Problem(what, f"pip install --force-reinstall {module}", broken=True))
    return found


def _requirements() -> Iterator[tuple[str, str]]:
    """The requirements of the installed package on this system, with lower bounds; empty if heed is not installed."""
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires("heed") or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        own = Requirement(line)
        if own.marker is None or own.marker.evaluate({"extra": ""}):
            yield own.name, next((one.version for one in own.specifier if one.operator == ">="), "0")


def _numbers(version: str) -> tuple[int, ...]:
    from packaging.version import Version

    return Version(version).release


def _cpu(problems: list[Problem]) -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {"name": _cpu_name(), "cores": cores, "memory_gb": _memory()}
    if "torch" in sys.modules:
        import torch

        able = torch.backends.cpu.get_cpu_capability()
        found |= {"threads": torch.get_num_threads(), "instructions": able}
        if wrong := _miscomputes("cpu"):
            advice = "pip install --force-reinstall torch"
            problems.append(Problem(f"torch cannot compute on this CPU: {wrong}.", advice, broken=True))
    return found


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8", "replace").splitlines() if info.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):  # Windows has none of these
        return None


def _gpu(problems: list[Problem]) -> dict[str, Any]:
    if "torch" not in sys.modules:
        return {"devices": [], "why": "torch does not load"}
    import torch

    driver = _driver()
    if not torch.cuda.is_available():
        built = torch.version.cuda
        why = f"torch {torch.__version__} is built for {f'CUDA {built}' if built else 'the CPU'}"
        if driver and os.environ.get("CUDA_VISIBLE_DEVICES") != "":
            advice = (
                "update the driver"
                if built
                else "install torch for CUDA (docs/troubleshooting.md, The GPU is not used)"
            )
            problems.append(Problem(f"torch sees no GPU, but there is an NVIDIA driver ({driver}): {why}.", advice))
        return {"devices": [], "driver": driver, "why": why}
    devices = []
    for index in range(torch.cuda.device_count()):
        own = torch.cuda.get_device_properties(index)
        able = f"{own.major}.{own.minor}"
        devices.append({"name": own.name, "memory_gb": round(own.total_memory / 1e9, 1), "capability": able})
        if wrong := _miscomputes(f"cuda:{index}"):
            advice = "use --device cpu; update the driver, or install torch for this GPU"
            problems.append(Problem(f"cuda:{index} ({own.name}) cannot compute: {wrong}.", advice, broken=True))
    return {"devices": devices, "driver": driver, "cuda": torch.version.cuda}


def _miscomputes(device: str) -> str:
    """What is wrong with a matrix product on a device; empty if it is correct."""
    import torch

    try:
        product = torch.full((8, 8), 2.0, device=device) @ torch.full((8, 8), 3.0, device=device)
        return "" if bool((product == 48).all()) else "a matrix product is wrong"
    except RuntimeError as error:
        return str(error).splitlines()[0]


def _driver() -> str | None:
    """The version of the NVIDIA driver, if any."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    words = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(done.stdout.split()), None)


def _engines(gpu: bool) -> dict[str, str]:
    """Which engines can run a model here, and why others cannot."""
    found = {"torch": "yes" if "torch" in sys.modules else "no: it does not load"}
    found["ctranslate2"] = "no: it does not load"
    if "ctranslate2" in sys.modules:
        import ctranslate2

        found["ctranslate2"] = f"yes: {', '.join(sorted(ctranslate2.get_supported_compute_types('cpu')))}"
    if "torch" in sys.modules:
        from heed.kernels import int8, native

        lacking = native.unavailable()
        found["native"] = f"no: {lacking}" if lacking else "yes: generated text, in C"
        lacking = int8.unavailable()
        found["int8"] = f"no: {lacking}" if lacking else "yes: images and generated text"
    if not gpu:
        return found | dict.fromkeys(("CUDA graphs", "fused kernels", "fp8"), "no: there is no GPU")
    import torch

    from heed.kernels import fp8
    from heed.products.translator.engines.cuda import supports_device
    from heed.runs.execution_plan import gpu_multiplies_bfloat16

    able = supports_device(torch.device("cuda"))
    found["CUDA graphs"] = "yes: searches in bfloat16" if able else "no: the GPU is older than Ampere (8.0)"
    lacking = "Triton is not installed (pip install triton)" if find_spec("triton") is None else ""
    lacking = lacking or ("" if gpu_multiplies_bfloat16() else "the GPU has no bfloat16 matrix products")
    found["fused kernels"] = f"no: {lacking}" if lacking else "yes: training in bfloat16"
    lacking = fp8.unavailable(torch.device("cuda"))
    return found | {"fp8": f"no: {lacking}" if lacking else "yes: classifying images"}


def _cache(problems: list[Problem]) -> dict[str, Any]:
    folder = cache_folder()
    found = {"folder": _private(str(folder)), "bytes": 0, "entries": 0}
    if not folder.exists():
        return found
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        advice = "set HEED_CACHE to a folder that can be written"
        problems.append(Problem(f"the cache {found['folder']} cannot be written.", advice, broken=True))
    if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK):
        paths = [Path(root) / name for root, _, names in os.walk(folder) for name in names]
        found["bytes"] = sum(path.lstat().st_size for path in paths if path.exists())
        found["entries"] = sum(1 for _ in folder.iterdir())
    return found


def _disk(problems: list[Problem]) -> dict[str, int]:
    """Free bytes for the working folder, the cache and temporary files."""
    import tempfile

    cache = cache_folder()
    nearest = next((path for path in (cache, *cache.absolute().parents) if path.is_dir()), Path("/"))
    free = {}
    for name, path in (
        ("working folder", Path(".")),
        ("cache", nearest),
        ("temporary files", Path(tempfile.gettempdir())),
    ):
        free[name] = shutil.disk_usage(path).free
        if free[name] < LITTLE:
            advice = "remove what is not needed, or use another disk (--out, HEED_CACHE, TMPDIR)"
            problems.append(Problem(f"the disk of the {name} has {free[name] / 1e9:.1f} GB left.", advice))
    return free


def _extras() -> dict[str, str]:
    """Optional packages: whether they are installed, and what they are for."""
    found = {}
    for extra, (module, purpose) in EXTRAS.items():
        there = find_spec(module) is not None
        found[module] = f"yes, for {purpose}" if there else f"no, for {purpose}: pip install 'heed[{extra}]'"
    for program, purpose in PROGRAMS.items():
        found[program] = f"{'yes' if shutil.which(program) else 'no'}, for {purpose}"
    return found
