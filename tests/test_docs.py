"""The pages of documentation: what they link and name exists, their commands are commands, both languages say the same."""

import re
from functools import cache
from pathlib import Path

import pytest

from heed.cli.main import VERBS
from heed.models import MODELS
from heed.tasks import TASKS
from tests import documented
from tests.documented import ROOT, without_code

PAGES = {str(path.relative_to(ROOT)): path for path in documented.pages()}
CODE = ("src", "tests", "bench", "recipes")
LONGEST = 160  # characters of a line of README
# What runs as pasted, by its beginning, and where a test runs it, with smaller sizes
RUN = {
    "heed lab ": "tests/cli/test_lab.py",
    "heed serve": "tests/service/http/test_process.py",
    "heed train recipes/phrasebook.toml ": "tests/cli/test_positions.py",
    "make demo": "tests/cli/test_documented.py",
    "make docs": "tests/test_site.py",
    "make notes": "tests/test_notes.py",
    "make road": "tests/test_road.py",
    "make lock": "tests/test_lock.py",
    "make check-lowest": "tests/test_lowest.py",
    "make check-mutants": "tests/test_mutants.py",
    "make check-faults": "tests/test_faults.py",
    "make check-fuzz": "tests/test_fuzz.py",
    "python -m bench": "tests/test_bench.py",
    "python -m heed.bulk": "tests/bulk/test_clusters.py",
    "heed ": "tests/cli/test_documented.py",
}
BY_HAND = (
    "make test",
    "make check-all",
    "make check-clusters",
    "make check-soak",
    "make wheel",
    "python -m pytest",
    "python -m venv",
)  # of whoever works on heed


def text(name: str) -> str:
    return PAGES[name].read_text("utf-8")


@cache
def anchors(path: Path) -> set[str]:
    """The places of a page that a link can name: explicit ones, and headings as GitHub writes them."""
    page = path.read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", documented.FENCE.sub("", page), re.M)
    return {_slug(heading) for heading in headings} | set(re.findall(r'<a id="([^"]+)"></a>', page))


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text(name))):
        file, _, anchor = target.partition("#")
        if re.match(r"https?://|mailto:", target):
            continue
        path = (PAGES[name].parent / file).resolve() if file else PAGES[name]
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_pages_that_code_and_recipes_name_exist():
    for folder in CODE:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".toml", ".js", ".html"):
                for page, anchor in re.findall(r"\b(docs/[\w./-]+?\.md)(?:#([\w-]+))?", path.read_text("utf-8")):
                    assert (ROOT / page).is_file(), f"{path} names {page}"
                    assert not anchor or anchor in anchors(ROOT / page), f"{path} names {page}#{anchor}"


def test_the_map_has_every_page_once():
    """In English with the Korean page beside it, and in Korean."""
    lab = (ROOT / "docs" / "learn" / "lab").glob("*.md")  # these are listed by lab.md
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in {*(ROOT / "docs").rglob("*.md")} - {*lab}}
    pages -= {"README.md", "README.ko.md"}
    links = re.compile(r"\]\(([\w./-]+\.md)\)")
    english, korean = links.findall(text("docs/README.md")), links.findall(text("docs/README.ko.md"))
    assert sorted(english) == sorted(pages | {"README.ko.md"})
    wanted = {page for page in pages if page.endswith(".ko.md") or page.replace(".md", ".ko.md") not in pages}
    assert sorted(korean) == sorted(wanted | {"README.md"})


def test_both_readmes_name_the_same_pages_and_systems():
    english, korean = text("README.md"), text("README.ko.md")
    links = [
        [link.replace(".ko.md", ".md") for link in re.findall(r"\]\(([\w./-]+)\)", page)] for page in (english, korean)
    ]
    assert sorted(links[0]) == sorted(links[1])
    rows = [re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.M) for page in (english, korean)]
    assert len(rows[0]) == len(rows[1]) >= 6
    assert [documented.commands(page) for page in (english,)] == [documented.commands(page) for page in (korean,)]


@pytest.mark.parametrize("name", [name for name in PAGES if "/start/" in name and not name.endswith(".ko.md")])
def test_first_steps_are_the_same_in_korean(name):
    assert documented.commands(text(name)) == documented.commands(text(name.replace(".md", ".ko.md")))


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_a_readme_has_every_system_and_no_long_line(name):
    page = text(name)
    titles = {system.title.split("-50")[0] for system in MODELS.values()} - {
        "Recurrent translator",
        "Recurrent language model",
        "Marian",
    }
    assert {title for title in titles if title not in page} == set()
    assert max(map(len, page.splitlines())) <= LONGEST


def test_the_reference_has_every_verb_model_preset_and_task():
    rows = re.findall(r"^\| (`heed .*?) \|", text("docs/reference/cli.md"), re.M)
    assert {verb for row in rows for verb in re.findall(r"`heed ([\w-]+)`", row)} == set(VERBS)
    settings = text("docs/reference/settings.md")
    for name, system in MODELS.items():
        row = next(row for row in re.findall(r"^\| `.*$", settings, re.M) if f"`{name}`" in row.split("|")[1])
        assert "the same" in row or all(f"`{preset}`" in row for preset in system.presets), name
    assert all(f"`{name}`" in settings for name in TASKS)


@pytest.mark.parametrize("name", PAGES)
def test_commands_are_what_heed_make_and_bench_understand(name):
    for command in documented.commands(text(name)):
        documented.check(command)
    for mention in documented.mentions(text(name)):
        documented.check(mention, whole=False)


def test_every_command_is_run_by_a_test_or_needs_something():
    for name in PAGES:
        for command in documented.commands(text(name)):
            if documented.needs(command) is None and not command.startswith(BY_HAND):
                test = next(test for beginning, test in RUN.items() if command.startswith(beginning))
                assert (ROOT / test).is_file(), f"{name}: {command}"


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("heed translate runs/demo 책", None),
        ("heed translate runs/en-de < test.en", "files"),
        ("heed translate Helsinki-NLP/opus-mt-ko-en 책", "a network"),
        ("heed train phrasebook --out runs/other", None),
        ("heed train recipes/bert.toml --out runs/bert", "files"),
        ("heed train --out runs/en-de --resume", "files"),
        ("python -m bench train --device cuda", "a GPU"),
    ],
)
def test_what_a_command_needs(command, needed):
    assert documented.needs(command) == needed


@pytest.mark.parametrize(
    "command",
    [
        "heed trian --out x", "heed translate runs/demo --bean 5", "heed train phrasebook --set training.stpes=1 --out x",
        "make dmeo", "make test WROKERS=2", "python -m bench.nothing", "python -m bench.serving --jsno x",
    ],
)  # fmt: skip
def test_what_is_no_command_is_noticed(command):
    with pytest.raises((AssertionError, SystemExit, ValueError)):
        documented.check(command)
