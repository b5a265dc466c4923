"""The commands of README and docs that run as pasted after `make demo`, with a model that has learned nothing."""

import re
import shutil

import pytest

from tests import documented
from tests.cli.conftest import TINY, sets
from tests.documented import ROOT, words_of

# run elsewhere: tests/test_docs.py says where
ELSEWHERE = ("heed lab", "heed serve", "heed --version")
PASTED = sorted(
    {
        command
        for path in documented.pages()
        for command in documented.commands(path.read_text("utf-8"))
        if command.startswith("heed ") and not command.startswith(ELSEWHERE) and documented.needs(command) is None
    }
)


@pytest.fixture(scope="module")
def after_demo(trained, tmp_path_factory):
    """A folder as `make demo` leaves it."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(trained, folder / "runs" / "demo")
    (folder / "recipes").symlink_to(ROOT / "recipes")
    return folder


@pytest.mark.parametrize("command", PASTED)
def test_it_runs_as_pasted(command, after_demo, heed, monkeypatch):
    monkeypatch.chdir(after_demo)
    words = words_of(command)[1:]
    if words[0] == "phrasebook":
        words = [word for word in words if not word.isdecimal() and word != "--train"] + [
            "--train",
            "300",
            "--test",
            "20",
        ]
    if words[0] == "train":
        words = ["other" if word == "runs/demo" else word for word in words] + ["--quiet", "--no-report", *sets(TINY)]
    if "runs/demo-data" in command and words[0] != "phrasebook" and not (after_demo / "runs" / "demo-data").exists():
        assert heed("phrasebook", "--out", "runs/demo-data", "--train", 300, "--test", 20)[0] == 0
    code, _, err = heed(*words)
    assert code == 0, err
    assert all((after_demo / name).exists() for name in re.findall(r"--out (\S+)", command) if words[0] != "train")


def test_the_commands_of_make_demo_are_those_of_the_first_translator():
    """What the page shows step by step is what `make demo` does."""
    makefile = documented.MAKEFILE.partition("\ndemo:")[2].partition("\n\n")[0]
    made = [re.sub(r"\$\(DEMO\)", "runs/demo", line) for line in re.findall(r"^\t\$\(HEED\) (.+)$", makefile, re.M)]
    page = (ROOT / "docs" / "start" / "first-translator.md").read_text("utf-8")
    assert [line.split()[0] for line in made] == [
        "phrasebook",
        "train",
        "evaluate",
        "translate",
        "look",
        "look",
        "plot",
    ]
    assert f"heed {made[0]}" in page and "heed train phrasebook --out runs/demo" in page
    assert re.search(r"evaluate runs/demo --source \S+ --reference \S+", made[2])[0] in page
