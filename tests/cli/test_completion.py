"""heed completion: what bash offers, and that all scripts have everything."""

import argparse
import shlex
import shutil
import subprocess
from dataclasses import fields

import pytest

from heed.cli import completion_scripts
from heed.cli.commands import _command, commands, settings
from heed.cli.main import VERBS
from heed.training.config import TrainingConfig


@pytest.fixture(scope="module")
def found():
    return commands()


@pytest.fixture(scope="module")
def offered(found, tmp_path_factory):
    """What bash offers for the last of some words, in a folder with files."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "heed.bash").write_text(completion_scripts.bash(found), "utf-8")
    (folder / "runs").mkdir()
    for name in ("runs.txt", "run one.txt"):
        (folder / name).write_text("", "utf-8")
    ask = """. ./heed.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _heed; printf '%s\\n' "${COMPREPLY[@]}" """

    def run(*words):
        asked = ["bash", "--norc", "--noprofile", "-c", ask, "bash", "heed", *words]
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.splitlines() if done.stdout.strip() else []

    return run


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ([], "none", ()),
        (["folder"], "folder", ()),
        (["text"], "any", ()),
        (["folder", "file"], "file", ()),
        ([("shell", {"choices": ["bash", "zsh"]})], "any", ("bash", "zsh")),
    ],
)
def test_what_a_command_takes_is_what_its_arguments_are_and_not_its_options(arguments, kind, words):
    parser = argparse.ArgumentParser(prog="own", add_help=False)
    parser.add_argument("--out", metavar="FILE", help="where to write")
    parser.add_argument("--level", choices=["low", "high"])
    for one in arguments:
        name, more = one if isinstance(one, tuple) else (one, {})
        parser.add_argument(name, **more)
    found = _command(("own",), "a line", parser)
    assert (found.argument.kind, found.argument.words) == (kind, words)
    assert [(own.names, own.value.kind) for own in found.options] == [(("--out",), "file"), (("--level",), "any")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["tra"], ["train", "translate", "transcribe"]),
        (["train", "--rej"], ["--rejected"]),
        (["train", "phr"], ["phrasebook"]),
        (["train", "--out", "ru"], ["runs"]),
        (["train", "--source", "runs.txt", "ru"], ["run one.txt", "runs", "runs.txt"]),
        (["train", "--set", "training.ste"], ["training.steps="]),
        (["translate", "ru"], ["runs"]),
        (["translate", "runs", "--engine", "=", "c"], ["ctranslate2"]),
        (["translate", "runs", "--beam", ""], []),
        (["info", "ru"], ["runs"]),
        (["vectors", "train", "--method", "g"], ["glove"]),
        (["vectors", "tr"], ["train"]),
        (["lab", "or"], ["order"]),
        (["lab", "order", "--lang", ""], ["en", "ko"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_bash_offers(offered, line, expected):
    assert sorted(offered(*line)) == sorted(expected)


def test_every_verb_and_option_is_in_every_script(found):
    assert [command.words[0] for command in found if len(command.words) == 1] == list(VERBS)
    for make in (completion_scripts.bash, completion_scripts.zsh, completion_scripts.fish):
        text = make(found)
        for command in found:
            assert all(word in text for word in command.words)
            for option in command.options:
                assert all(name.lstrip("-") in text for name in option.names)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_quotes_of_a_script_are_closed(found, shell):
    text = getattr(completion_scripts, shell)(found)
    lines = text.replace("\\'", "") if shell == "fish" else text
    assert shlex.split(lines, comments=True)
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=text, text=True, check=True)


def test_settings_are_those_of_a_recipe():
    names = list(settings())
    assert len(names) == len(set(names))
    assert {f"training.{own.name}" for own in fields(TrainingConfig)} <= set(names)
    assert {"model.dim", "data.phrasebook", "subwords.size", "task.name"} <= set(names)


def test_the_command_prints_the_script(heed, found):
    code, out, _ = heed("completion", "bash")
    assert code == 0 and out == completion_scripts.bash(found) + "\n"
