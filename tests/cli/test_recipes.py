"""heed recipes, and built-in recipes by name."""

from pathlib import Path

import pytest

from heed.cli.main import main
from heed.config import load_toml
from heed.convert import hub
from heed.runs import built_in

ROOT = Path(__file__).parents[2] / "recipes"


def test_all_recipes_of_the_repository_are_listed_with_a_sentence(capsys):
    assert main(["recipes"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert sorted(rows) == sorted(path.stem for path in ROOT.glob("*.toml"))
    assert rows["phrasebook"] == "The demo: Heed's own phrasebook, Korean to English"
    assert rows["gpt-cola"].endswith("as Radford et al. (2018) fine-tune it")


def test_a_recipe_is_shown_and_copied_as_it_is(capsys, tmp_path):
    text = (ROOT / "gpt2.toml").read_text("utf-8")
    assert main(["recipes", "gpt2"]) == 0
    assert capsys.readouterr().out == text
    assert main(["recipes", "gpt2.toml", "--out", str(tmp_path / "my.toml")]) == 0
    assert (tmp_path / "my.toml").read_text("utf-8") == text


def test_models_that_recipes_start_from_have_names_that_can_be_opened():
    for path in ROOT.glob("*.toml"):
        name = load_toml(path).get("model", {}).get("folder")
        assert name is None or hub.is_path(name) or hub.is_name(name), f"{path.name}: {name}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["recipes", "gtp2"], "gtp2: no such recipe; did you mean gpt2?"),
        (["recipes", "--out", "my.toml"], "--out writes one recipe: give its name"),
        (["recipes", "gpt2", "--out", "mine.toml"], "mine.toml already exists: choose another file"),
        (["train", "gtp2", "--out", "run"], "gtp2: no such file or recipe; did you mean gpt2? heed recipes lists"),
        (["train", "here/gpt2.toml", "--out", "run"], "gpt2.toml: no such file"),
        (["train", "mine.toml", "--out", "run"], "no such setting"),
        (["distill", "teacher", "gtp2", "--out", "run"], "gtp2: no such file or recipe"),
    ],
)
def test_what_is_wrong_is_said(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = Path("mine.toml")
    mine.write_text("[mine]\n", "utf-8")
    assert main(arguments) == 1
    assert words in capsys.readouterr().err
    assert mine.read_text("utf-8") == "[mine]\n"


def test_a_name_means_a_file_of_the_user_first_and_then_a_built_in_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("phrasebook").mkdir()  # as heed phrasebook --out phrasebook does
    for given in ("phrasebook", "recipes/phrasebook.toml"):
        assert built_in.find(Path(given)) == ROOT / "phrasebook.toml"
    for own in (Path("phrasebook.toml"), Path("recipes/phrasebook.toml"), Path("gpt2")):
        own.parent.mkdir(exist_ok=True)
        own.write_text("", "utf-8")
        assert built_in.find(own) == own


def test_an_installed_package_has_its_recipes_inside(tmp_path, monkeypatch):
    monkeypatch.setattr(built_in, "_PLACES", (tmp_path, ROOT))
    (tmp_path / "inside.toml").write_text("# One.\n", "utf-8")
    assert built_in.names() == ["inside"] and built_in.about("inside") == "One"
