"""A folder that appears when it is complete, and touches nothing of the user's."""

import os

import pytest

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
