"""What a run takes over from the pre-trained model that it starts from."""

from dataclasses import replace

import pytest
import torch

from heed.decoding.config import UNGUARDED, DecodingConfig
from heed.runs.pretrained import check_folder, with_base_search
from heed.runs.recipe import parse
from tests.helpers import translation_package

BASE = translation_package(torch.nn.Identity(), (None, None), {"decoding": {"beam": 2, "length_penalty": 1.5}})


def recipe(**decoding):
    return parse({"data": {"source": ["a.en"], "target": ["a.de"]}, "decoding": decoding})


def test_search_settings_that_the_recipe_does_not_set_are_the_pretrained_models():
    found = with_base_search(recipe(), BASE).decoding
    assert (found.beam, found.length_penalty) == (2, 1.5)


def test_a_search_setting_that_the_recipe_sets_holds_even_where_it_equals_the_default():
    default = recipe().decoding.beam
    found = with_base_search(recipe(beam=default), BASE).decoding
    assert (found.beam, found.length_penalty) == (default, 1.5)
    assert default == 5


def test_a_model_without_guards_has_them_once_it_is_tuned():
    theirs = {"beam": 4, "max_length": 511, "force_end": True, **UNGUARDED}
    base = BASE._replace(facts={"decoding": theirs})
    own = with_base_search(recipe(), base).decoding  # from en to de, as the names of its files say
    assert own == replace(DecodingConfig(), beam=4)
    own = with_base_search(recipe(avoid_loops=False, avoid_overlong=False), base).decoding
    assert own == replace(
        DecodingConfig(), beam=4, avoid_loops=False, avoid_overlong=False, max_length=511, force_end=True
    )
    summaries = parse({"data": {"source": ["articles"], "target": ["summaries"]}})
    assert with_base_search(summaries, base).decoding == replace(
        DecodingConfig(), beam=4, max_length=511, force_end=True
    )
    ours = BASE._replace(facts={"decoding": theirs, "trained": {"step": 3}})
    assert with_base_search(recipe(), ours).decoding == replace(DecodingConfig(), **theirs)


def test_without_a_pretrained_model_the_recipe_stays_as_it_is():
    own = recipe(beam=3)
    assert with_base_search(own, None) is own
    assert with_base_search(own, BASE._replace(facts={})) == own


def test_a_missing_folder_is_refused_with_the_command_that_makes_it(tmp_path):
    (tmp_path / "base.toml").write_text("# Makes it:\n#   heed train base.toml --out runs/base\n", "utf-8")
    with pytest.raises(ValueError, match=r"make it first with: heed train base.toml --out runs/base, or start"):
        check_folder("runs/base", tmp_path)
    with pytest.raises(ValueError, match="runs/bas, which does not exist: give an existing run or model, or start"):
        check_folder("runs/bas", tmp_path)
    check_folder(str(tmp_path), tmp_path)
