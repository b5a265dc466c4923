"""What differs on Windows and macOS, as far as Linux can tell: missing modules, encodings, line ends, locks, renames."""

import ast
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from heed import files
from heed.runs import stopping
from heed.service.http import memory_limit

ROOT = Path(__file__).parent.parent
SOURCES = [path for folder in ("src/heed", "recipes") for path in sorted((ROOT / folder).rglob("*.py"))]
IMPORT_WITHOUT = """
import builtins, importlib, os, pkgutil, signal
import ctranslate2, fastapi, huggingface_hub, matplotlib.pyplot, py3langid, sacrebleu, torch, transformers, uvicorn
ordinary = builtins.__import__
def as_on_windows(name, globals=None, *rest, **more):
    if name in ("fcntl", "resource", "pwd", "termios", "uvloop", "triton") and (globals or {}).get("__name__", "").startswith("heed"):
        raise ImportError(f"Windows has no {name}", name=name)
    return ordinary(name, globals, *rest, **more)
builtins.__import__ = as_on_windows
for module, names in ((os, "fork register_at_fork getuid nice O_DIRECTORY O_NOFOLLOW"), (signal, "SIGHUP SIGKILL SIGUSR1")):
    for name in names.split():
        delattr(module, name)
import heed
count = 0
for found in pkgutil.walk_packages(heed.__path__, "heed."):
    if found.name == "heed.__main__":
        continue
    try:
        importlib.import_module(found.name)
        count += 1
    except ImportError as error:  # Triton is for Linux, and what needs it is imported where it is used
        if error.name != "triton" or not any(part in found.name for part in ("kernels", "cuda", "accelerated")):
            raise
print(count)
"""


def test_every_module_is_imported_without_what_only_unix_has():
    done = subprocess.run([sys.executable, "-c", IMPORT_WITHOUT], capture_output=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": str(ROOT / "src")})  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 300


def calls(path: Path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield node, name, {keyword.arg: keyword.value for keyword in node.keywords}


def wrong(node: ast.Call, name: str, keywords: dict[str | None, ast.expr]) -> str | None:
    """What a call that reads or writes text leaves to the system."""
    method, given = isinstance(node.func, ast.Attribute), len(node.args)
    if name == "read_text" and method and given == 0 and "encoding" not in keywords:
        return "encoding"
    if name == "write_text" and method and given < 3:  # heed.files.write_text is a function
        return "encoding" if given == 1 and "encoding" not in keywords else None if "newline" in keywords else "newline"
    if name == "open" and (not method or (node.args and isinstance(node.args[0], ast.Constant))):
        mode = (
            node.args[0 if method else 1] if given > (0 if method else 1) else keywords.get("mode", ast.Constant("r"))
        )
        if not isinstance(mode, ast.Constant) or "b" in str(mode.value):
            return None
        if "encoding" not in keywords:
            return "encoding"
        return "newline" if set(mode.value) & set("wax") and "newline" not in keywords else None
    if "text" in keywords and name in ("run", "Popen", "check_output") and "encoding" not in keywords:
        return "encoding"
    return None


def test_no_text_depends_on_the_encoding_and_the_line_ends_of_the_system():
    found = [
        f"{path.relative_to(ROOT)}, line {node.lineno}: {name} without {missing}="
        for path in SOURCES for node, name, keywords in calls(path)
        if (missing := wrong(node, name, keywords))
    ]  # fmt: skip
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("open(p)", "encoding"), ("open(p, 'rb')", None), ("open(p, encoding='utf-8')", None), ("p.read_text()", "encoding"),
        ("open(p, 'w', encoding='utf-8')", "newline"), ("p.write_text(t)", "encoding"), ("p.write_text(t, 'utf-8')", "newline"),
        ("p.open('w', encoding='utf-8', newline='')", None), ("run(c, text=True)", "encoding"), ("write_text(p, t)", None),
    ],
)  # fmt: skip
def test_the_rule_sees_what_is_missing(code, missing, tmp_path):
    (tmp_path / "code.py").write_text(code, "utf-8")
    assert wrong(*next(calls(tmp_path / "code.py"))) == missing


