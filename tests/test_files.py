"""A folder that appears when it is complete, and touches nothing of the user's."""

import os
from pathlib import Path

import pytest

from heed.files import atomic_file, atomic_folder, check_file


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


def test_what_is_no_file_is_called_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("", "is a folder"), ("pipe", "is a pipe or a device"), ("gone", ": no such file")):
        with pytest.raises(ValueError, match=says):
            check_file(tmp_path / name)
    with pytest.raises(
        ValueError, match=r"^task: /dev/null is a pipe or a device, and heed reads its files more than once"
    ):
        check_file(Path("/dev/null"), "task: ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a system without /dev/full")
@pytest.mark.parametrize(("made", "place"), [(atomic_file, "another place"), (atomic_folder, "HEED_CACHE")])
def test_a_full_disk_is_told_with_its_path(tmp_path, monkeypatch, made, place):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path if place == "HEED_CACHE" else tmp_path / "cache"))
    path = tmp_path.resolve() / "made"
    with pytest.raises(OSError) as told, made(path), open("/dev/full", "wb", buffering=0) as file:
        file.write(b"text")
    assert str(told.value) == f"{path} could not be written: No space left on device; make room, or choose {place}"
    assert not list(tmp_path.iterdir())
