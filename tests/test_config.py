"""Settings from plain values, and errors that say where they stand."""

from dataclasses import asdict, dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.config import assignment, data_fields, from_data, load_toml, override, parse_json, read, to_toml


@dataclass(frozen=True)
class Training:
    steps: int
    rate: float = 1e-3
    warmup: int | None = None
    fast: bool = False
    note: str = ""


@dataclass(frozen=True)
class Recipe:
    training: Training
    model: Literal["marian", "gpt2"] = "marian"
    norm: Literal["post", "pre"] | None = None
    languages: list[str] = field(default_factory=list)


GOOD = {"model": "marian", "training": {"steps": 10, "rate": 1}, "languages": ["de", "en"]}


def test_values_become_a_config():
    assert read(Recipe, GOOD) == Recipe(Training(steps=10, rate=1.0), "marian", None, ["de", "en"])


def test_a_whole_number_serves_where_a_number_is_asked():
    assert type(read(Recipe, GOOD).training.rate) is float


def test_one_thing_may_stand_for_a_list_of_one():
    assert read(Recipe, {**GOOD, "languages": "de"}).languages == ["de"]


def test_none_is_none_where_it_may_be():
    assert read(Recipe, {"training": {"steps": 1, "warmup": None}, "norm": None}).training.warmup is None


def test_none_is_a_choice_where_it_is_among_them():
    @dataclass(frozen=True)
    class Tied:
        tied: Literal["all", "none"] | None = None

    assert read(Tied, dict([assignment("tied=none")])).tied == "none"
    assert read(Tied, {}).tied is None


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({**GOOD, "modle": 1}, "modle: no such setting; did you mean model?"),
        ({**GOOD, "zzz": 1}, "zzz: no such setting; there are training, model, norm, languages"),
        ({**GOOD, "training": {"steps": 1, "rat": 1}}, "training.rat: no such setting; did you mean rate?"),
        ({**GOOD, "training": {}}, "training.steps: must be set"),
        ({**GOOD, "training": {"steps": "10"}}, "training.steps: '10' is not an integer"),
        ({**GOOD, "training": {"steps": 10.0}}, "training.steps: 10.0 is not an integer"),
        ({**GOOD, "training": {"steps": True}}, "training.steps: True is not an integer"),
        ({**GOOD, "training": {"steps": None}}, "training.steps: None is not an integer"),
        ({**GOOD, "training": {"steps": 1, "rate": "x"}}, "training.rate: 'x' is not a number"),
        ({**GOOD, "training": {"steps": 1, "rate": float("nan")}}, "training.rate: nan is not a number"),
        ({**GOOD, "training": {"steps": 1, "fast": 1}}, "training.fast: 1 is not true or false"),
        ({**GOOD, "training": {"steps": 1, "note": 1}}, "training.note: 1 is not text in quotes"),
        ({**GOOD, "training": {"steps": 1, "warmup": "x"}}, "training.warmup: 'x' is not an integer"),
        ({**GOOD, "training": 3}, "training: 3 is a value; this is a section, [training]"),
        ({**GOOD, "model": "bart"}, "model: 'bart' is none of 'marian', 'gpt2'"),
        ({**GOOD, "norm": "bart"}, "norm: 'bart' is none of 'post', 'pre'"),
        ({**GOOD, "languages": 3}, "languages: 3 is not a list"),
        ({**GOOD, "languages": ["de", 3]}, "languages[1]: 3 is not text in quotes"),
    ],
)
def test_what_is_wrong_is_said(values, says):
    with pytest.raises(ValueError) as error:
        read(Recipe, values)
    assert str(error.value) == says


def test_a_setting_is_put_in_its_section():
    values = {"training": {"steps": 1}}
    override(values, "training.steps", 5)
    override(values, "data.source", ["a"])
    assert values == {"training": {"steps": 5}, "data": {"source": ["a"]}}


def test_a_setting_is_no_section():
    with pytest.raises(ValueError, match=r"training\.steps\.x: steps is a setting, not a section"):
        override({"training": {"steps": 1}}, "training.steps.x", 5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b=4000", 4000),
        ("a.b=4_000", 4000),
        ("a.b = 1e-3", 1e-3),
        ("a.b=true", True),
        ("a.b=cosine", "cosine"),
        ("a.b=average-last", "average-last"),
        ('a.b="2"', "2"),
        ("a.b=files/train.en", "files/train.en"),
        ('a.b=["one", "two"]', ["one", "two"]),
        ("a.b=[1, 2]", [1, 2]),
        ("a.b=none", None),
        ("a.b=null", None),
        ("a.b=x=y", "x=y"),
        ("a.b=", ""),
    ],
)
def test_a_value_on_the_command_line_is_read_as_in_toml(text, value):
    name, found = assignment(text)
    assert (name, found) == ("a.b", value)
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["training.steps", "=5", " =5"])
def test_an_assignment_without_a_name_or_a_value_is_refused(text):
    with pytest.raises(ValueError, match=r"write it as section\.name=value, for example training\.steps=4000"):
        assignment(text)


def test_a_missing_file_and_bad_toml_are_said(tmp_path):
    path = tmp_path / "recipe.toml"
    with pytest.raises(ValueError, match=r"recipe\.toml: no such file"):
        load_toml(path)
    path.write_text("[data\n")
    with pytest.raises(ValueError, match=r"recipe\.toml is not valid TOML: .*line 1"):
        load_toml(path)
    path.write_bytes(b"[data]\nlicence = '\xff'\n")
    with pytest.raises(ValueError, match=r"recipe\.toml is not valid TOML: .*utf-8"):
        load_toml(path)


@dataclass(frozen=True)
class Note:
    text: str
    number: float
    count: int
    names: list[str]
    sizes: list[int]
    flag: bool
    nothing: int | None = None


@dataclass(frozen=True)
class Notes:
    one: Note
    two: Note


NOTES = st.builds(
    Note,
    st.text(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63 - 1),
    st.lists(st.text()),
    st.lists(st.integers(0, 99)),
    st.booleans(),
)


@given(NOTES, NOTES)
def test_what_is_written_as_toml_is_read_back(tmp_path_factory, one, two):
    path = tmp_path_factory.getbasetemp() / "notes.toml"
    path.write_text(to_toml(asdict(Notes(one, two))), "utf-8")
    assert read(Notes, load_toml(path)) == Notes(one, two)


def test_what_is_not_set_stands_there_as_a_comment():
    assert "# nothing =\n" in to_toml({"one": asdict(Note("", 0.0, 0, [], [], False))})


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, b"[" * 100_000])
def test_json_that_is_nested_too_deeply_is_a_wrong_value(text):
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(text)


def test_toml_that_is_nested_too_deeply_is_a_wrong_value(tmp_path):
    deep = "[" * 100_000
    assert assignment(f"model.dim={deep}") == ("model.dim", deep)
    (tmp_path / "deep.toml").write_text(f"x = {deep}", "utf-8")
    with pytest.raises(ValueError, match=r"deep\.toml is not valid TOML: it is nested too deeply"):
        load_toml(tmp_path / "deep.toml")


def test_what_comes_from_the_data_is_known_by_name_and_has_a_default():
    @dataclass
    class Model:
        dim: int = 8
        words: int = from_data()
        labels: int = from_data(2)

    assert data_fields(Model) == {"words", "labels"} and asdict(Model()) == {"dim": 8, "words": 0, "labels": 2}
