"""The log of a run across its stops, and what the terminal says."""

import io
import json
import re

import pytest
from rich.console import Console

from heed.training.curves import read_log
from heed.training.meter import perplexity
from heed.training.report import Log, Report


def write(folder, after, *lines):
    log = Log(folder, after)
    for kind, facts in lines:
        log.write(kind, **facts)
    log.close()


def step(number, **facts):
    return "step", {"step": number, "loss": 1.5, **facts}


def seen(folder):
    return [
        (line["kind"], line.get("step")) for line in map(json.loads, (folder / "log.jsonl").read_bytes().splitlines())
    ]


def test_a_log_has_an_object_a_line(tmp_path):
    write(tmp_path, 0, ("start", {"key": "세 나무"}), step(20))
    text = (tmp_path / "log.jsonl").read_text("utf-8")
    assert text == '{"kind": "start", "key": "세 나무"}\n{"kind": "step", "step": 20, "loss": 1.5}\n'


def test_a_line_is_there_as_soon_as_it_is_written(tmp_path):
    log = Log(tmp_path, 0)
    log.write("step", step=20)
    assert seen(tmp_path) == [("step", 20)]
    log.close()


def test_after_a_stop_what_is_done_again_is_forgotten(tmp_path):
    valid = ("valid", {"step": 40, "bleu": 1.0})
    write(
        tmp_path,
        0,
        ("start", {"step": 0}),
        ("note", {"text": "no step"}),
        step(20),
        step(40),
        valid,
        step(60),
        step(80),
    )
    write(tmp_path, 40, ("start", {"step": 40}), step(60, loss=9.0))
    kinds = [("start", 0), ("note", None), ("step", 20), ("step", 40), ("valid", 40), ("start", 40), ("step", 60)]
    assert seen(tmp_path) == kinds
    assert read_log(tmp_path)[-1]["loss"] == 9.0
    assert len(read_log(tmp_path)) == len(kinds)


@pytest.mark.parametrize("tail", ['{"kind": "step", "st', '{"kind": "note", "text": "\ub098'.encode()[:-1], "\n", "{"])
def test_the_half_line_of_a_killed_run_is_gone(tmp_path, tail):
    write(tmp_path, 0, step(20), step(40))
    with open(tmp_path / "log.jsonl", "ab") as file:
        file.write(tail if isinstance(tail, bytes) else tail.encode())
    write(tmp_path, 40, step(60))
    assert seen(tmp_path) == [("step", 20), ("step", 40), ("step", 60)]
    assert [line["step"] for line in read_log(tmp_path)] == [20, 40, 60]


def test_a_whole_line_that_lacks_only_its_end_is_kept(tmp_path):
    write(tmp_path, 0, step(20), step(40))
    path = tmp_path / "log.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    write(tmp_path, 40, step(60))
    assert seen(tmp_path) == [("step", 20), ("step", 40), ("step", 60)]


@pytest.mark.parametrize("text", ["one\u2028two", "one\x85two", "one\x1ctwo", "one\r\ntwo"])
def test_no_text_in_a_line_can_break_it(tmp_path, text):
    write(tmp_path, 0, ("note", {"text": text}))
    write(tmp_path, 5, step(6))
    assert [line.get("text") for line in read_log(tmp_path)] == [text, None]


@pytest.mark.parametrize("line", ["[1]", "7", '"text"', "null", '{"kind": "step", "step": "x"}', "[" * 100_000])
def test_a_line_that_no_run_has_written_stops_no_other(tmp_path, line):
    write(tmp_path, 0, step(20))
    with open(tmp_path / "log.jsonl", "a", encoding="utf-8") as file:
        file.write(line + "\n")
    write(tmp_path, 20, step(40))
    assert seen(tmp_path) == [("step", 20), ("step", 40)]


def test_a_run_from_the_beginning_forgets_all_steps(tmp_path):
    write(tmp_path, 0, ("start", {"step": 0}), step(20))
    write(tmp_path, 0, step(20))
    assert seen(tmp_path) == [("start", 0), ("step", 20)]


def told(quiet=False, terminal=False):
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal)
    report = Report(console, steps=10_000, quiet=quiet)
    report.summary({"Task": "translation", "Vocabulary": "8,000 [bold]subwords"})
    report.expect("")
    report.expect("about 3 min more")
    report.valid(500, "loss 1.500 · BLEU [red]20.00", 4.2, best=True)
    report.valid(1000, "loss 1.600 · BLEU 19.00", 4.2, best=False)
    report.say("Going on.")
    report.close()
    return plain(console.file.getvalue())


def plain(text):
    """Without what controls a terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


def test_what_will_be_trained_and_a_line_for_each_validation():
    lines = [
        "Task        translation",
        "Vocabulary  8,000 [bold]subwords",
        "Expected time  about 3 min more",
        "valid  step    500 · loss 1.500 · BLEU [red]20.00 · 4 s  ← best so far",
        "valid  step  1,000 · loss 1.600 · BLEU 19.00 · 4 s",
        "Going on.",
    ]
    assert told() == "".join(f"{line}\n" for line in lines)
    shown = told(terminal=True).splitlines()
    assert [line for line in shown if line in lines] == lines


def test_who_asked_for_quiet_has_it():
    assert told(quiet=True) == ""


def test_the_bar_moves_with_the_first_step():
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    report = Report(console, steps=10)
    due = report.moves(1)
    report.busy("validating")
    report.bar.refresh()
    report.close()
    assert due and re.search("step 1 of 10 .* validating", plain(console.file.getvalue()))
    assert not Report(Console(file=io.StringIO()), steps=10).moves(1), "without a terminal there is none"


def test_perplexity_is_finite():
    assert perplexity(0.0) == 1.0
    assert perplexity(1e9) < float("inf")


FACTS = {
    "loss": 6.049,
    "perplexity": 423.9,
    "rate": 3.16e-4,
    "tokens_per_second": 1_119_589.0,
    "steps_per_second": 34.17,
}


@pytest.mark.parametrize("width", [80, 120])
def test_the_bar_says_how_much_is_left_however_narrow_the_terminal(width):
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    report = Report(console, steps=100_000)
    report.step({"step": 12_345, "seconds_left": 3600.0, **FACTS})
    report.bar.refresh()
    line = next(line for line in reversed(plain(console.file.getvalue()).splitlines()) if "12,345" in line)
    report.close()
    assert "step 12,345 of 100,000" in line and "loss 6.049" in line and ("perplexity" in line) is (width == 120)
    assert line.rstrip().endswith("34.2 steps/s · 1.1M tokens/s · 1 h left")


def test_before_the_last_step_is_known_none_is_named():
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    report = Report(console, steps=None)
    report.step({"step": 5, "seconds_left": None, **FACTS})
    report.bar.refresh()
    report.steps = 90
    report.step({"step": 20, "seconds_left": 60.0, **FACTS})
    report.bar.refresh()
    report.close()
    shown = plain(console.file.getvalue())
    assert "step 5 " in shown and "step 5 of" not in shown and "step 20 of 90" in shown


def test_without_a_terminal_lines_say_the_same():
    console = Console(file=io.StringIO(), width=200)
    report = Report(console, steps=None)
    for steps, left in ((None, None), (90, 60.0)):
        report.spoken, report.steps = -1e9, steps
        report.step({"step": 20, "seconds_left": left, **FACTS, "tokens_per_second": 12_345.0})
    first, second = console.file.getvalue().splitlines()
    assert first.startswith("step 20 · loss") and first.endswith("12k tokens/s")
    assert second.startswith("step 20 of 90 · loss") and second.endswith("60 s left")
