"""The recommendation task: what its settings mean for the data, the loss and the model folder."""

import numpy as np
import pytest

from heed.runs.recipe import parse

LOG = "".join(f"u{user} {' '.join(items)}\n" for user, items in enumerate(["abcd", "abce", "abdc", "acbd"]))


@pytest.fixture
def recommendation(tmp_path, monkeypatch):
    """The recipe of a recommender on a small log, with these settings of its task."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "log.txt").write_text(LOG, "utf-8")

    def make(training=None, **settings):
        sections = {"task": {"name": "recommendation", **settings}, "model": {"name": "sasrec"}}
        return parse(
            {**sections, "data": {"interactions": [str(tmp_path / "log.txt")], "core": 0}, "training": training or {}}
        )

    return make


def prepared(recipe):
    return recipe.task.prepare(recipe, None, lambda *_: None)


def test_histories_of_users_are_in_the_model_folder_unless_the_recipe_leaves_them_out(recommendation):
    assert set(prepared(recommendation()).processors) == {"items", "histories"}
    assert set(prepared(recommendation(histories=False)).processors) == {"items"}


@pytest.mark.parametrize("popularity", [0.0, 0.5, 1.0])
def test_negatives_of_the_sampled_softmax_are_drawn_by_frequency_to_a_power(popularity, recommendation):
    recipe = recommendation(objective="sampled-softmax", popularity=popularity)
    data = prepared(recipe)
    names = np.array(data.train.items.names)
    seen = [names[item] for history in data.train.histories.training() for item in history]
    expected = np.array([max(1, seen.count(name)) ** popularity for name in names])
    found = recipe.task.objective(data).items.draws
    np.testing.assert_allclose(found.numpy(), expected / expected.sum(), rtol=1e-6)
    assert len(set(expected)) > 1 or not popularity


def test_views_are_compared_within_a_batch_so_they_cannot_be_accumulated(recommendation):
    refused = "training.accumulate does not work with task.contrastive, which compares histories within a batch"
    with pytest.raises(ValueError, match=refused):
        recommendation({"accumulate": 2}, contrastive=0.1)
    assert recommendation({"accumulate": 1}, contrastive=0.1).task.settings.contrastive == 0.1
    assert recommendation({"accumulate": 2}).training.accumulate == 2
