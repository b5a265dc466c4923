"""heed train --dry-run: what would be trained, and nothing is."""

import os
import signal
import sys
from itertools import accumulate, count

import pytest

from heed.cli.main import main
from heed.files import sha256
from heed.runs.timing import Timing
from heed.training.config import TrainingConfig
from tests.cli.conftest import TINY, sets

RUN = ["train", "recipes/phrasebook.toml", "--no-report", *sets(TINY)]


def test_the_recipe_that_is_shown_trains_the_run_that_it_stands_for(heed, tmp_path):
    out = tmp_path / "run"
    code, recipe, err = heed(*RUN, "--out", out, "--dry-run")
    assert code == 0 and not out.exists()
    assert (
        all(label in err for label in ("Task ", "Model ", "Data ", "Vocabulary ", "Device ", "Steps "))
        and "Folder" not in err
    )
    assert err.endswith(f"This was a dry run: no model was saved. Without --dry-run, the run would be in {out}.")
    (tmp_path / "shown.toml").write_text(recipe, encoding="utf-8")
    assert heed(*RUN, "--out", out)[0] == 0
    assert heed("train", tmp_path / "shown.toml", "--no-report", "--out", tmp_path / "again")[0] == 0
    weights = [sha256(run / "model" / "model.safetensors") for run in (out, tmp_path / "again")]
    assert weights[0] == weights[1]
    assert (out / "recipe.toml").read_text("utf-8").partition("\n")[2] == recipe


def test_the_expected_time_is_told_and_the_rest_not_trained(heed, tmp_path, monkeypatch):
    monkeypatch.setattr("heed.runs.timing.ENOUGH", 0.0)
    settings = sets(["training.steps=1000000", "training.valid_every=2", "training.auto=true"])
    code, recipe, err = heed(*RUN, *settings, "--time", "3h", "--out", tmp_path / "run", "--dry-run", "--quiet")
    assert code == 0 and not err and 'time = "3h"' in recipe
    err = heed(*RUN, *settings, "--time", "3h", "--out", tmp_path / "run", "--dry-run")[2]
    assert "Chosen for" in err and "Expected time 3 h at most, at " in err and "valid " not in err
    assert [*tmp_path.iterdir()] == [tmp_path / "cache"]


def test_an_interrupted_dry_run_gives_no_recipe(heed, tmp_path, monkeypatch):
    asked = Timing.is_enough
    monkeypatch.setattr(Timing, "is_enough", lambda *own: os.kill(os.getpid(), signal.SIGINT) or asked(*own))
    code, recipe, err = heed(*RUN, "--out", tmp_path / "run", "--dry-run")
    assert code == 130 and not recipe and "Interrupted before the time was known." in err


def test_a_closed_standard_output_is_none(heed, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert main([*map(str, RUN), "--out", str(tmp_path / "run"), "--dry-run"]) == 0


@pytest.mark.parametrize(
    ("seconds", "settings", "steps", "expected"),
    [
        ([9.0, *[0.5] * 99], {"steps": 1000}, 11, "about 8 min and the validations, at 2 steps/s"),
        ([9.0, *[0.5] * 99], {"steps": 1000, "time": "5m"}, 11, "5 min at most, at 2 steps/s"),
        ([9.0, *[0.5] * 99], {"steps": 100, "time": "5m"}, 11, "about 50 s and the validations, at 2 steps/s"),
        ([40.0, 20.0, 20.0], {"steps": 100}, 2, "about 33 min and the validations, at 0.05 steps/s"),
        ([0.5, 0.25, 0.25, 0.25], {"steps": 4}, 4, "about 1 s and the validations, at 4 steps/s"),
        ([0.5], {"steps": 1}, 1, "about 0 s and the validations, at 2 steps/s"),
    ],
)
def test_a_few_steps_tell_how_long_a_run_takes(seconds, settings, steps, expected):
    ends = iter([0.0, *accumulate(seconds)])
    timing = Timing(TrainingConfig(**settings), clock=lambda: next(ends))
    assert next(step for step in count(1) if timing.is_enough(step)) == steps
    assert timing.expectation() == expected


def test_what_a_dry_run_cannot_show_is_refused(heed, tmp_path, monkeypatch):
    out = tmp_path / "run"
    assert "leave out one of --dry-run and --resume" in heed(*RUN, "--out", out, "--dry-run", "--resume")[2]
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert "already exists" in heed(*RUN, "--out", out, "--dry-run")[2]
    (tmp_path / "file").write_text("mine")
    assert "is a file: --out cannot be in it" in heed(*RUN, "--out", tmp_path / "file" / "run", "--dry-run")[2]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "leave out --quiet, or redirect" in heed(*RUN, "--out", tmp_path / "other", "--dry-run", "--quiet")[2]
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "without torchrun" in heed(*RUN, "--out", tmp_path / "other", "--dry-run")[2]
