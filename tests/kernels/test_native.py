"""Compiled C code: made once and kept, never taken from others, and what is said where there is no compiler."""

import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from heed.kernels import native, native_text
from heed.kernels.text_model import TextModel
from heed.nn.transformer import gelu_tanh
from tests.kernels.test_int8_text import model

linux = pytest.mark.skipif(sys.platform != "linux", reason="C code is compiled on Linux only")


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    """An empty cache, and nothing known from before."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HEED_NATIVE", raising=False)
    native.opened.cache_clear()
    yield
    native.opened.cache_clear()


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> tuple[str | None, Path]:
    """Why there is none, or what the compiler makes."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(folder))
        native.opened.cache_clear()
        reason = native.unavailable()
    return reason, next(folder.glob("native/*.so"), folder)


@pytest.fixture
def compiled(library, monkeypatch):
    """Code in the cache of the test, by a compiler that is quick, since it has compiled it before."""
    reason, path = library
    if reason:
        pytest.skip(reason)
    monkeypatch.setattr(native, "compile_to", lambda compiler, made: shutil.copy(path, made))
    assert native.unavailable() is None


def again() -> str | None:
    native.opened.cache_clear()
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


@pytest.mark.parametrize("fault", ["damaged", "others can write", "a link"])
def test_code_that_is_damaged_or_could_come_from_others_is_compiled_again(compiled, tmp_path, fault):
    (path,) = (tmp_path / "cache" / "native").glob("text-*.so")
    made = path.read_bytes()
    path.unlink()  # this process has it in memory
    if fault == "a link":
        (tmp_path / "elsewhere").write_bytes(made)
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_bytes(made if fault == "others can write" else made[:1000])
        path.chmod(0o777 if fault == "others can write" else 0o700)
    with pytest.raises(OSError, match=None if fault == "a link" else fault):
        native.load(path)
    assert again() is None
    assert not path.is_symlink() and path.stat().st_mode & 0o077 == 0 and len(path.read_bytes()) == len(made)


def test_any_umask_leaves_a_file_that_is_used_again(compiled, tmp_path, monkeypatch):
    (path,) = (tmp_path / "cache" / "native").glob("text-*.so")
    path.unlink()
    before = os.umask(0o002)
    try:
        assert again() is None
    finally:
        os.umask(before)
    monkeypatch.setattr(native, "compile_to", lambda *given: pytest.fail("it was compiled again"))
    assert again() is None


def test_without_a_place_to_keep_it_code_is_compiled_for_this_process(compiled, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder", "utf-8")
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "file"))
    assert again() is None

    def full(*given):
        raise OSError(30, "Read-only file system")

    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(native, "keep", full)
    assert again() is None and not (tmp_path / "other").exists()


def test_threads_wait_for_one_that_compiles(compiled, tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "other"))
    native.opened.cache_clear()
    compile_to, calls = native.compile_to, []

    def count(*given):
        calls.append(given)
        compile_to(*given)

    monkeypatch.setattr(native, "compile_to", count)
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: native.unavailable(), range(4))] == [None] * 4
    assert len(calls) == 1


@linux
def test_no_compiler_no_code(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    assert native.unavailable() == "there is no C compiler (install gcc)"


@linux
def test_a_compiler_that_fails_is_reported(monkeypatch, tmp_path):
    compiler = tmp_path / "mycc"
    compiler.write_text("#!/bin/sh\necho 'unknown option -fopenmp' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert native.unavailable() == f"{compiler} does not compile it: unknown option -fopenmp"
    assert not (tmp_path / "cache" / "native").exists()


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
    up = own.stack.layers[1].mlp.body.up
    own.stack.layers[1].mlp.body.up = torch.nn.Linear(up.in_features, 2 * up.out_features)
    assert native_text.unsupported(own) == "it does not support this GPT2"
    own.stack.layers[1].mlp.body.up = up
    assert native_text.unsupported(own) is None
    own.positions = torch.nn.Identity()
    assert native_text.unsupported(own) == "it does not support this GPT2"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86")
@pytest.mark.parametrize("machine", ["x86-64", "x86-64-v3"])
def test_cpus_with_shorter_vectors_compute_the_same(library, monkeypatch, machine):
    if library[0]:
        pytest.skip(library[0])
    if machine == "x86-64-v3" and "avx2" not in Path("/proc/cpuinfo").read_text("utf-8"):
        pytest.skip("this CPU has no AVX2")
    monkeypatch.setattr(native, "FLAGS", tuple(f"-march={machine}" if "-march" in f else f for f in native.FLAGS))
    usual = native.load(library[1])
    assert again() is None and native.library()._handle != usual._handle
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
