"""The constructs of bench/parsers: the right text is translated, and every other byte stays."""

import pytest
from bench.parsers import __main__ as command
from bench.parsers import commonmark, libraries, rouge
from bench.parsers.cases import cases
from bench.parsers.measure import judge

ALL = [pytest.param(kind, case, id=f"{kind}: {case.name}") for kind in command.FORMATS for case in cases(kind)]


@pytest.mark.parametrize(("kind", "case"), ALL)
def test_the_right_text_is_translated_and_the_rest_stays(kind, case):
    assert judge(case, kind, command.ours(kind).work) == (True, True, True, "")


def test_a_library_that_is_not_installed_is_named_and_left_out(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "version", lambda package: None)
    monkeypatch.setattr(rouge, "version", lambda package: None)
    assert [parser.name for parser in command.parsers("html")] == ["ours"]
    assert rouge.compare() == 0
    said = capsys.readouterr().out
    assert "lxml: not installed: pip install lxml" in said
    assert "rouge-score: not installed: pip install rouge-score" in said


def test_the_examples_of_a_specification_are_translated(tmp_path, capsys):
    spec, fence = tmp_path / "spec.txt", "`" * 32
    spec.write_text(
        f"{fence} example\n*a* b\n.\n<p>\n{fence}\n{fence} example\n→code\n.\n\n{fence}\n", "utf-8", newline="\n"
    )
    broken = {"broken": lambda data, translate: "".join(translate([data.decode()])).replace("*", "").encode()}
    commonmark.compare(spec, {"ours": command.ours("md").work, **broken})
    assert capsys.readouterr().out.endswith("| ours | 2 | 2 |\n| broken | 1 | 1 |\n")


def test_a_construct_that_is_lost_is_seen():
    case = next(case for case in cases("html") if case.name == "comment")
    assert judge(case, "html", lambda data, translate: data) == (True, False, False, "")
    assert judge(case, "html", lambda data, translate: data.replace(b"<!--", b"<! --")).same is False
