"""`make docs`: the site of the documentation, from docs/README.md and the pages."""

import os
import re
import subprocess
import sys

import pytest
from bench import site
from bench.site import ROOT, nav_of, relink


def test_the_navigation_is_the_map_and_both_languages_have_the_same_pages():
    english, korean = (nav_of((ROOT / "docs" / name).read_text("utf-8")) for name in ("README.md", "README.ko.md"))
    pages = [
        [next(iter(page.values())) for part in nav[1:] for page in next(iter(part.values()))]
        for nav in (english, korean)
    ]
    assert pages[0] == pages[1] and pages[0][0] == "start/install.md"
    assert all((ROOT / "docs" / page).is_file() for page in pages[0])
    assert len({next(iter(part)) for part in korean} & {next(iter(part)) for part in english}) == 1  # Heed


@pytest.mark.parametrize(
    ("page", "own", "text", "linked"),
    [
        ("docs/guides/data.md", "en", "[a](../results.md#x)", "[a](../results.md#x)"),
        ("docs/guides/data.md", "en", "[a](../../SECURITY.md)", "[a](../source/SECURITY.md.md)"),
        ("docs/learn/notes.md", "en", "[a](../../src/heed/files.py)", "[a](../source/src/heed/files.py.md)"),
        ("SECURITY.md", "en", "[a](docs/results.md)", "[a](../results.md)"),
        ("docs/guides/data.md", "en", "[a](../../src/heed)", "a"),
        ("docs/guides/data.md", "en", "[a](https://example.org/x.md), [b](#b), `[c](../../LICENSE)`", None),
        ("docs/learn/lab.md", "en", "[한국어](lab.ko.md)", '<a href="../../ko/learn/lab/">한국어</a>'),
        ("docs/README.md", "en", "[한국어](README.ko.md)", '<a href="ko/">한국어</a>'),
        ("docs/learn/lab.ko.md", "ko", "[English](lab.md)", '<a href="../../../learn/lab/">English</a>'),
        ("docs/README.ko.md", "ko", "[English](README.md)", '<a href="../">English</a>'),
        ("docs/learn/lab.ko.md", "ko", "[a](notes.ko.md#x) [b](../results.md)", "[a](notes.md#x) [b](../results.md)"),
    ],
)
def test_links_lead_to_pages_of_the_site(page, own, text, linked):
    assert relink(page, text, own) == (text if linked is None else linked)


def test_every_linked_file_is_shown_with_its_text():
    files = site.linked_files()
    assert {"SECURITY.md", "recipes/all-settings.toml", "src/heed/nn/attention.py"} <= set(files)
    assert (ROOT / "src/heed/files.py").read_text("utf-8") in site.as_page("src/heed/files.py")


def test_the_help_of_every_verb_and_all_settings_are_put_in():
    marks = {mark: made() for mark, made in site.MARKS.items()}
    pages = [(ROOT / "docs/reference" / name).read_text("utf-8") for name in ("cli.md", "settings.md")]
    assert all(any(mark in page for page in pages) for mark in marks)
    found = "".join(marks.values())
    assert "usage: heed translate" in found and "--length-penalty" in found and "batch_tokens = " in found


@pytest.mark.long
@pytest.mark.parametrize("own", ["en", "ko"])
def test_it_builds_without_warnings(own, tmp_path):
    pytest.importorskip("mkdocs", reason="make docs installs it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]
    settings = {**os.environ, "HEED_DOCS": own, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    home = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert re.search(rf'<html lang="{own}"', home)
    assert "Translator" in (tmp_path / "site" / "reference" / "python" / "index.html").read_text("utf-8")
