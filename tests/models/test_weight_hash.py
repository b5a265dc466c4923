"""The weights of a folder are hashed once, and changed weights are noticed."""

import copy

import pytest
import torch
from torch import nn

from heed.files import sha256
from heed.models import folder as model_folder
from heed.models import weight_hash
from heed.models.folder import WEIGHTS
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.models.weight_hash import hash_weights, known_hash


def large(seed):
    """Its embeddings have several rows of sums, and a rest."""
    torch.manual_seed(seed)
    return RNNLanguageModel(RNNLanguageModelConfig(600, dim=4, hidden=4, layers=1)).eval()


@pytest.fixture
def model(tmp_path):
    model_folder.save(tmp_path, large(1), {})
    return model_folder.load(tmp_path)


def test_the_hash_of_the_file_is_that_of_its_weights(model, tmp_path, monkeypatch):
    monkeypatch.setattr(weight_hash, "hash_weights", lambda model: pytest.fail("hashed twice"))
    assert known_hash(model) == known_hash(copy.deepcopy(model)) == sha256(tmp_path / WEIGHTS)


def test_weights_from_no_file_are_hashed():
    assert known_hash(large(1)) == known_hash(large(1)) == hash_weights(large(1)) != known_hash(large(2))


@pytest.mark.parametrize("change", ["in place", "data", "numpy", "rows", "last", "another"])
def test_weights_that_have_changed_are_hashed_anew(model, change):
    weight = max(model.parameters(), key=lambda own: own.numel())
    before, data = known_hash(model), weight.data
    if change == "in place":
        with torch.no_grad():
            weight.add_(1)
    elif change == "data":
        data[300, 1] += 1e-3
    elif change == "numpy":
        data.numpy()[0, 0] = 5
    elif change == "rows":
        data[[3, 400]] = data[[400, 3]]
    elif change == "last":
        data[-1, -1] = 5
    else:
        weight.data = data.flip(0)
    assert known_hash(model) == hash_weights(model) != before


@pytest.mark.parametrize("other", [254, 258, 505, 600])
def test_rows_that_change_places_are_noticed_at_any_distance(other):
    """251 rows are a whole number of lines, whatever their width."""
    model = nn.Embedding(1000, 512)
    weight_hash.note_file(model, "of the file")
    assert known_hash(model) == "of the file"
    data = model.weight.data
    data[[3, other]] = data[[other, 3]]
    assert known_hash(model) == hash_weights(model)
    data[[3, other]] = data[[other, 3]]
    assert known_hash(model) == "of the file"


def test_a_file_that_is_replaced_while_it_is_read_is_not_that_of_the_weights(tmp_path, monkeypatch):
    model_folder.save(tmp_path, large(1), {})
    read, left = model_folder.read_weights, [1]

    def replaced(path):
        weights = {name: own.clone() for name, own in read(path).items()}
        if left:
            left.pop()
            model_folder.save(tmp_path, large(2), {})
        return weights

    monkeypatch.setattr(model_folder, "read_weights", replaced)
    assert known_hash(model_folder.load(tmp_path)) == hash_weights(large(1))
    assert known_hash(model_folder.load(tmp_path)) == sha256(tmp_path / WEIGHTS)
