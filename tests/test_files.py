"""A folder that appears when it is complete, and touches nothing of the user's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from heed import files
from heed.files import atomic_file, atomic_folder, check_file, check_sums, open_checked, write_sums


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
    with pytest.raises(ValueError, match="out already exists"), atomic_folder(out) as part:
        write(part)
        (out / "config.json").write_text("mine")
    assert held(tmp_path) == {"out/config.json": "mine"}


def test_files_and_the_names_in_their_folders_are_synced_before_and_after_the_rename(tmp_path, monkeypatch):
    done, fsync, rename = [], os.fsync, {name: getattr(os, name) for name in ("rename", "replace")}

    def synced(handle):
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        done.append(".part" if path.name.endswith(".part") else path.name)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    for name, own in rename.items():
        monkeypatch.setattr(os, name, lambda *paths, own=own: (done.append("renamed"), own(*paths)))
    with atomic_file(tmp_path / "one") as part:
        part.write_text("1")
    assert done == [".part", "renamed", tmp_path.name]
    done.clear()
    with atomic_folder(tmp_path / "two") as part:
        (part / "inner").mkdir()
        (part / "inner" / "file").write_text("2")
    assert sorted(done[:2]) == ["file", "inner"]
    assert done[2:] == [".part", "renamed", tmp_path.name]


def test_sums_tell_which_file_is_not_what_was_written(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    assert not check_sums(tmp_path)
    write_sums(tmp_path)
    assert check_sums(tmp_path)
    (tmp_path / "b").write_text("a")
    with pytest.raises(ValueError, match="b has changed since it was written"):
        check_sums(tmp_path)
    for damage in ("{", "null", "5", '["b"]', '{"c": "0"}'):
        (tmp_path / "sums.json").write_text(damage)
        with pytest.raises(ValueError, match="its checksums cannot be verified: "):
            check_sums(tmp_path)


def test_what_another_process_opens_is_verified(tmp_path):
    (tmp_path / "a").write_text("a")
    write_sums(tmp_path)
    assert open_checked(lambda folder: (folder / "a").read_text(), tmp_path) == "a"
    (tmp_path / "a").write_text("b")
    with pytest.raises(
        ValueError, match=r"is damaged \(a has changed since it was written\): remove it to prepare it again"
    ):
        open_checked(lambda folder: pytest.fail("it is opened"), tmp_path)


def test_what_is_no_file_is_called_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("", "is a folder"), ("pipe", "is a pipe or a device"), ("gone", ": no such file")):
        with pytest.raises(ValueError, match=says):
            check_file(tmp_path / name)
    with pytest.raises(
        ValueError, match=r"^task: /dev/null is a pipe or a device, and heed reads files more than once"
    ):
        check_file(Path("/dev/null"), "task: ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a system without /dev/full")
@pytest.mark.parametrize(("made", "place"), [(atomic_file, "another place"), (atomic_folder, "HEED_CACHE")])
def test_a_full_disk_is_told_with_its_path(tmp_path, monkeypatch, made, place):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path if place == "HEED_CACHE" else tmp_path / "cache"))
    path = tmp_path.resolve() / "made"
    with pytest.raises(OSError) as told, made(path), open("/dev/full", "wb", buffering=0) as file:
        file.write(b"text")
    assert (
        str(told.value)
        == f"{path} could not be written: No space left on device; free some disk space, or choose {place}"
    )
    assert not list(tmp_path.iterdir())


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
