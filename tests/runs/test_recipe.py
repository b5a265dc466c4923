"""Recipes: what a file says, what is said about it, and what becomes of it."""

import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

from heed.config import assignment, data_fields
from heed.data.filters import FiltersConfig
from heed.data.vectors import VectorsConfig
from heed.decoding.config import DecodingConfig
from heed.models import MODELS
from heed.models.transformer import PRESETS, Transformer, TransformerConfig
from heed.runs import distill, saved_recipe
from heed.runs.earlier import MOVED
from heed.runs.recipe import ModelChoice, differences, parse, read
from heed.tasks.translation import Translation, TranslationSettings
from heed.training.config import TrainingConfig
from heed.vocabularies.sentencepiece import SubwordsConfig
from tests.helpers import config_for

OURS = sorted(Path(__file__).parents[2].joinpath("recipes").glob("*.toml"))
STUDENT = OURS[0].with_name("distill.toml")
RECIPES = [path for path in OURS if path != STUDENT]
DATA = [("data.source", ["a.en"]), ("data.target", ["a.de"])]


def test_there_are_recipes():
    assert len(RECIPES) >= 2


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_every_setting_of_our_recipes_is_one(path):
    recipe = read(path, [])
    config = config_for(recipe.model, 10_000)
    assert config.dim % getattr(config, "heads", 1) == 0


def test_the_recipe_of_a_student_is_one_of_heed_distill():
    plan = distill.read(STUDENT, [("distill.teacher", ["runs/en-de"])])
    assert plan.distill.soft and not plan.recipe.task.settings.r_drop
    assert plan.recipe.model.settings["dim"] % plan.recipe.model.settings["heads"] == 0
    with pytest.raises(
        ValueError, match=re.escape(f"{STUDENT}: [distill] is about a student: heed distill TEACHER {STUDENT}")
    ):
        read(STUDENT, [])
    with pytest.raises(ValueError, match=r"^\[distill\] is about a student: heed distill TEACHER$"):
        read(None, [*DATA, ("distill.soft", 0.5)])


