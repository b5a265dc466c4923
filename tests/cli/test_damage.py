"""Damaged files of a run: the outcome is the same model, or one sentence and an exit code that is not 0."""

import json
import shutil

import pytest

from heed.data import contamination
from heed.files import write_json
from heed.models.folder import CONFIG, WEIGHTS
from heed.runs.saved_recipe import write as write_recipe
from tests.cli.conftest import TINY, sets

AVERAGED = sets([*TINY, "training.final=average-best", "training.average=2"])


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 64  # in the exponent of a weight
    path.write_bytes(content)


def weights(run):
    return (run / "model" / WEIGHTS).read_bytes()


def finish(heed, run):
    """Resume a run that is over: its final model is made once more."""
    words = ["train", "recipes/phrasebook.toml", "--out", run, "--resume", "--no-report", *AVERAGED]
    return heed(*words)


def test_no_model_is_made_of_damaged_weights(heed, run):
    before = weights(run)
    flip(run / "checkpoints" / "step-000002" / WEIGHTS)
    code, _, says = finish(heed, run)
    assert code != 0
    assert (
        "step-000002/model.safetensors is damaged (its hash does not match state.json): the final model cannot" in says
    )
    assert weights(run) == before
    code, _, says = heed("average", run, "--out", run.parent / "mean")
    assert code != 0
    assert "step-000002/model.safetensors is damaged (its hash does not match state.json)" in says
    assert not (run.parent / "mean").exists()
    (run / "checkpoints" / "step-000002" / WEIGHTS).unlink()  # not a mean of fewer, either
    code, _, says = finish(heed, run)
    assert code != 0
    assert "step-000002 has no model.safetensors: the final model cannot be made from it; restore it" in says
    assert weights(run) == before


def test_no_model_is_made_of_fewer_checkpoints_than_were_kept(heed, run):
    assert finish(heed, run)[0] == 0
    before = weights(run)
    shutil.rmtree(run / "checkpoints" / "step-000002")
    words = ["train", "recipes/phrasebook.toml", "--out", run, "--resume", "--no-report", "--quiet"]
    for more in (AVERAGED, sets([*TINY, "training.average=2", "training.steps=5"])):
        code, _, says = heed(*words, *more)
        assert code != 0
        assert "step-000002 is missing: the final model cannot be made from it; restore it, or use the last" in says
        assert weights(run) == before


def test_from_a_damaged_checkpoint_a_run_goes_back_and_ends_with_the_same_model(heed, run):
    other = shutil.copytree(run, run.parent / "other")
    flip(other / "checkpoints" / "step-000004" / WEIGHTS)
    assert finish(heed, run)[0] == 0
    code, _, says = finish(heed, other)
    assert code == 0
    assert "step-000004/model.safetensors is damaged (its hash does not match state.json); using the checkpoint" in says
    assert weights(other) == weights(run)


def test_a_damaged_model_is_refused_by_every_verb_that_reads_it(heed, run):
    assert "matches config.json" in heed("info", run, "--all")[1]
    flip(run / "model" / WEIGHTS)
    new = ("train", "--from", run, "--out", run.parent / "new", *sets(["data.phrasebook=50", "training.auto=false"]))
    for words in (("translate", run, "나무"), ("info", run), new):
        code, _, says = heed(*words)
        assert code != 0
        assert "model.safetensors is damaged or belongs to another model: its hash does not match config.json" in says


def edit(path, before, after):
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8")


def test_a_recipe_that_was_changed_is_refused_unless_its_first_line_is_removed(heed, run):
    path, words = run / "recipe.toml", ("train", "--out", run, "--resume", "--no-report", "--quiet")
    edit(path, "steps = 4", "steps = 5")
    code, _, says = heed(*words)
    assert code != 0
    assert "recipe.toml is damaged or was edited: its hash does not match its first line; restore it" in says
    path.write_text(path.read_text("utf-8").split("\n", 1)[1], "utf-8")
    assert heed(*words) == (0, "", "")
    assert (run / "checkpoints" / "step-000005").is_dir()


def test_a_recipe_of_another_run_is_refused(heed, run):
    path = run / "recipe.toml"
    text = path.read_text("utf-8").split("\n", 1)[1].replace("seed = 1", "seed = 2", 1)
    write_recipe(path, text, "0" * 16)
    code, _, says = heed("train", "--out", run, "--resume", "--no-report", *sets(["training.steps=6"]))
    assert code != 0
    assert f"{path} belongs to another run than the files next to it: restore the right one" in says


