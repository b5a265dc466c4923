"""A folder that appears when it is complete, and touches nothing of the user's."""

import os
import subprocess
import sys

import pytest

from heed import files
from heed.files import atomic_folder


def held(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def write(part):
    (part / "inner").mkdir()
    (part / "config.json").write_text("{}")
    (part / "inner" / "words").write_text("a")


MADE = {"config.json": "{}", "inner/words": "a"}


def test_a_folder_of_the_users_that_is_called_so_stays(tmp_path):
    theirs = tmp_path / "fast.part"
    theirs.mkdir()
    (theirs / "thesis").write_text("mine")
    with atomic_folder(tmp_path / "fast") as part:
        write(part)
    assert held(tmp_path / "fast") == MADE and held(theirs) == {"thesis": "mine"}
    with pytest.raises(KeyError), atomic_folder(tmp_path / "other") as part:
        write(part)
        raise KeyError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fast", "fast.part"]


@pytest.mark.parametrize("name", [".", "../here", "../here/"])
def test_an_empty_folder_may_be_the_one_we_are_in(tmp_path, monkeypatch, name):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with atomic_folder(type(here)(name)) as part:
        write(part)
    assert held(here) == MADE
    assert sorted(os.listdir()) == ["config.json", "inner"]  # it is still the one we are in
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_what_came_in_the_meantime_is_not_written_over(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(ValueError, match="out exists already"), atomic_folder(out) as part:
        write(part)
        (out / "config.json").write_text("mine")
    assert held(tmp_path) == {"out/config.json": "mine"}


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_unfinished_is_removed_by_the_next(tmp_path, kind):
    """Of the same file or folder; what a running process writes, another machine, or nobody knows who, stays."""
    code = f"""
import os, pathlib
from heed.files import atomic_file, atomic_folder
with atomic_{kind}(pathlib.Path({str(tmp_path / "made")!r})) as part:
    (part if {kind == "file"} else part / "inside").write_text("half")
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".made.") and left.name.endswith(".part")
    machine = left.name.split(".")[2]
    others = [
        f".made.{machine}.{os.getppid()}.part",
        ".made.elsewhere.999999999.part",
        ".made.1.part",
        f".other.{machine}.999999999.part",
    ]
    for name in others:
        (tmp_path / name).write_text("")
    with getattr(files, f"atomic_{kind}")(tmp_path / "made") as part:
        assert not left.exists()
        if kind == "file":
            part.write_text("whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "made"])