def test_files_that_a_recipe_names_may_be_changed_on_the_command_line(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("[data]\nsource = 'a.en'\ntarget = 'a.de'\n[training]\nsteps = 5\n")
    changed = read(path, [assignment("training.steps=7"), assignment('data.source=["b.en", "c.en"]')])
    assert (changed.training.steps, changed.data.source, changed.data.target) == (7, ["b.en", "c.en"], ["a.de"])


def full():
    """A recipe in which many things differ from their defaults."""
    changes = [
        "data.source=['a b.en', 'c\"d.en']", "data.target=['세 나무.de', 'e\\f.de']", "data.licence=CC BY 4.0", "data.holdout=7",
        "filters.max_ratio=3", "subwords.size=4000", "subwords.sampling=0.1", "model.preset=base", "model.norm=pre",
        "training.rate=1e-9", "training.compile=true", "training.checkpoint_every=10", "decoding.beam=2",
    ]  # fmt: skip
    return read(None, [assignment(change) for change in changes])


@pytest.mark.parametrize("recipe", [*(read(path, []) for path in RECIPES), read(None, DATA), full()])
def test_what_is_written_down_is_the_same_recipe(recipe, tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(recipe.to_toml(), "utf-8")
    assert read(path, []) == recipe
    assert not differences(recipe, read(path, []))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("training.step=5", "training.step: no such setting; did you mean steps?"),
        ("trainign.steps=5", "trainign: no such setting; did you mean training?"),
        ("training.zzzz=5", "training.zzzz: no such setting; there are auto, steps, time,"),
        ("training.steps=many", "training.steps: 'many' is not an integer"),
        ("training.rate=fast", "training.rate: 'fast' is not a number"),
        ("training.compile=1", "training.compile: 1 is not true or false"),
        ("training.schedule=line", "training.schedule: 'line' is none of 'noam', 'inverse-root', 'cosine', 'constant'"),
        ("model.preset=huge", "model.preset: 'huge' is none of 'auto', 'tiny', 'small', 'base', 'big'"),
        ("model.norm=none of it", "model.norm: 'none of it' is none of 'post', 'pre'"),
        ("model=tiny", "model: 'tiny' is a value; this is a section, [model]"),
        ("data.source=[1]", "data.source[0]: 1 is not text in quotes"),
        ("data.columns=[1]", "data.columns is [1]; it must be at least two columns, by number (counted from 1) or by name"),
        ("data.columns=[0, 1]", "data.columns is [0, 1]; it must be at least two columns, by number (counted from 1) or by name"),
        ("data.phrasebook=100", "data: give the training files (source and target, or tsv), or set data.phrasebook; not both"),
        ("subwords.sampling=5", "subwords.sampling is 5.0; it must be 0 (off) or a number below 1"),
        ("subwords.coverage=2", "subwords.coverage is 2.0; it must be above 0 and at most 1"),
        ("data.holdout=-1", "data.holdout is -1; it must be at least 1 without validation files"),
        ("data.holdout=0", "data.holdout is 0; it must be at least 1 without validation files"),
        ("training.steps=0", "training.steps is 0; it must be at least 1"),
        ("decoding.beam=0", "beam is 0 and nbest is 1; both must be at least 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(change, says, tmp_path):
    with pytest.raises(ValueError) as error:
        read(None, [*DATA, assignment(change)])
    assert str(error.value).startswith(says)
    path = tmp_path / "a.toml"
    path.write_text("")
    with pytest.raises(ValueError) as error:
        read(path, [*DATA, assignment(change)])
    assert str(error.value).startswith(says), "the file has no part in it"


def test_a_recipe_without_data_is_refused():
    with pytest.raises(ValueError, match="data: give the training files"):
        read(None, [])


def test_with_validation_files_nothing_need_be_held_out():
    valid = [("data.valid_source", ["v.en"]), ("data.valid_target", ["v.de"]), ("data.holdout", 0)]
    assert read(None, [*DATA, *valid]).data.holdout == 0


def test_differences_are_named_with_both_values():
    one, other = read(None, DATA), read(None, [*DATA, ("training.steps", 5), ("model.dim", 64)])
    assert differences(one, one) == []
    assert differences(one, other) == [("model.dim", None, 64), ("training.steps", 10_000, 5)]


@pytest.mark.parametrize(
    ("pairs", "preset"),
    [(1, "tiny"), (99_999, "tiny"), (100_000, "small"), (999_999, "small"), (1_000_000, "base"), (10**8, "base")],
)
def test_a_corpus_has_the_size_that_it_can_feed(pairs, preset):
    assert MODELS["transformer"].preset_for(pairs) == preset
    config = config_for(ModelChoice(), pairs)
    assert config == TransformerConfig(vocab_size=500, tied="all", norm="pre", **PRESETS[preset])


@pytest.mark.parametrize(("tokens", "preset"), [(999_999, "tiny"), (1_000_000, "small"), (50_000_000, "base")])
def test_a_language_model_has_the_size_that_its_text_can_feed(tokens, preset):
    assert MODELS["rnn-lm"].preset_for(tokens) == preset


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_that_is_named_holds_whatever_the_corpus(preset):
    config = config_for(ModelChoice(preset=preset), 5)
    assert {name: getattr(config, name) for name in PRESETS[preset]} == PRESETS[preset]


def test_the_base_preset_with_norms_after_the_sublayers_is_the_papers():
    paper = ModelChoice(preset="base", settings={"norm": "post"})
    assert config_for(paper, 5, 37_000, 37_000) == TransformerConfig(vocab_size=37_000)


def test_what_is_set_goes_over_the_preset():
    settings = {"dim": 64, "dropout": 0.0, "norm": "post", "output_bias": False}
    config = config_for(ModelChoice(preset="tiny", settings=settings), 5)
    assert (config.dim, config.dropout, config.norm, config.heads) == (64, 0.0, "post", PRESETS["tiny"]["heads"])


def test_two_vocabularies_tie_the_target_alone():
    config = config_for(ModelChoice(preset="tiny"), 5, 300, 500)
    assert (config.source_vocab_size, config.vocab_size, config.tied) == (300, 500, "target")
    Transformer(config)
    assert config_for(ModelChoice(settings={"tied": "none"}), 5, 300, 500).tied == "none"


@pytest.mark.parametrize("name", MODELS)
def test_every_setting_of_a_model_can_be_set_but_what_the_data_decide(name):
    kind = MODELS[name].config
    sides = ["source"] if MODELS[name].task == "language" else ["source", "target"]
    values, own = {"data": {side: ["a"] for side in sides}}, "vocab_size"
    if MODELS[name].task == "recommendation":
        values, own = {"data": {"interactions": ["a"]}}, "items"
    if MODELS[name].task.startswith("image-"):
        values, own = {"data": {"images": ["a"]}}, "labels"
    if MODELS[name].task.startswith("speech"):
        values = {"data": {"audio": ["a"]}}
    for field in fields(kind):
        model = {"name": name, field.name: getattr(kind(**{own: 9}), field.name)}
        if field.name in data_fields(kind):
            model[field.name] = 9
            with pytest.raises(ValueError, match=rf"^model\.{field.name}: it is determined by the data; leave it out$"):
                parse({**values, "model": model})
        else:
            assert parse({**values, "model": model}).model.setting(field.name) == model[field.name]


def test_none_leaves_a_setting_out_unless_it_is_a_choice():
    model = read(None, [*DATA, assignment("model.tied=none"), assignment("model.dim=none")]).model
    assert model.settings == {"tied": "none"}
    assert read(None, [*DATA, ("model.folder", "runs/a"), assignment("model.dim=none")]).model.setting("dim") is None
    with pytest.raises(ValueError, match=r"model\.dym: .*no such setting; did you mean dim\?"):
        read(None, [*DATA, assignment("model.dym=none")])


def test_the_size_of_the_vocabulary_is_no_setting():
    assert data_fields(TransformerConfig) == {"vocab_size", "source_vocab_size"}
    with pytest.raises(ValueError, match=r"^model\.vocab_size: it is determined by the data; leave it out$"):
        read(None, [*DATA, ("model.vocab_size", 8000)])


def test_a_recipe_needs_only_its_data():
    recipe = read(None, DATA)
    assert (recipe.task, recipe.model) == (Translation(TranslationSettings()), ModelChoice())
    assert (recipe.training, recipe.filters, recipe.subwords) == (TrainingConfig(), FiltersConfig(), SubwordsConfig())
    assert (recipe.vectors, recipe.decoding) == (VectorsConfig(), DecodingConfig())
    assert recipe.explicit == {"data.source", "data.target"}


def test_all_settings_are_in_one_commented_file_with_their_defaults():
    path = OURS[0].with_name("all-settings.toml")
    assert path.read_text("utf-8") == runpy.run_path(str(path.with_name("all_settings.py")))["text"]()
    assert read(path, []) == read(None, [("data.source", ["train.en"]), ("data.target", ["train.de"])])


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_setting_that_has_moved_says_where_to(old, new, tmp_path):
    sentence = f"{old} has moved: set {new} instead"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        read(None, [*DATA, (old, 1)])
    path = tmp_path / "mine.toml"
    section, name = old.split(".")
    path.write_text(f"[data]\nphrasebook = 300\n[{section}]\n{name} = 1\n")
    with pytest.raises(ValueError, match=f"^{re.escape(f'{path}: {sentence}')}$"):
        read(path, [])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"task": {"window": 5}}, "task.window: translation has no such setting; language has"),
        ({"task": {"name": "classification", "r_drop": 5.0}, "model": {"name": "bart"}},
         "task.r_drop: classification has no such setting; translation has"),
        ({"task": {"r_dorp": 5.0}}, "task.r_dorp: no such setting; did you mean r_drop?"),
        ({"training": {"metric": "accuracy"}}, "training.metric is 'accuracy'; translation has bleu, chrf, rouge, loss"),
        ({"task": {"name": "poetry"}}, "task.name: 'poetry' is none of 'translation', 'denoising', 'gap-sentences',"),
        ({"model": {"name": "gpt9"}}, "model.name: 'gpt9' is none of 'transformer', 'marian', 'bart', 'pegasus', 'mbart'"),
        ({"task": {"name": "classification"}}, "task.name is 'classification', which transformer cannot learn: set model.name to bart or gpt or gpt2 or ctrl"),
    ],
)  # fmt: skip
def test_a_setting_of_another_task_or_model_is_refused(settings, says):
    with pytest.raises(ValueError) as error:
        parse({"data": {"source": ["a.en"], "target": ["a.de"]}, **settings})
    assert str(error.value).startswith(says)


