"""heed noise: each corruption named, and its changes marked."""

import io
import json
from types import SimpleNamespace

import pytest

from heed.cli.main import main

TEXT = "하나 둘 셋. 넷 다섯 여섯. 일곱."


def test_every_kind_is_named_and_marked(heed):
    code, out, _ = heed("noise", TEXT, "--seed", 1)
    lines = out.splitlines()
    assert code == 0 and lines[0] == TEXT
    assert [line for line in lines if line.endswith(")")] == [
        "Token masking (BART)", "Token deletion (BART)", "Text infilling (BART)", "Sentence permutation (BART)",
        "Document rotation (BART)", "Gap sentences (Pegasus)", "80/10/10 masking (BERT)",
    ]  # fmt: skip
    assert "\x1b" not in out


@pytest.mark.parametrize(("kind", "marked"), [
    ("mask", "[하나 → <mask>] [둘 → <mask>] [셋. → <mask>]"), ("delete", "[-하나 둘 셋.-]"), ("infill", "[하나 둘 셋. → <mask>]"),
])  # fmt: skip
def test_marks_are_plain_where_there_are_no_colours(heed, monkeypatch, kind, marked):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    _, out, _ = heed("noise", "하나 둘 셋.", "--kind", kind, "--rate", 1)
    assert marked in out


def test_colours_in_a_terminal(heed, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    _, out, _ = heed("noise", "a b", "--kind", "mask", "delete", "--rate", 1)
    assert "\x1b[1;33m<mask> \x1b[0m" in out and "\x1b[9;31ma b\x1b[0m" in out


def test_json_of_lines_of_standard_input(heed, monkeypatch):
    class Input:
        buffer = io.BytesIO(f"{TEXT}\n\na b c\n".encode())

    monkeypatch.setattr("sys.stdin", Input)
    code, out, _ = heed("noise", "--json", "--kind", "gaps", "bert")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [(own["kind"], own["rate"]) for own in found] == [("gaps", 0.3), ("bert", 0.15)] * 2
    assert found[0]["text"] == TEXT.split() and "[MASK1]" in found[0]["source"]
    assert {"kind": "kept", "was": ["a"], "now": "a"} in found[2]["changes"]


@pytest.mark.parametrize("options", [[], ["--model"]], ids=str)
def test_each_line_is_shown_before_the_next_is_read(monkeypatch, trained, options):
    shown = io.StringIO()
    seen = []

    def lines():
        for line in ("나는 가.\n", "\n", "책을 읽어요.\n"):
            seen.append(len(shown.getvalue().splitlines()))
            yield line.encode()

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=lines()))
    monkeypatch.setattr("sys.stdout", shown)
    options = [*options, str(trained)] if options else []
    assert main(["noise", "--json", "--kind", "mask", *options]) == 0
    assert seen == [0, 1, 1] and len(shown.getvalue().splitlines()) == 2


def test_the_subwords_of_a_model(heed, trained):
    code, out, _ = heed("noise", "나는 책을 읽어요.", "--model", trained, "--kind", "mask", "--rate", 0)
    assert code == 0 and out.splitlines()[0].startswith("▁") and "nothing changed with this seed and rate" in out


@pytest.mark.parametrize(("words", "said"), [
    (["a b", "--kind", "rotate", "--rate", 0.2], "--rate does not apply to rotate: leave it out"),
    (["a b", "--rate", 2], "the rate is 2.0; it must be from 0 to 1"),
    (["a b", "--seed", -1], "--seed is -1; it must be 0 or more"),
    ([" "], "no text given: pass one, or lines on standard input"),
])  # fmt: skip
def test_what_is_wrong_is_said(heed, words, said):
    code, _, err = heed("noise", *words)
    assert code == 1 and said in err


def test_words_in_brackets_are_words_and_no_colours(heed):
    _, out, _ = heed("noise", "[red] a [/] b.", "--kind", "rotate", "--seed", 2)
    assert out.splitlines()[:5] == [
        "[red] a [/] b.", "", "Document rotation (BART)", "  b. [red] a [/]", "  b. [~[red] a [/]~]",
    ]  # fmt: skip
