"""The end of a run: what is validated again, and how long it takes."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from heed.cli import main as cli
from heed.products.translator.engines.validation import only_torch
from heed.runs.ending import Command, Outcome
from heed.runs.finishing import OPTIONAL, REPORT, WRITING, expected_seconds, finish
from heed.runs.validation_history import ValidationHistory
from heed.tasks import TASKS
from heed.tasks.base import Task, ValidationResult
from heed.tasks.translation import LARGE, PLAIN_COST, TranslationSettings, TranslationValidation

BEST, LAST, MADE = (ValidationResult({"loss": loss}, []) for loss in (1.0, 2.0, 3.0))


class Recorder:
    """Whatever is called is remembered."""

    def __init__(self, **values):
        self.calls = []
        self.__dict__ |= values

    def __getattr__(self, name):
        return lambda *of, **options: self.calls.append((name, of, options))


def ended_run(final: str, kept: list[int], results: dict[int, ValidationResult]):
    files = Recorder(
        base={},
        kept=lambda history: {step: Path(str(step)) for step in kept},
        needed=lambda history: kept,
        mean=lambda paths: {},
        read_best=lambda history: ({}, BEST, "moving average at step 4"),
    )
    told = Recorder()
    task = SimpleNamespace(
        describe_score=lambda *of: "", describe=lambda scores: "", searches=True, final_names=("list.txt",),
        final_costs=lambda *of: (0.0, 3.0),
    )  # fmt: skip
    training = SimpleNamespace(final=final, metric="")
    validation = SimpleNamespace(size=100)
    return SimpleNamespace(
        recipe=SimpleNamespace(training=training, decoding=None), files=files, history=ValidationHistory(best=[[9.0, 4]]), step=6,
        results=results, task=task, validation=validation, log=told, report=told, validate=lambda model: MADE,
        final_search=lambda model, seconds: None, command=Command(0.0), prepared=None,
        ending=SimpleNamespace(left_for_options=lambda needed: None, validation=0.0),
        stopping=SimpleNamespace(given_up_if_asked=nullcontext),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("final", "kept", "results", "found"),
    [
        ("best", [4], {4: BEST, 6: LAST}, BEST),
        ("best", [4], {6: LAST}, MADE),  # a resumed run
        ("last", [], {4: BEST, 6: LAST}, LAST),
        ("ema", [], {4: BEST, 6: LAST}, LAST),
        ("ema", [], {}, MADE),
        ("best-ema", [], {}, BEST),
        ("average-best", [4, 6], {4: BEST, 6: LAST}, MADE),
        ("average-best", [4], {4: BEST, 6: LAST}, BEST),
    ],
)
def test_weights_that_were_validated_are_not_validated_again(final, kept, results, found):
    run = ended_run(final, kept, results)
    assert finish(run, None)
    ((name, of, options),) = run.files.calls
    assert name == "write_model" and of[1] is found and options["final"]


def translation(subwords: int, size: int, tuned: int):
    validation = TranslationValidation.__new__(TranslationValidation)
    validation.size, validation.engines = size, only_torch
    return SimpleNamespace(
        recipe=SimpleNamespace(training=SimpleNamespace(final="best"), decoding=SimpleNamespace(beam=4)),
        task=TASKS["translation"](TranslationSettings(tune_length_penalty=tuned)), validation=validation,
        files=SimpleNamespace(base={}), command=Command(0.0), ending=SimpleNamespace(is_short=False), prepared=SimpleNamespace(processors={"source": range(subwords), "target": range(subwords)}),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("subwords", "tuned", "validations"), [(500, 0, 0.5), (500, 200, 1.3), (LARGE, 0, 3.5), (LARGE, 200, 4.3)]
)
def test_the_end_takes_as_many_validations_as_it_searches(subwords, tuned, validations):
    run = translation(subwords, 500, tuned)
    assert expected_seconds(run, 10.0) == pytest.approx(WRITING + 10 * validations)
    run.command = Command(0.0, reports=True)
    assert expected_seconds(run, 0.0) == pytest.approx(WRITING + REPORT[0] + 500 * REPORT[1])
    run.command = Command(0.0)
    run.validation.engines = SimpleNamespace(fast=True)  # a validation by the GPU search says less of a plain one
    listed = 3 * (PLAIN_COST - 1) if subwords == LARGE else 0
    assert expected_seconds(run, 10.0) == pytest.approx(WRITING + 10 * (validations + listed))
    run.validation.engines = only_torch
    run.recipe.training.final = "average-last"
    assert expected_seconds(run, 10.0) == pytest.approx(WRITING + 10 * validations + 10)
    run.files.base = {"task": "translation"}  # fine-tuned: without a shortlist
    without = 10 * (1.5 + tuned * 2 / 500)
    assert expected_seconds(run, 10.0) == pytest.approx(WRITING + without)
    assert Task.final_costs(run.task, run.prepared, run.validation, 4, False) == (0, 0)


def test_a_time_budget_counts_from_the_command(tmp_path, monkeypatch, capsys):
    given = []

    def train(recipe, folder, **options):
        given.append(options["command"])
        return Outcome("interrupted", 0, folder)

    monkeypatch.setattr("heed.runs.train.run", train)
    monkeypatch.setattr(cli, "time", SimpleNamespace(monotonic=lambda: 123.0))
    words = ["train", "recipes/phrasebook.toml", "--out", str(tmp_path), "--time", "1m"]
    assert cli.main(words) == cli.main([*words, "--no-report"]) == 130
    assert given == [Command(123.0, True), Command(123.0, False)]


def test_a_short_budget_keeps_a_tenth_for_what_is_optional():
    run = translation(LARGE, 500, 200)
    run.ending = SimpleNamespace(is_short=True, seconds=100.0)
    assert expected_seconds(run, 10.0) == pytest.approx(WRITING + 0.5 * 10 + OPTIONAL * 100)
    assert expected_seconds(run, 1.0) == pytest.approx(WRITING + 4.3), "all of it, if that is less"


@pytest.mark.parametrize(("left", "whole"), [(None, True), (13.0, True), (11.0, False)])
def test_optional_files_are_left_out_where_a_short_budget_has_no_time_for_them(left, whole):
    """They take three validations of four seconds, and the model is written in any case."""
    run, asked = ended_run("last", [], {6: LAST}), []

    def left_for_options(needed):
        asked.append(needed)
        return left

    run.command = Command(0.0, reports=True)
    run.ending = SimpleNamespace(left_for_options=left_for_options, validation=4.0)
    run.final_search = lambda model, seconds: (None, f"{seconds} s for tuning")
    assert finish(run, None)
    ((_, _, options),) = run.files.calls
    assert options == {"final": whole, "search": None}
    assert set(asked) == {WRITING + REPORT[0] + 100 * REPORT[1]}, "the report comes after it"
    said = [of[0] for name, of, _ in run.report.calls if name == "say"]
    assert f"{left} s for tuning" in said
    assert ("Left out, since the time is used up: list.txt." in said) == (not whole)
