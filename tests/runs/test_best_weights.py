"""The weights of the best validation are read from the model folder, if it holds them."""

import pytest
import torch

from heed.models import folder as model_folder
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.runs.run_folder import RunFolder
from heed.runs.validation_history import ValidationHistory


def run_folder(folder, made_of):
    model = RNNLanguageModel(RNNLanguageModelConfig(20, dim=4, hidden=4, layers=1))
    model_folder.save(folder / "model", model, {"trained": {"weights": made_of, "valid_loss": 2.5}})
    found = RunFolder.__new__(RunFolder)
    found.folder = folder
    return found, model


@pytest.mark.parametrize("made_of", ["step 1,200", "moving average at step 1,200"])  # in training, and at its end
def test_the_weights_of_the_best_validation_are_read(tmp_path, made_of):
    (tmp_path / "model").mkdir()
    own, model = run_folder(tmp_path, made_of)
    weights, _, described = own.read_best(ValidationHistory(best=[[9.0, 1200], [8.0, 1600]]))
    assert described == "moving average at step 1,200"
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())


def test_the_model_of_an_extended_run_may_stay_the_best(tmp_path):
    (tmp_path / "model").mkdir()
    own, _ = run_folder(tmp_path, "moving average at step 800")
    assert own.read_best(ValidationHistory(best=[[7.0, 1200]], finished=[9.0, 800]))[2] == "moving average at step 800"


@pytest.mark.parametrize("made_of", ["step 1,600", "moving average at step 1,600", "mean of steps 1,200, 1,600"])
def test_weights_of_another_step_are_refused(tmp_path, made_of):
    """Killed between the model of a newer validation and its checkpoint, and ended earlier by the resumed command."""
    (tmp_path / "model").mkdir()
    own, _ = run_folder(tmp_path, made_of)
    with pytest.raises(ValueError, match=f"has the weights of {made_of}, but the best validation was at step 1,200: "):
        own.read_best(ValidationHistory(best=[[9.0, 1200]]))