@pytest.fixture
def windows(monkeypatch):
    """A Windows as far as heed.files sees it; its msvcrt locks what is not locked yet."""
    locked = set()

    def locking(handle, mode, count):
        key = (os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR), count)
        if key in locked:
            raise PermissionError(13, "Permission denied")
        locked.add(key)

    monkeypatch.setattr(files, "WINDOWS", True)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    return locked


def test_windows_locks_a_byte_that_the_file_does_not_have(windows, tmp_path):
    with files.exclusive(tmp_path / "lock", "taken"):
        assert {place[1:] for place in windows} == {(files.LOCKED_BYTE, 1)}
        with pytest.raises(ValueError, match="taken"), files.exclusive(tmp_path / "lock", "taken"):
            pass
    assert (tmp_path / "lock").stat().st_size == 0


def test_windows_tries_again_while_a_file_is_open_elsewhere(windows, tmp_path, monkeypatch):
    refusals, waits, replace = [1, 2, 3], [], os.replace

    def busy(*paths):
        if refusals:
            raise PermissionError(refusals.pop(), "open elsewhere")
        replace(*paths)

    monkeypatch.setattr(files.time, "sleep", waits.append)
    monkeypatch.setattr(os, "replace", busy)
    files.write_text(tmp_path / "a.txt", "하나\n")
    assert (tmp_path / "a.txt").read_bytes() == "하나\n".encode() and len(waits) == 3
    refusals += [13] * (files.TRIES + 1)
    with pytest.raises(OSError, match="could not be written"):
        files.write_text(tmp_path / "a.txt", "둘\n")
    assert (tmp_path / "a.txt").read_bytes() == "하나\n".encode()


def test_elsewhere_a_refused_rename_is_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(PermissionError(13, "no")))
    monkeypatch.setattr(files.time, "sleep", pytest.fail)
    with pytest.raises(OSError, match="could not be written"):
        files.write_text(tmp_path / "a.txt", "")


def test_signals_are_those_that_the_system_has(monkeypatch):
    monkeypatch.delattr(signal, "SIGHUP")
    monkeypatch.setattr(signal, "SIGBREAK", 21, raising=False)
    assert stopping._signals() == [signal.SIGINT, signal.SIGTERM, 21]


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1), ("freebsd14", 1024)])
def test_a_process_ends_itself_where_the_system_does_not_limit_memory(platform, unit, monkeypatch):
    sizes = iter([10, 20, 30, 40])
    monkeypatch.setattr(sys, "platform", platform)
    usage = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(ru_maxrss=next(sizes)))
    monkeypatch.setitem(sys.modules, "resource", usage)
    monkeypatch.setattr(memory_limit, "SECONDS", 0.001)
    codes = []
    memory_limit.end_above(25 * unit, memory_limit._used(), codes.append)
    assert codes == [1] and next(sizes) == 40


def test_without_any_way_to_know_its_memory_a_process_goes_on(monkeypatch):
    monkeypatch.setattr(sys, "platform", "plan9")
    monkeypatch.setitem(sys.modules, "resource", None)
    before = threading.enumerate()
    memory_limit.limit_memory(1)
    assert threading.enumerate() == before  # nothing watches, and nothing has ended the process


def test_the_memory_of_this_process_is_told_in_bytes():
    assert 10 << 20 < memory_limit._used()() < 100 << 30


@pytest.mark.skipif(shutil.which("make") is None, reason="a system without make")
@pytest.mark.parametrize(
    ("target", "code", "says"),
    [
        ("browser", 2, "install Chromium or Chrome and put it on PATH (macOS: brew install --cask chromium;"),
        ("espeak", 0, "espeak-ng is not installed: the tests of heed speak-corpus are skipped (macOS: brew install"),
    ],
)
def test_without_apt_get_make_says_what_to_install(target, code, says, tmp_path):
    if any(Path("/Applications", name).exists() for name in ("Chromium.app", "Google Chrome.app")):
        pytest.skip("a browser is installed outside of PATH")
    made = subprocess.run(
        [shutil.which("make"), target], cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert made.returncode == code and says in made.stderr
