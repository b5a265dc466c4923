"""One version, wherever it is told."""

import re
import tomllib
from pathlib import Path

import pytest

import heed
from heed.cli.main import main
from heed.version import __version__

ROOT = Path(__file__).parent.parent
ENTRY = re.compile(r"^## \[(.+?)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def test_the_changelog_begins_with_this_version_and_falls():
    entries = ENTRY.findall((ROOT / "CHANGELOG.md").read_text("utf-8"))
    versions = [tuple(map(int, version.split("."))) for version, _ in entries]
    assert entries[0][0] == __version__
    assert versions == sorted(set(versions), reverse=True)
    assert [date for _, date in entries] == sorted((date for _, date in entries), reverse=True)


def test_the_package_takes_its_version_from_one_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" in project["project"]["dynamic"] and "version" not in project["project"]
    assert (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text("utf-8").count(f'"{__version__}"') == 1
    assert heed.__version__ == __version__


def test_heed_tells_its_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"heed {__version__}\n"