def test_a_recipe_may_begin_with_the_mark_of_an_editor(tmp_path):
    (tmp_path / "a.toml").write_text("[data]\nphrasebook = 300\n", "utf-8-sig")
    assert read(tmp_path / "a.toml", []).data.phrasebook == 300
    with pytest.raises(ValueError, match="is a folder: give a TOML file"):
        read(tmp_path, [])


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (("model.preset", "tiny-6-2"), {"norm": "pre", "window": 9}),
        (("model.name", "marian"), {}),
        (("model.folder", "other"), {}),
        (("model.heads", 4), {"dim": 64, "heads": 4, "dropout": 0.2, "norm": "pre", "window": 9}),
    ],
)
def test_settings_that_heed_stated_give_way_to_another_model_on_the_command_line(change, kept, tmp_path):
    """In a recipe of the user's own, a setting overrides a preset, wherever that is set."""
    settings = {"dim": 64, "heads": 2, "dropout": 0.2, "norm": "pre", "window": 9}
    given = parse({"data": {"source": ["a"], "target": ["b"]}, "model": settings})
    saved_recipe.write(tmp_path / "recipe.toml", given.to_toml(), "0" * 16)
    assert read(tmp_path / "recipe.toml", []).model.settings == settings
    found = read(tmp_path / "recipe.toml", [change])
    assert found.model.settings == kept and found.model.values()[change[0].split(".")[1]] == change[1]
    if change[0] == "model.preset":
        (tmp_path / "own.toml").write_text(given.to_toml(), "utf-8")
        assert read(tmp_path / "own.toml", [change]).model.settings == settings
