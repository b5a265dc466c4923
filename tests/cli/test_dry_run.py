"""heed train --dry-run: what would be trained, and nothing is."""

from heed.files import sha256
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
    assert err.endswith(f"Nothing was trained. Without --dry-run the run is in {out}.")
    (tmp_path / "shown.toml").write_text(recipe, encoding="utf-8")
    assert heed(*RUN, "--out", out)[0] == 0
    assert heed("train", tmp_path / "shown.toml", "--no-report", "--out", tmp_path / "again")[0] == 0
    weights = [sha256(run / "model" / "model.safetensors") for run in (out, tmp_path / "again")]
    assert weights[0] == weights[1]
    assert (out / "recipe.toml").read_text("utf-8").partition("\n")[2] == recipe


def test_the_expected_time_is_told_and_the_rest_not_trained(heed, tmp_path, monkeypatch):
    monkeypatch.setattr("heed.runs.ending.MEASURED", 0.0)
    settings = sets(["training.steps=1000000", "training.valid_every=2", "training.auto=true"])
    code, recipe, err = heed(*RUN, *settings, "--time", "3h", "--out", tmp_path / "run", "--dry-run", "--quiet")
    assert code == 0 and not err and 'time = "3h"' in recipe
    err = heed(*RUN, *settings, "--time", "3h", "--out", tmp_path / "run", "--dry-run")[2]
    assert "Chosen for" in err and "Expected time" in err and "valid " not in err
    assert [*tmp_path.iterdir()] == [tmp_path / "cache"]


def test_what_a_dry_run_cannot_show_is_refused(heed, tmp_path, monkeypatch):
    out = tmp_path / "run"
    assert "leave out one of --dry-run and --resume" in heed(*RUN, "--out", out, "--dry-run", "--resume")[2]
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert "already exists" in heed(*RUN, "--out", out, "--dry-run")[2]
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "without torchrun" in heed(*RUN, "--out", tmp_path / "other", "--dry-run")[2]
