"""The pages of documentation know each other, and the two READMEs say the same."""

import re
from pathlib import Path

from heed.cli.main import VERBS

ROOT = Path(__file__).parent.parent


def verbs(page: str) -> list[str]:
    """The verbs of the table, row by row."""
    rows = re.findall(r"^\| (`heed .*?) \|", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    return [re.findall(r"`heed ([\w-]+)`", row) for row in rows]


def test_both_readmes_have_a_row_for_every_verb():
    rows = verbs("README.md")
    assert verbs("README.ko.md") == rows
    assert {verb for row in rows for verb in row} == set(VERBS)


def test_both_readmes_name_the_same_pages():
    pages = [set(re.findall(r"\]\((docs/[\w./-]+\.md)\)", (ROOT / name).read_text("utf-8")))
             for name in ("README.md", "README.ko.md")]  # fmt: skip
    assert pages[0] == pages[1] and "docs/README.md" in pages[0]
    assert all((ROOT / page).is_file() for page in pages[0])


def test_the_map_has_every_page_once():
    listed = re.findall(
        r"^\| \[([\w.-]+\.md)\]\(\1\) \| .+ \|$", (ROOT / "docs" / "README.md").read_text("utf-8"), re.M
    )
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert sorted(listed) == sorted(pages)
