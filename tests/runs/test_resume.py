"""Where in the data a run goes on, and what it may change."""

import dataclasses

import pytest

from heed.data.batching import DataPosition
from heed.runs.recipe import differences, parse
from heed.runs.resume import as_built, check_folder, check_state, position_of
from heed.runs.validation_history import ValidationHistory

ORDER = ["packed", 25_000, 1]


def test_in_the_same_order_it_goes_on_where_it_was():
    assert position_of({"place": [2, 7], "order": ORDER}, list(ORDER)) == (DataPosition(2, 7), [])
    assert position_of({"place": [2, 7]}, ORDER) == (DataPosition(2, 7), []), "of a checkpoint that does not say"


@pytest.mark.parametrize("order", [["padded", 25_000, 1], ["packed", 12_500, 1], ["packed", 25_000, 2]])
def test_in_another_order_the_epoch_begins_anew_and_that_is_told(order):
    place, (told,) = position_of({"place": [2, 7], "order": order}, ORDER)
    assert place == DataPosition(2, 0)
    assert "now packed, of 25,000 tokens, seed 1 (before:" in told and "so epoch 3 starts over" in told
    assert position_of({"place": [2, 0], "order": order}, ORDER) == (DataPosition(2, 0), []), "nothing is begun anew"


RECORD = dataclasses.asdict(ValidationHistory(best=[[0.5, 2], [-1.0, 4]], saved=[2, 4], budget=60.0))
STATE = {"place": [0, 7], "order": ORDER, "record": RECORD, "key": "a1"}


@pytest.mark.parametrize(
    "changes", [{}, {"record": {}}, {"record": {**RECORD, "finished": [0.5, 9]}}, {"place": [3, 0]}, {"more": 1}]
)
def test_a_state_that_a_run_writes_is_one_to_continue_from(changes):
    state = {**STATE, **changes}
    check_state(state)
    assert position_of(state, ORDER) == (DataPosition(*state["place"]), [])
    assert dataclasses.asdict(ValidationHistory(**state["record"])) == {
        **dataclasses.asdict(ValidationHistory()),
        **state["record"],
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"place": [0]}, {"place": 5}, {"place": [0, -1]}, {"place": [0, 1.5]}, {"place": None}, {"key": None}, {"record": None},
        {"record": {**RECORD, "best": [[0.5, "2"]]}}, {"record": {**RECORD, "best": 1}}, {"record": {**RECORD, "more": 1}},
        {"record": {**RECORD, "saved": None}}, {"record": {**RECORD, "ends_at": "9"}}, {"record": {**RECORD, "finished": [1]}}, {"order": []}, {"order": ["packed", None, 1]},
    ],
    ids=str,
)  # fmt: skip
def test_any_other_state_is_refused(changes):
    with pytest.raises((ValueError, TypeError)):
        check_state({**STATE, **changes})


@pytest.mark.parametrize("name", ["place", "record", "key"])
def test_a_state_that_lacks_something_is_refused(name):
    with pytest.raises(KeyError, match=name):
        check_state({own: value for own, value in STATE.items() if own != name})


@pytest.fixture
def folder(tmp_path):
    """A run folder with a recipe."""
    (tmp_path / "recipe.toml").write_text(recipe(task={"r_drop": 1.0}).to_toml(), "utf-8")
    return tmp_path


def recipe(**sections):
    return parse({"data": {"source": ["a.en"], "target": ["a.de"]}, **sections})


def test_a_run_that_goes_on_may_change_its_loss_and_tells_so(folder):
    told = []
    check_folder(recipe(task={"r_drop": 2.0, "label_smoothing": 0.2}), folder, resume=True, say=told.append)
    assert told == ["task.label_smoothing is now 0.2; it was 0.1.", "task.r_drop is now 2.0; it was 1.0."]


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"model": {"dim": 64}}, r"model\.dim was None in .*recipe\.toml and is now 64: a resumed run cannot change it"),
        ({"subwords": {"size": 900}}, r"subwords\.size was None in .* and is now 900"),
        ({"task": {"name": "classification"}, "model": {"name": "bart"}}, r"task\.name was 'translation' in .* and is now"),
    ],
)  # fmt: skip
def test_a_run_that_goes_on_may_not_change_its_data_or_its_model(folder, sections, says):
    with pytest.raises(ValueError, match=says):
        check_folder(recipe(**sections), folder, resume=True, say=print)


def test_of_the_task_a_run_that_goes_on_may_change_nothing_but_the_loss(tmp_path):
    files = {"data": {"source": ["a.en"]}, "model": {"name": "bart"}}
    before, after = (parse({**files, "task": {"name": "denoising", "infill": share}}) for share in (0.3, 0.2))
    (tmp_path / "recipe.toml").write_text(before.to_toml(), "utf-8")
    check_folder(before, tmp_path, resume=True, say=pytest.fail)
    with pytest.raises(ValueError, match=r"task\.infill was 0\.3 in .* and is now 0\.2: a resumed run cannot change"):
        check_folder(after, tmp_path, resume=True, say=print)


def test_what_a_recipe_leaves_open_is_as_it_was_when_the_run_began(tmp_path):
    built = recipe(model={"dim": 16, "heads": 2, "norm": "pre"}, subwords={"size": 640})
    (tmp_path / "recipe.toml").write_text(built.to_toml(), "utf-8")
    found = as_built(recipe(model={"heads": 2}), tmp_path, resume=True)
    assert found == built and not differences(built, found)
    assert as_built(recipe(model={"dim": 32}), tmp_path, resume=True).model.settings["dim"] == 32, "which is refused"
    assert as_built(recipe(subwords={"size": 500}), tmp_path, resume=True).subwords.size == 500
    other = recipe(task={"name": "recommendation"}, model={"name": "sasrec"}, data={"interactions": "log.tsv"})
    assert as_built(other, tmp_path, resume=True).subwords is None, "another task, which is refused"
    assert as_built(recipe(), tmp_path, resume=False) == as_built(recipe(), tmp_path / "none", resume=True) == recipe()


def test_the_recipe_of_an_earlier_version_which_left_them_open_is_resumed(tmp_path):
    (tmp_path / "recipe.toml").write_text(recipe().to_toml(), "utf-8")
    assert as_built(recipe(), tmp_path, resume=True) == recipe()
