"""A little fuzzing of every reader of files, and that fuzzing would notice; make check-fuzz does much more."""

import ast
import os
import signal
import sys
import time

import pytest
from bench.fuzz import branches, loop
from bench.fuzz.cases import Reader
from bench.fuzz.loop import Fuzz, quick
from bench.fuzz.readers import READERS

# cases of those that take their time; of the others 300
SLOW = {
    "model": 15, "huggingface": 10, "vocabularies": 30, "pickle": 30, "recipe": 60, "document-md": 40, "document-docx": 40, "document-html": 80,
    "document-txt": 80, "document-tsv": 80, "document-srt": 80, "document-vtt": 80, "checkpoint": 80, "sentence-transformers": 80, "run": 80, "log": 80,
    "family-model": 15, "interactions": 80, "vocoder": 30, "pronunciations": 80, "huggingface-media": 15, "journal": 80,
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_no_damage_leads_to_a_traceback(name, tmp_path):
    failed = quick(READERS[name], SLOW.get(name, 300), 1, tmp_path / "case")
    assert not failed, f"{failed[0][0]}\n{failed[0][1].details}"


def _read(folder):
    """What is wrong with this reader depends on the first byte."""
    data = (folder / "a.txt").read_bytes()
    if data.startswith(b"k"):
        raise KeyError("k")
    if data.startswith(b"v"):
        int("v")
    if data.startswith(b"m"):
        bytearray(1 << 31)
    if data.startswith(b"s"):
        while True:
            time.perf_counter()
    if data.startswith(b"a"):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"k", "KeyError at no place in heed"),
        (b"v", "ValueError at no place in heed"),
        (b"m", "too much memory at no place in heed"),
        (b"s", "too slow at no place in heed"),
        (b"a", "process killed by SIGKILL"),
        (b"x", None),
    ],
)
def test_what_goes_wrong_is_noticed_and_kept(start, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SECONDS", 0.2)
    cases = [{"a.txt": b"x"}, {"a.txt": start}, {"a.txt": b"x2"}]
    monkeypatch.setattr(loop.formats, "mutate", lambda *_: cases[2])
    fuzz = Fuzz("fake", Reader(lambda: cases[:2], _read), 0, tmp_path / "fake")
    fuzz.run(5)
    assert dict(fuzz.failures()) == ({kind: 1} if kind else {}) and fuzz.state["cases"] == 5
    if kind:
        (kept,) = (tmp_path / "fake" / "failures").iterdir()
        assert (kept / "case" / "a.txt").read_bytes() == start and kind in (kept / "error.txt").read_text("utf-8")


def test_what_a_reader_imports_is_imported_before_the_next_child_starts(tmp_path, monkeypatch):
    (tmp_path / "late.py").write_text("import os\nLOADED_BY = os.getpid()\n", "utf-8", newline="\n")
    monkeypatch.syspath_prepend(tmp_path)

    def read(folder):
        import late

        if os.getpid() == late.LOADED_BY:
            raise KeyError("imported again")

    fuzz = Fuzz("fake", Reader(lambda: [{"a.txt": b"x"}], read), 0, tmp_path / "fake")
    fuzz.run(3)
    assert not fuzz.failures() and os.getpid() == sys.modules.pop("late").LOADED_BY


def test_a_run_goes_on_where_it_was(tmp_path):
    reader = Reader(lambda: [{"a.txt": b"x"}], lambda folder: None)
    Fuzz("fake", reader, 0, tmp_path / "fake").run(4)
    assert Fuzz("fake", reader, 0, tmp_path / "fake").state["cases"] == 4
    assert Fuzz("fake", reader, 1, tmp_path / "fake").state["cases"] == 0  # another seed begins anew


SOURCE = '''
def f(x):
    """What it does."""
    found = [y for y in range(x) if y % 2 if y > 1]
    if x > 3 and found or not x:
        try:
            found = {}[x] if x else 7
        except KeyError:
            found = f"{x if x else 0}"
    else:
        for y in found:
            pass
    while x > 90:
        x -= 50
    return found, x, f.__doc__
'''


def test_marks_change_nothing_and_tell_branches_apart():
    plain, marked, maps = {}, {branches.NAME: branches.reached}, set()
    exec(compile(ast.parse(SOURCE), "a", "exec"), plain)
    exec(compile(branches.marked(SOURCE), "a", "exec"), marked)
    for x in (0, 2, 7, 100):
        branches.clear()
        assert marked["f"](x) == plain["f"](x)
        maps.add(branches.as_number(branches.reached))
    assert len(maps) == 4 and 0 not in maps
