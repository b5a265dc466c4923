"""The commands of README and docs that run as pasted after `make demo`, with a model that has learned nothing."""

import re

import pytest

from heed.cli.main import main
from tests import documented
from tests.cli.conftest import TINY, sets
from tests.documented import ROOT, words_of

SMALL = ["--train", "300", "--test", "20"]
# run elsewhere: tests/test_docs.py says where
ELSEWHERE = ("heed lab", "heed serve", "heed train", "heed --version")


def shape(command: str) -> str:
    """The verb, the options and the formats of a command: two that differ only in a sentence or a name have one."""
    return " ".join(re.findall(r"^heed \w+|--[\w-]+|\.\w+\b", re.sub(r'"[^"]*"', "", command)))


PASTED = {
    shape(command): command
    for path in documented.pages()
    for command in documented.commands(path.read_text("utf-8"))
    if command.startswith("heed ") and not command.startswith(ELSEWHERE) and documented.needs(command) is None
}
PYTHON = sorted(
    {
        re.sub(r" +#.*", "", body).strip()
        for path in documented.pages()
        for language, body in documented.FENCE.findall(path.read_text("utf-8"))
        if language == "python" and 'heed.load("runs/demo")' in body
    }
)


@pytest.fixture(scope="module")
def after_demo(tmp_path_factory):
    """A folder as the commands of `make demo` leave it, on a small scale."""
    folder = tmp_path_factory.mktemp("clone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        assert main(["phrasebook", "--out", "runs/demo-data", *SMALL]) == 0
        assert main(["train", "phrasebook", "--out", "runs/demo", "--quiet", "--no-report", *sets(TINY)]) == 0
    return folder


@pytest.mark.parametrize("command", PASTED.values(), ids=PASTED)
def test_it_runs_as_pasted(command, after_demo, heed, monkeypatch):
    monkeypatch.chdir(after_demo)
    words = words_of(command)[1:]
    if words[0] == "phrasebook":
        words = [word for word in words if not word.isdecimal() and word != "--train"] + SMALL
    code, _, err = heed(*words)
    assert code == 0, err
    assert all((after_demo / name).exists() for name in re.findall(r"--out (\S+)", command))


@pytest.mark.parametrize("code", PYTHON)
def test_python_runs_as_pasted(code, after_demo, monkeypatch, capsys):
    monkeypatch.chdir(after_demo)
    exec(compile(code, "a page", "exec"), {})
    assert capsys.readouterr().out.strip()


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
