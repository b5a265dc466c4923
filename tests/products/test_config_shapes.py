"""A config.json whose values are of another shape is told of by its name and the setting's."""

import json

import pytest

from heed.data import shortlist
from heed.loading import load
from heed.models import folder as model_folder
from tests.products.test_loading import folder, single  # noqa: F401 (fixtures)

WRONG = [
    ({"max_source": "x"}, "max_source is 'x'; it must be an integer of at least 1"),
    ({"max_source": True}, "max_source is True; it must be an integer of at least 1"),
    ({"max_source": -4}, "max_source is -4; it must be an integer of at least 1"),
    ({"alignment": 5}, "alignment is 5; it must be a table"),
    ({"alignment": {"layer": "x", "after": True}}, "alignment.layer is 'x'; it must be an integer of at least 0"),
    ({"alignment": {"layer": 0}}, "alignment has layer; it must have layer and after"),
    ({"alignment": {"layer": 0, "after": 1}}, "alignment.after is 1; it must be true or false"),
    ({"alignment": {"layer": 0, "after": True, "head": 1}}, "alignment has after, head, layer; it must have layer and after"),
    ({"decoding": 5}, "decoding is 5; it must be a table"),
    ({"decoding": None}, "decoding is None; it must be a table"),
    ({"subwords": 5}, "subwords is 5; it must be a table"),
    ({"subwords": {"source": 5, "target": "subwords.spm"}}, "subwords.source is 5; it must be text in quotes"),
    ({"subwords": {"kind": ["words"]}}, "subwords.kind is ['words']; it must be text in quotes"),
    ({"model": [1]}, "model is [1]; it must be a table"),
    ({"model": {"name": {}}}, "model.name is {}; it must be text in quotes"),
    ({"languages": "ko"}, "languages is 'ko'; it must be a table"),
    ({"trained": 3}, "trained is 3; it must be a table"),
    ({"origin": []}, "origin is []; it must be a table"),
    ({"trained": {"examples": 3}}, "trained.examples is 3; it must be a list of strings"),
    ({"pretraining": [1]}, "pretraining is [1]; it must be a table"),
    ({"stride": None}, "stride is None; it must be an integer of at least 0"),
    ({"max_answer": "x"}, "max_answer is 'x'; it must be an integer of at least 1"),
    ({"window": 1.5}, "window is 1.5; it must be an integer of at least 1"),
    ({"no_answer_threshold": float("nan")}, "no_answer_threshold is nan; it must be a number"),
    ({"frames_per_token": 10**400}, f"frames_per_token is {10**400}; it must be a number of at least 0"),
    ({"language": ["ko"]}, "language is ['ko']; it must be text in quotes"),
    ({"both_orders": 1}, "both_orders is 1; it must be true or false"),
    ({"columns": [1, [2]]}, "columns is [1, [2]]; it must be the numbers or names of columns"),
    ({"columns": 3}, "columns is 3; it must be the numbers or names of columns"),
    ({"labels": "good"}, "labels is 'good'; it must be a list of strings"),
]  # fmt: skip


def change(folder, **facts):  # noqa: F811
    path = folder / model_folder.CONFIG
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | facts), "utf-8")


@pytest.mark.parametrize(("facts", "words"), WRONG, ids=lambda value: str(value)[:40])
def test_a_value_of_another_shape_is_said_so(folder, facts, words):  # noqa: F811
    change(folder, **facts)
    with pytest.raises(ValueError) as error:
        load(folder, "cpu", "torch")
    assert str(error.value) == f"{folder / 'config.json'}: {words}"


def test_a_size_that_is_none_is_said_so(folder):  # noqa: F811
    held = json.loads((folder / "config.json").read_text("utf-8"))["model"]
    change(folder, model=held | {"vocab_size": "x"})
    with pytest.raises(ValueError, match=r"config.json: model.vocab_size: 'x' is not an integer"):
        load(folder, "cpu", "torch")


def test_what_may_be_left_out_or_be_nothing_is(folder):  # noqa: F811
    change(folder, max_source=None, languages=None, alignment={"layer": 1, "after": True}, trained={}, window=None)
    change(folder, columns={"word": 1, "label": "tag", "time": None}, no_answer_threshold=-1, longest_seconds=0.0)
    assert load(folder, "cpu", "torch").alignment_rows == (1, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\ta b\na\tb c\nb\ta zz c\n", r"shortlist.txt, line 3 has 'zz', which is not a subword of this model: it belongs to another"),
        ("\ta b\na\tb c\nb a\n", r"shortlist.txt is damaged: each line must be .* or remove it \(see line 3\)"),
        ("\ta b\n\na\tb\n", r"or remove it \(see line 2\)"),
        ("a\tb\n", r"or remove it \(see line 1\)"),
    ],
)  # fmt: skip
def test_each_line_of_a_shortlist_is_looked_at(tmp_path, text, words):
    (tmp_path / shortlist.FILE).write_text(text, "utf-8")
    with pytest.raises(ValueError, match=words):
        shortlist.read(tmp_path, ["a", "b", "c"])
