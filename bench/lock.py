"""Write constraints.txt, one exact version of every package that Heed and its tests need: `make lock`, or `make lock LOCK=--upgrade`.

The versions are resolved by uv for all platforms and for every Python that pyproject.toml allows. Without --upgrade, what is
in constraints.txt stays as it is wherever pyproject.toml allows it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT, LOCK = ROOT / "pyproject.toml", ROOT / "constraints.txt"
FIXED = ("torch==2.13.0",)  # it has builds for the CPU and for CUDA, and every result was measured with it
OF_CUDA = re.compile(
    r"(cuda|nvidia)-"
)  # torch's build for CUDA names their exact versions itself; that for the CPU has none
HEADER = "# Written by `make lock`: exact versions of everything that Heed and its tests need.\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lock", description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    options = parser.parse_args(arguments)
    before = LOCK.read_text("utf-8")
    resolved = resolve("" if options.upgrade else before)
    if resolved is None:
        return 1
    after = locked(resolved)
    LOCK.write_text(after, "utf-8", newline="\n")
    print(f"{LOCK.name} has {len(after.splitlines()) - 1} packages")
    for line in sorted(set(after.splitlines()) ^ set(before.splitlines())):
        print("+" if line in after.splitlines() else "-", line)
    return 0


def resolve(known: str) -> str | None:
    """What uv finds, beginning from known versions; None after its own error message."""
    with tempfile.TemporaryDirectory() as folder:
        fixed, found = Path(folder, "fixed.txt"), Path(folder, "found.txt")
        fixed.write_text("\n".join(FIXED), "utf-8")
        found.write_text(known, "utf-8")  # uv prefers the versions that the file has already
        command = [sys.executable, "-m", "uv", "pip", "compile", PROJECT, "--output-file", found, "--constraint", fixed]
        command += ["--universal", "--all-extras", "--python-version", oldest_python(), "--fork-strategy", "fewest"]
        command += ["--quiet", "--no-header", "--no-annotate"]
        return found.read_text("utf-8") if subprocess.run(command).returncode == 0 else None


def oldest_python() -> str:
    return tomllib.loads(PROJECT.read_text("utf-8"))["project"]["requires-python"].removeprefix(">=")


def locked(resolved: str) -> str:
    """The lines of constraints.txt: names, versions and markers, and nothing of one registry."""
    return HEADER + "".join(f"{line}\n" for line in _packages(resolved.splitlines()))


def _packages(lines: Iterable[str]) -> list[str]:
    plain = (line.partition("#")[0].strip() for line in lines)
    return sorted({line for line in plain if "==" in line and not OF_CUDA.match(line)})


if __name__ == "__main__":
    sys.exit(main())
