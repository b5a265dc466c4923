"""heed doctor: what it finds, and what it says of damage."""

import json
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import torch

from heed.cli import diagnosis as doctor
from heed.version import __version__

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(monkeypatch):
    """What the metadata of heed require, whatever is installed here."""

    def set_to(*lines):
        monkeypatch.setattr(doctor.metadata, "requires", lambda name: list(lines))

    return set_to


def test_a_sound_machine(heed, installed, monkeypatch, tmp_path):
    installed(f"torch>={torch.__version__.partition('+')[0]}", "pyarrow>=999; extra == 'parquet'")
    monkeypatch.setattr(doctor, "LITTLE", 0)
    monkeypatch.setenv("HF_HOME", str(Path.home() / "hub"))
    code, out, err = heed("doctor")
    lines = out.splitlines()
    rows = [line.split(maxsplit=1) for line in lines[2:]]
    assert (code, err, lines[0]) == (0, "", "No problems found.")
    assert [name for name in dict(rows)] == [
        "heed", "python", "packages", "cpu", "gpu", "engine", "cache", "disk", "extra", "variable",
    ]  # fmt: skip
    assert dict(rows)["heed"].startswith(f"{__version__} in ")
    assert dict(rows)["packages"] == f"torch {metadata.version('torch')}"
    assert ["variable", f"HF_HOME=~{Path('/hub')}"] in rows
    assert str(Path.home()) + "/" not in out.replace(str(tmp_path), "").replace(str(ROOT), "")


def test_json_has_the_same(heed, installed):
    installed()
    code, out, _ = heed("doctor", "--json")
    found = json.loads(out)
    assert code == 0 and next(iter(found)) == "problems"
    assert found["heed"]["version"] == __version__ and found["cpu"]["threads"] == torch.get_num_threads()
    assert set(found["engines"]) == {"torch", "ctranslate2", "native", "int8", "CUDA graphs", "fused kernels", "fp8"}


def test_what_is_broken_comes_first_and_fails(heed, installed, monkeypatch):
    installed("torch>=999.1", "no-such-package>=1.2")
    monkeypatch.setattr(doctor, "LITTLE", 1e30)
    monkeypatch.setattr(doctor, "_miscomputes", lambda device: "a matrix product is wrong")
    code, out, _ = heed("doctor")
    lines = [line for line in out.splitlines() if line.startswith("! ")]
    assert code == 1
    assert lines[0] == (
        f"! torch is {metadata.version('torch')}, which is older than 999.1. "
        "What to do: pip install --upgrade 'torch>=999.1'."
    )
    assert lines[1] == "! no-such-package is not installed. What to do: pip install 'no-such-package>=1.2'."
    assert "torch cannot compute on this CPU: a matrix product is wrong." in lines[2]
    assert all("GB left. What to do: remove what is not needed" in line for line in lines[3:]) and len(lines) == 6


def test_little_disk_alone_is_no_failure(heed, installed, monkeypatch):
    installed()
    monkeypatch.setattr(doctor, "LITTLE", 1e30)
    code, out, _ = heed("doctor")
    assert code == 0 and out.startswith("! the disk of the working folder has ")


@pytest.mark.parametrize("mode", [0o600, 0o700])
def test_a_cache_that_is_a_file(heed, installed, tmp_path, mode):
    installed()
    (tmp_path / "cache").write_text("", "utf-8")
    (tmp_path / "cache").chmod(mode)
    code, out, _ = heed("doctor")
    assert code == 1 and "cannot be written. What to do: set HEED_CACHE" in out


def test_the_cache_is_measured(monkeypatch, tmp_path):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    assert doctor._cache([]) == {"folder": str(tmp_path), "bytes": 5, "entries": 1}


def test_a_package_that_does_not_load(monkeypatch, installed):
    installed()

    def fail(name):
        raise ImportError("libcudart.so.12: cannot open shared object file")

    monkeypatch.setattr(doctor.importlib, "import_module", fail)
    problems = []
    doctor._packages(problems)
    assert problems[0].broken and problems[0].what.startswith("torch is installed but does not load: libcudart.so.12")


@pytest.mark.parametrize(
    ("built", "says", "advice"),
    [(None, "is built for the CPU", "install torch for CUDA"), ("12.8", "is built for CUDA 12.8", "update the driver")],
)
def test_a_driver_without_a_gpu_for_torch(monkeypatch, built, says, advice):
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(doctor, "_driver", lambda: "550.1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    problems = []
    doctor._gpu(problems)
    assert not problems[0].broken and "there is an NVIDIA driver (550.1)" in problems[0].what
    assert says in problems[0].what and problems[0].advice.startswith(advice)


@pytest.mark.parametrize(("home", "shown"), [("/u", "~/x"), ("/", "/u/x"), ("/home/me", "/u/x")])
def test_a_path_does_not_tell_who_the_user_is(monkeypatch, home, shown):
    monkeypatch.setattr(doctor.Path, "home", lambda: Path(home))
    assert doctor._private("/u/x") == shown


def test_extras_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(doctor.EXTRAS) == set(extras) - {"docs", "test"}
