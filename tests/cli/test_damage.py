"""Damaged files of a run: the outcome is the same model, or one sentence and an exit code that is not 0."""

import shutil

import pytest

from heed.models.folder import WEIGHTS
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
        "step-000002/model.safetensors is damaged (its hash is not the one in state.json): the final model is not"
        in says
    )
    assert weights(run) == before
    code, _, says = heed("average", run, "--out", run.parent / "mean")
    assert code != 0
    assert "step-000002/model.safetensors is damaged (its hash is not the one in state.json)" in says
    assert not (run.parent / "mean").exists()


def test_from_a_damaged_checkpoint_a_run_goes_back_and_ends_with_the_same_model(heed, run):
    other = shutil.copytree(run, run.parent / "other")
    flip(other / "checkpoints" / "step-000004" / WEIGHTS)
    assert finish(heed, run)[0] == 0
    code, _, says = finish(heed, other)
    assert code == 0
    assert (
        "step-000004/model.safetensors is damaged (its hash is not the one in state.json); using the checkpoint" in says
    )
    assert weights(other) == weights(run)


def test_a_damaged_model_is_refused_by_every_verb_that_reads_it(heed, run):
    assert "that of config.json" in heed("info", run)[1]
    flip(run / "model" / WEIGHTS)
    new = ("train", "--from", run, "--out", run.parent / "new", *sets(["data.phrasebook=50", "training.auto=false"]))
    for words in (("translate", run, "나무"), ("info", run), new):
        code, _, says = heed(*words)
        assert code != 0
        assert "model.safetensors is damaged or of another model: its hash is not the one in config.json" in says
