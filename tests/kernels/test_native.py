"""Compiled C code: made once and kept, never taken from others, and what is said where there is no compiler."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from heed.kernels import native, native_text
from heed.kernels.text_model import TextModel
from heed.nn.transformer import gelu_tanh
from tests.kernels.test_int8_text import model


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """An empty cache, and nothing known from before."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HEED_NATIVE", raising=False)
    native.unavailable.cache_clear()
    native.library.cache_clear()
    yield
    native.unavailable.cache_clear()
    native.library.cache_clear()


@pytest.fixture
def compiled():
    if reason := native.unavailable():
        pytest.skip(reason)


def again() -> str | None:
    native.unavailable.cache_clear()
    native.library.cache_clear()
    return native.unavailable()


def test_code_is_compiled_once(compiled, tmp_path, monkeypatch):
    (made,) = (tmp_path / "cache" / "native").glob("text-*.so")

    def fail(*given):
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(native, "compile_to", fail)
    assert again() is None
    made.unlink()
    with pytest.raises(AssertionError, match="it was compiled again"):
        again()


@pytest.mark.parametrize("place", ["folder", "file"])
def test_code_that_others_could_have_written_is_not_run(compiled, tmp_path, place):
    folder = tmp_path / "cache" / "native"
    (path,) = folder.glob("text-*.so")
    path.write_bytes(b"not a library")
    (folder if place == "folder" else path).chmod(0o777)
    assert again() is None, "it was compiled elsewhere"
    assert path.read_bytes() == b"not a library"


def test_no_compiler_no_code(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    assert native.unavailable() == "there is no C compiler (install gcc)"


def test_a_compiler_that_fails_is_reported(monkeypatch, tmp_path):
    compiler = tmp_path / "mycc"
    compiler.write_text("#!/bin/sh\necho 'unknown option -fopenmp' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert native.unavailable() == f"{compiler} does not compile it: unknown option -fopenmp"
    assert not [*(tmp_path / "cache" / "native").iterdir()]


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("HEED_NATIVE", "0")
    assert native.unavailable() == "HEED_NATIVE is 0"


def test_other_systems_run_on_torch(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert native.unavailable() == "C code is compiled on Linux only, and this is darwin"


def test_models_with_other_parts_run_on_torch(compiled):
    own = model("gpt2")
    assert native_text.unsupported(own) is None
    own.stack.layers[1].mlp.body.activation = torch.tanh
    assert native_text.unsupported(own) == "it does not support this GPT2"
    own.stack.layers[1].mlp.body.activation = gelu_tanh
    own.positions = torch.nn.Identity()
    assert native_text.unsupported(own) == "it does not support this GPT2"


@pytest.mark.skipif(native.os.uname().machine != "x86_64", reason="flags of x86")
@pytest.mark.parametrize("machine", ["x86-64", "x86-64-v3"])
def test_cpus_with_shorter_vectors_compute_the_same(compiled, monkeypatch, machine):
    if machine == "x86-64-v3" and "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this CPU has no AVX2")
    monkeypatch.setattr(native, "FLAGS", tuple(f"-march={machine}" if "-march" in f else f for f in native.FLAGS))
    assert again() is None
    with torch.inference_mode():
        for name in ("gpt2", "ctrl"):
            for weights in (native_text.NativeWeights, native_text.NativeInt8Weights):
                made, tokens = native_text.NativeTextModel(model(name), weights), torch.arange(10)[None]
                expected = TextModel(model(name), weights)
                states = [part.start(1) for part in (made, expected)]
                for place in range(10):
                    pairs = zip((made, expected), states, strict=True)
                    found, other = (part.step(tokens[:, place], state) for part, state in pairs)
                    assert (found - other).abs().max() < 1e-3 * other.abs().max()


def test_the_source_compiles_without_a_warning(compiled, tmp_path):
    words = [native.find_compiler(), *native.FLAGS, "-Wall", "-Wextra", "-Werror", "-c", str(native.SOURCE)]
    done = subprocess.run([*words, "-o", str(tmp_path / "code.o")], capture_output=True, text=True)
    assert not done.returncode, done.stderr