def test_a_resumed_run_keeps_its_name_through_changes_of_its_settings(heed, run):
    first = (run / "recipe.toml").read_text("utf-8").split(",")[0]
    for steps in (5, 6):
        words = ("train", "--out", run, "--resume", "--no-report", "--quiet", *sets([f"training.steps={steps}"]))
        assert heed(*words) == (0, "", "")
    assert (run / "recipe.toml").read_text("utf-8").split(",")[0] == first
    (run / "recipe.toml").unlink()  # the whole command makes it again
    assert finish(heed, run)[0] == 0
    assert (run / "recipe.toml").read_text("utf-8").split(",")[0] == first


def test_damage_is_told_also_to_who_wants_quiet(heed, run):
    words = ("train", "--out", run, "--resume", "--no-report", "--quiet")
    flip(run / "checkpoints" / "step-000004" / "training.safetensors")
    code, _, says = heed(*words)
    assert code == 0 and "step-000004/training.safetensors is damaged" in says and says.endswith("checkpoint before it")
    cache = run.parent / "cache"
    flip(next(cache.glob("corpus-*/source.ids")))
    code, _, says = heed(*words)
    assert code == 0 and says.endswith("is damaged (source.ids has changed since it was written): preparing it again.")
    assert heed(*words) == (0, "", "")


def test_a_config_that_was_changed_is_refused(heed, run):
    edit(run / "model" / CONFIG, '"beam": ', '"beam": 1')
    code, _, says = heed("translate", run, "나무")
    assert code != 0
    assert f"{run / 'model' / CONFIG} is damaged: its hash does not match the recorded one; copy it again" in says
    facts = json.loads((run / "model" / CONFIG).read_text("utf-8"))
    write_json(run / "model" / CONFIG, {name: value for name, value in facts.items() if name != "sha256"})
    assert heed("translate", run, "나무")[0] == 0, "whoever changes it says so"


def test_subwords_that_were_changed_are_refused(heed, run):
    path = run / "model" / "subwords.spm"
    content = path.read_bytes()
    place = content.rindex("▁".encode()) + 2  # another character
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    code, _, says = heed("translate", run, "나무")
    assert code != 0 and "subwords.spm is damaged" in says
    path.unlink()
    assert heed("translate", run, "나무")[0] != 0


def test_hashes_of_training_texts_that_are_not_the_runs_are_refused(heed, run):
    texts = run.parent / "text"
    texts.write_text("나무\n", "utf-8")
    words = ("evaluate", run, "--source", texts, "--reference", texts)
    assert heed(*words)[0] == 0
    flip(run / contamination.FILE)
    code, _, says = heed(*words)
    assert (
        code != 0 and f"{run / contamination.FILE} is damaged or belongs to another model: config.json records" in says
    )
    assert heed("train", "--out", run, "--resume", "--no-report", "--quiet") == (0, "", "")
    assert heed(*words)[0] == 0, "a resumed run has them again"


def test_a_finished_run_whose_cooldown_is_damaged_is_extended_from_before_or_not_at_all(heed, run):
    cooled = ["training.cooldown=0.5", "training.keep=9", "training.checkpoint_every=1", "training.valid_every=4"]
    out = run.parent / "cooled"
    words = ("train", "recipes/phrasebook.toml", "--out", out, "--no-report", "--quiet", *sets([*TINY, *cooled]))
    assert heed(*words) == (0, "", "")
    more = ("train", "--out", out, "--resume", "--no-report", "--quiet", *sets(["training.steps=6"]))
    whole = shutil.copytree(out, run.parent / "whole")
    assert heed("train", "--out", whole, *more[3:]) == (0, "", "")
    flip(out / "checkpoints" / "step-000002" / WEIGHTS)
    shutil.copytree(out, run.parent / "none")
    code, _, says = heed(*more)
    assert code == 0 and "step-000002/model.safetensors is damaged" in says
    assert weights(out) == weights(whole)
    flip(run.parent / "none" / "checkpoints" / "step-000001" / WEIGHTS)
    code, _, says = heed("train", "--out", run.parent / "none", *more[3:])
    assert code != 0 and "no checkpoint from before the learning rate decay is intact, so the run cannot be ext" in says
