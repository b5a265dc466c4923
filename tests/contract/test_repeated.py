"""The recipe of a run that began with a trained model repeats it."""

from dataclasses import replace

import pytest

from heed.models.folder_config import read_config
from heed.runs import recipe as recipes
from tests.contract.contract import TRAINING, check_same, train, values
from tests.contract.test_contract import sections

BEGUN = {  # a model and its first task, the second task, and settings of the second run
    "an encoder": ("bert", "masked", "classification", {"dropout": 0.2}),
    "prompts": ("gpt2", "language", "classification", {"prompt": 2}),
    "choices": ("gpt", "language", "multiple-choice", {}),
    "new weights": ("bart", "denoising", "translation", {"fresh": True}),
    "images": ("vit", "image-classification", "image-classification", {}),
}


@pytest.mark.parametrize("name", BEGUN)
def test_a_run_from_a_trained_model_is_repeated_by_its_recipe(name, corpus, tmp_path):
    model, first, second, settings = BEGUN[name]
    begun = recipes.parse(values(model, first, sections(first, corpus)))
    assert train(replace(begun, training=replace(begun.training, steps=1)), tmp_path / "first").how == "finished"
    more = {section: own for section, own in sections(second, corpus).items() if section != "subwords"}
    chosen = {"folder": str(tmp_path / "first"), **settings}
    recipe = recipes.parse({"model": chosen, "task": {"name": second}, "training": TRAINING} | more)
    assert train(recipe, tmp_path / "one").how == "finished"
    stated = recipes.read(tmp_path / "one" / "recipe.toml", [])
    assert train(stated, tmp_path / "other").how == "finished"
    check_same(tmp_path / "one", tmp_path / "other")
    assert recipes.read(tmp_path / "other" / "recipe.toml", []) == stated
    known = read_config(tmp_path / "one" / "model")["model"]
    assert stated.model.settings.items() <= known.items() and len(stated.model.settings) >= 7
    train(recipe, tmp_path / "one", resume=True)
