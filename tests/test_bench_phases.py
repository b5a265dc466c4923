"""bench/phases.py: time belongs to the innermost phase, and what it watches exists."""

from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from bench import phases, small_job
from bench.phases import ON_GPU, PARTS, Phases
from bench.searches import watch_searches

from heed.config import assignment
from heed.products.translator.engines.validation import ValidationEngines
from heed.runs import recipe
from heed.tasks.base import ValidationResult
from heed.tasks.translation import TranslationValidation


def test_time_belongs_to_the_innermost_phase():
    now = [0.0]
    found = Phases(lambda: now[0])

    def spend(seconds):
        now[0] += seconds

    own = SimpleNamespace(inner=spend)
    found.watch(own, "inner", "inside")
    with found.phase("outside"):
        spend(1)
        own.inner(10)
        spend(2)
        own.inner(20)
        with pytest.raises(ZeroDivisionError), found.phase("broken"):
            spend(5)
            raise ZeroDivisionError
        spend(4)
    assert found.seconds == {"outside": 7, "inside": 30, "broken": 5}
    assert found.calls == {"outside": 1, "inside": 2, "broken": 1}


def test_the_items_of_a_generator_are_timed_one_by_one():
    now, closed = [0.0], []

    def items(count):
        try:
            for i in range(count):
                now[0] += 2
                yield i, "batch"
        finally:
            closed.append(count)

    own, found = SimpleNamespace(items=items), Phases(lambda: now[0])
    found.watch_items(own, "items", "waiting")
    with found.phase("steps"):
        for _ in own.items(3):
            now[0] += 10
    assert (found.seconds, closed) == ({"steps": 30, "waiting": 6}, [3])
    running = own.items(9)
    with found.phase("steps"):
        next(running)
    running.close()
    assert closed == [3, 9]


@pytest.mark.parametrize(("module", "kind", "function", "name"), PARTS + ON_GPU)
def test_what_is_watched_exists(module, kind, function, name):
    if module.startswith("heed.training.accelerated"):
        pytest.importorskip("triton")
    owner = import_module(module)
    assert callable(getattr(getattr(owner, kind) if kind else owner, function)), name


def test_the_words_of_a_run(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(phases, "watch_all", lambda own, device: None)
    monkeypatch.setattr("heed.cli.main.main", lambda words: given.append(words) or 0)
    args = phases.parser().parse_args(["my.toml", "--set", "training.steps=3", "--time", "9s"])
    found, _, _ = phases.train(args, tmp_path)
    assert set(found.seconds) == {"other", "imports"}
    assert given == [["train", "my.toml", "--out", str(tmp_path / "run"), "--device", "cpu", "--quiet", "--time", "9s", "--set", "training.steps=3"]]  # fmt: skip


def test_both_searches_are_compared(monkeypatch, capsys):
    """Here both are the plain one; a validation that changes weights is noticed."""
    results = iter(["a b", "a c", "a b", "a b"])
    weights = {"w": torch.zeros(2)}

    def run(self, model):
        said = next(results)
        if said == "a c":
            weights["w"].add_(1)
        outputs = [("", "", word) for word in said.split()]
        return ValidationResult({"bleu": 1.0}, [], outputs)

    monkeypatch.setattr(TranslationValidation, "run", run)
    model, own = SimpleNamespace(state_dict=lambda: weights), TranslationValidation.__new__(TranslationValidation)
    own.engines, own.size = ValidationEngines(), 2
    rows = watch_searches(lambda name: nullcontext())
    found = own.run(model)
    assert [row[2] for row in found.outputs] == ["a", "b"], "what the run goes on with"
    own.run(model)
    assert [(row["equal"], row["engine"], row["unchanged"]) for row in rows] == [(1, "torch", True), (2, "torch", True)]
    weights["w"] = torch.zeros(2)
    results = iter(["a c", "a c"])
    own.run(model)
    assert not rows[-1]["unchanged"]
    lines = capsys.readouterr().out.splitlines()
    assert "1 of 2 (torch)" in lines[1] and lines[1].endswith("unchanged") and lines[3].endswith("CHANGED")


@pytest.mark.parametrize("quick", [[], ["--quick"]])
def test_the_runs_of_a_small_job_have_settings_that_exist(monkeypatch, tmp_path, quick):
    given = []

    def run(words, **options):
        given.append((words, options["timeout"]))
        return SimpleNamespace(returncode=len(given) == 2)

    monkeypatch.setattr(small_job.subprocess, "run", run)
    assert small_job.main(["--out", str(tmp_path), *quick]) == 1, "one of them failed"
    assert [limit for _, limit in given] == ([None] * 3 if quick else [own[3] for own in small_job.RUNS])
    for (words, _), (name, *_) in zip(given, small_job.RUNS, strict=True):
        args = phases.parser().parse_args(words[3:])
        found = recipe.read(
            Path(phases.__file__).parents[1] / args.recipe, [assignment(setting) for setting in args.set]
        )
        assert found.training.steps == (4 if quick else 200 if name == "float32" else 300)
        assert args.json == tmp_path / f"{name}.json" and args.device == "cuda"
