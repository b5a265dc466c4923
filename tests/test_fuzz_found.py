"""What fuzzing has found (make check-fuzz): each was a traceback, or an error that named no file."""

import json
import re

import pytest

from heed.cli.main import MOST, main, one_line
from heed.data import conll
from heed.data.vectors import reading, store
from heed.evaluation import alignment
from heed.runs import recipe
from heed.service.http import runs

FILES = {
    "a.align": alignment.read_gold,
    "a.conll": lambda path: conll.find_scheme(conll.read(path).sentences),
    "a.vec": reading.read,
    "a.toml": lambda path: recipe.read(path, []),
    "recipe.toml": lambda path: recipe.read(path, [], saved=True),
}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.align", b"0-0\n\xff\n", "a.align, line 2 is not UTF-8"),
        ("a.align", b"0-" + b"1" * 5000, "a.align, line 1: '0-111"),
        ("a.conll", b"Seoul S-{x}\nis I-{}\n", "line 2: I-{} follows S-{x}"),
        (
            "a.conll",
            b"Seoul I-{label}{}\nis E-X\nnow I-Y\n",
            "line 1: I-{label}{} follows the beginning of the sentence",
        ),
        ("a.vec", b"4 3", "a.vec holds no words"),
        ("a.vec", b"cat 1.0 1e39\n", "line 1 is broken"),
        ("a.toml", b"[task]\nname = [1]\n", "task.name: [1] is none of 'translation'"),
        ("a.toml", b"[model]\nname = {}\n", "model.name: {} is"),
        ("recipe.toml", b"task = 1\n", "task: 1 is a value; this is a section, [task]"),
        ("recipe.toml", b'[task]\nname = "x"\n[filters]\n', "task.name: 'x' is none of"),
        ("recipe.toml", b"[task]\nname = [1]\nbptt = 3\n", "task.name: [1] is none of"),
        ("recipe.toml", b"[training]\nr_drop = 1.0\n[model]\nname = [1]\n", "model.name: [1] is"),
    ],
)
def test_a_damaged_file_is_said_in_a_sentence(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        FILES[name](tmp_path / name)
    assert caught.type is ValueError  # and none of a library's


def test_an_error_is_one_line_that_controls_no_terminal(tmp_path, capsys):
    """A file may have anything in it that an error quotes."""
    assert one_line("a\nb\x1b[2J한\u202e\ud800") == r"a\nb\x1b[2J한\u202e\ud800"
    assert len(one_line("x" * 10_000)) < MOST + 10
    (tmp_path / "a.toml").write_text('[data]\n"x\\u001b[31m\\ny' + "z" * 9999 + '" = 1\n', "utf-8")
    assert main(["train", str(tmp_path / "a.toml"), "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "\x1b" not in said and len(said) < MOST + 100


def test_ngrams_of_other_word_vectors_are_refused(tmp_path):
    (tmp_path / "a.vec").write_text("1 3\ncat 1.0 2.0 3.0\n", "utf-8")
    (tmp_path / "a.ngrams.bin").write_text("1 2\n<d 1.0 2.0\n", "utf-8")
    with pytest.raises(ValueError, match=r"a\.ngrams\.bin has vectors of 2 numbers, but .*a\.vec of 3"):
        store.neighbours(store.from_file(tmp_path / "a.vec"), ["dog"], 1)


def test_samples_that_are_no_text_are_shown_as_far_as_they_are(tmp_path):
    (tmp_path / "run" / "samples").mkdir(parents=True)
    (tmp_path / "run" / "log.jsonl").write_text(json.dumps({"kind": "start"}), "utf-8")
    (tmp_path / "run" / "samples" / "step-000001.txt").write_bytes(b"a\xff\n= b\n> c\n\n")
    assert runs.read_samples(tmp_path, "run")[0]["of"] == [{"source": "a�", "reference": "b", "translation": "c"}]
