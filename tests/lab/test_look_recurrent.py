"""A look at a recurrent model: the attention it has or has not, and its states."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from heed.lab.attention import PARTS, from_json, to_json
from heed.lab.attention_map import title as title_of
from heed.lab.draw import draw
from heed.lab.picture import _blocks
from tests.lab.test_look_page import browser, contexts, lit, pixels, title, visit  # noqa: F401 (fixtures)


@pytest.fixture
def attending(make):
    """A look at a recurrent model with cross attention."""
    look = make(layers=1, heads=1)
    s, t, rng = len(look.source), len(look.target), np.random.default_rng(0)
    states = {"encoder": np.tanh(rng.normal(size=(s, 12))), "decoder": np.tanh(rng.normal(size=(t, 12)))}
    return replace(look, encoder=np.zeros((0, 0, s, s)), decoder=np.zeros((0, 0, t, t)), states=states)


@pytest.fixture
def without_attention(attending):
    """A look at a recurrent model without attention."""
    return replace(attending, cross=np.zeros((0, 0, *attending.cross.shape[2:])), alignment=[])


def test_json_gives_back_what_was_written(attending, without_attention):
    for look in (attending, without_attention):
        again = from_json(to_json(look))
        assert to_json(again) == to_json(look)
        for part in PARTS:
            assert getattr(again, part).shape == getattr(look, part).shape
        for name, states in look.states.items():
            assert np.abs(again.states[name] - states).max() <= 0.5e-4 + 1e-7


@pytest.mark.parametrize("states", [np.zeros((3, 12)), np.zeros(10), np.full((10, 2), np.nan)])
def test_states_that_do_not_fit_are_said(attending, states):
    with pytest.raises(
        ValueError, match=r"states of the encoder have shape .*; it should be \(10, hidden\) finite numbers"
    ):
        replace(attending, states={"encoder": states})


def test_an_attention_that_is_not_there_cannot_be_asked_for(attending, without_attention, tmp_path):
    with pytest.raises(ValueError, match="This model has no encoder self-attention; it has cross"):
        draw(attending, tmp_path / "a.png", part="encoder")
    with pytest.raises(ValueError, match="This model has no cross attention; it has no attention at all"):
        draw(without_attention, tmp_path / "a.png", layer=1)


def test_the_picture_has_the_states_beside_the_attention_or_alone(attending, without_attention, tmp_path):
    kinds = [
        [type(block).__name__ for block, *_ in _blocks(look, "cross", layer, None)]
        for look, layer in ((attending, None), (attending, 1), (without_attention, None))
    ]
    assert kinds == [["Detail", "StatesPanel", "StatesPanel"], ["Detail"], ["StatesPanel", "StatesPanel"]]
    assert title_of(attending, "cross", None, None) == title_of(attending, "cross", 1, 1) == "Cross attention"
    assert draw(without_attention, tmp_path / "a.png") == ""
    pixels = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).astype(int)
    assert ((pixels[..., 0] - pixels[..., 2]) > 60).mean() > 0.02  # orange: what is below zero


def test_a_model_that_lacks_one_kind_of_attention_is_drawn_with_the_others(make):
    look = make()
    s = len(look.source)
    blocks = _blocks(replace(look, encoder=np.zeros((0, 0, s, s))), "cross", None, None)
    assert [(type(block).__name__, block.part) for block, *_ in blocks] == [
        ("Detail", "cross"), ("Grid", "cross"), ("Grid", "decoder"),
    ]  # fmt: skip


def test_the_page_shows_the_attention_there_is_and_the_states(attending, visit):  # noqa: F811
    page = visit(attending)
    assert page.eval_on_selector_all("#parts button", "all => all.map(one => one.textContent)") == ["Cross"]
    assert title(page) == "Cross attention"
    assert page.locator("#states").is_visible() and page.locator("#no-attention").is_hidden()
    heads = page.eval_on_selector_all(".state-map h3", "all => all.map(one => one.textContent)")
    assert heads == ["Encoder · 10 tokens × 12 units", "Decoder · 11 tokens × 12 units"]
    before = pixels(page, ".state-map canvas")
    page.locator(".state-map canvas").first.hover(position={"x": 3, "y": 3})
    value = attending.states["encoder"][0, 0]
    assert page.text_content("#state-readout") == f"After “투”, unit 1 of the encoder: {value:.3f}"
    page.click("#theme")
    assert pixels(page, ".state-map canvas") != before


def test_the_page_of_a_model_without_attention_says_so(without_attention, visit):  # noqa: F811
    page = visit(without_attention)
    assert "This model has no attention" in page.text_content("#no-attention")
    assert page.locator("#no-attention").is_visible() and page.locator("#states").is_visible()
    assert page.locator("#workspace").is_hidden()
    assert [text for text, _ in lit(page, "target")][:2] == ["To", "big"]
    page.hover("#source-line .chip")
    page.keyboard.press("ArrowRight")
    page.click("#next")
    page.click("#theme")
    assert page.text_content("#so-far-title") == "Step 2 of 11"


def test_a_page_of_attentions_has_no_states(look, visit):  # noqa: F811
    page = visit(look)
    assert page.locator("#states").is_hidden() and page.locator("#no-attention").is_hidden()
