"""The model of a run beside its data: texts must fit its positions."""

import tomllib
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from heed.config import data_fields, load_toml
from heed.runs import built_in
from heed.runs.models import check_positions, decided_by_data, new_config, stated
from heed.runs.recipe import parse
from heed.vocabularies.vocabulary import SpecialTokens


def check(limit, longest, **task):
    """A model of ten positions, of which one is taken by a token before each text."""
    vocabulary = SimpleNamespace(special=SpecialTokens(0, 1, 2, 3, before=(2,)))
    task = SimpleNamespace(filtered=True, longest=lambda recipe, prepared, most: longest, **task)
    recipe = SimpleNamespace(filters=SimpleNamespace(max_length=limit), task=task)
    model = SimpleNamespace(config=SimpleNamespace(max_length=10))
    check_positions(model, recipe, SimpleNamespace(processors={"text": vocabulary}))


def test_a_limit_of_lengths_that_the_model_has_no_positions_for_is_refused():
    check(limit=9, longest=9)
    with pytest.raises(ValueError, match=r"filters.max_length is 10, but the model has only 9 positions: lower it"):
        check(limit=10, longest=5)  # a longer text may come with other data


def test_where_the_target_is_a_label_only_the_texts_themselves_count():
    check(limit=99, longest=10, label_target=True)
    with pytest.raises(ValueError, match=r"filters.max_length is 99, but the model has only 9 positions: lower it"):
        check(limit=99, longest=11, label_target=True)


OF_DATA = {"vocab_size": 300, "items": 40, "size": 32, "channels": 3, "inputs": 20, "outputs": 20, "labels": 2}
WITH_MODEL = [name for name in built_in.names() if "folder" not in load_toml(built_in.path(name)).get("model", {})]


@pytest.mark.parametrize("name", WITH_MODEL)
def test_the_recipe_of_a_run_states_every_setting_of_its_model(name):
    """So neither the preset nor what the data suggest matters when it is run again."""
    values = {section: own for section, own in load_toml(built_in.path(name)).items() if section != "distill"}
    prepared = SimpleNamespace(sizes=OF_DATA, defaults={"tied": "target"}, chosen={})
    given = parse(values | {"data": values.get("data") or {"source": ["a"], "target": ["b"]}})
    built = new_config(given.model, prepared, 10)
    again = parse(tomllib.loads(stated(given, SimpleNamespace(config=built), prepared).to_toml()))
    assert new_config(again.model, SimpleNamespace(sizes=OF_DATA, defaults={}), 10**9) == built
    assert {*again.model.settings} | data_fields(built) | {
        own for own, value in asdict(built).items() if value is None
    } == {*asdict(built)}


def test_a_size_that_was_chosen_is_stated_too():
    recipe = parse({"data": {"source": ["a"], "target": ["b"]}})
    prepared = SimpleNamespace(sizes=OF_DATA, defaults={}, chosen={"subwords.size": 640})
    model = SimpleNamespace(config=new_config(recipe.model, prepared, 10))
    assert recipe.subwords.size is None and stated(recipe, model, prepared).subwords.size == 640
    assert decided_by_data(model) == {"source_vocab_size": None, "vocab_size": 300}


def test_a_stated_length_is_no_reason_to_refuse_labelled_texts_that_fit():
    """The limit of the filters may be above it, as in the recipe that was given."""
    text = {"data": {"source": ["a"], "target": ["b"]}, "filters": {"max_length": 300}}
    given = parse({**text, "model": {"name": "gpt", "preset": "tiny"}, "task": {"name": "classification"}})
    model = SimpleNamespace(config=new_config(given.model, SimpleNamespace(sizes=OF_DATA, defaults={}), 10))
    found = stated(given, model, SimpleNamespace(chosen={}))
    assert found.model.settings["max_length"] == 256 and parse(tomllib.loads(found.to_toml())) == found
