"""Install the lowest versions that pyproject.toml allows, and run tests that use each of them: `make check-lowest`."""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from bench.environment import ROOT, Environment, uv
from bench.lock import PROJECT, oldest_python

# each dependency is used by one of these
TESTS = (
    "nn/test_attention.py", "kernels/test_residual_norm.py", "vocabularies", "convert/test_tokenizers.py", "convert/test_hub.py",
    "convert/test_ctranslate2.py", "convert/test_weights.py", "evaluation/test_translation_scores.py", "lab/test_look_fonts.py",
    "lab/test_look_pictures.py", "service/http/test_detect.py", "service/http/test_libretranslate.py", "service/http/test_v1.py",
    "service/http/test_openapi.py", "service/http/test_connections.py", "service/http/test_files.py", "cli/test_verbs.py",
    "training/test_report.py", "data/test_readers.py", "runs/test_resume.py",
)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.lowest", description=__doc__)
    parser.add_argument("tests", nargs="*", help="tests to run instead, as pytest names them")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="where to install (default: a folder that is removed)"
    )
    options = parser.parse_args(arguments)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="heed-lowest-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        versions = folder / "lowest.txt"
        compiled = [
            "--output-file",
            str(versions),
            "--python-version",
            oldest_python(),
            "--resolution",
            "lowest-direct",
        ]
        uv("pip", "compile", str(PROJECT), "--all-extras", "--quiet", "--no-header", "--no-annotate", *compiled)
        if wrong := not_lowest(versions.read_text("utf-8")):
            print(
                f"other requirements need higher versions than pyproject.toml says: {', '.join(wrong)}", file=sys.stderr
            )
            return 1
        environment = Environment(folder / "environment", folder / "home")
        environment.install("--requirement", str(versions))
        environment.install("--no-deps", "--editable", str(ROOT))
        tests = options.tests or [str(ROOT / "tests" / name) for name in TESTS]
        # older packages may warn of newer ones that they use, which is no fault of ours
        command = [
            "-m",
            "pytest",
            "-q",
            "-W",
            "default",
            "-p",
            "no:cacheprovider",
            "-m",
            "not long",
            "--rootdir",
            str(ROOT),
        ]
        pytest = environment.command("python", *command, *tests)
        variables = environment.environment()
        del variables["PYTHONSAFEPATH"]  # some tests start processes that import from tests/
        return subprocess.run(pytest, cwd=ROOT, env=variables).returncode
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def not_lowest(resolved: str) -> list[str]:
    """The requirements whose lower bound is not what was resolved, so that it would not be tried."""
    versions = dict(re.findall(r"^([\w.-]+)==(\S+)", resolved, re.MULTILINE))
    return [
        f"{name}>={bound} (it is {versions[name]})"
        for name, bound in bounds()
        if name in versions and not same(bound, versions[name])
    ]


def bounds() -> list[tuple[str, str]]:
    """The name and the lower bound of every requirement, those of the extras included."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    lines = sum(project["optional-dependencies"].values(), project["dependencies"])
    found = [re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", line) for line in lines]
    return [(re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]) for match in found]


def same(bound: str, version: str) -> bool:
    """Whether 0.2 and 0.2.0 are one version."""
    return re.sub(r"(\.0)+$", "", bound) == re.sub(r"(\.0)+$", "", version)


if __name__ == "__main__":
    sys.exit(main())
