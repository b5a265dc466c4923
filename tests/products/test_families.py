"""Translators of other families: language tags, special tokens before a text, and the last position of a model."""

import pytest

from heed.decoding.config import DecodingConfig
from heed.products.translator.translator import Translator
from tests.convert.small import ENDS, package, speaking

SHORT = DecodingConfig(beam=2, max_length=8)


def translator(kind, decoding=SHORT, ends=None, **more):
    own = speaking(package(kind), ENDS[kind] if ends is None else ends)
    return Translator([own.model], own.vocabularies, decoding=decoding, **more)


def test_a_language_tag_stands_before_each_part_of_a_text_that_is_cut():
    marian = translator("marian", max_source=24)
    text = ">>fra<< " + "나는 책을 읽어요. " * 6
    found = marian.translate(text)
    assert len(found.parts) > 2
    assert all(part.source.startswith(">>fra<< 나는") for part in found.parts)
    assert found.source == marian.source.clean(text)
    words = len(found.source.split())
    assert all(i < words for i, _ in found.alignment)
    cut = marian.translate(text, too_long="cut")
    assert cut.source.startswith(">>fra<< 나는") and not cut.parts


@pytest.mark.parametrize("kind", ["marian", "bart", "pegasus"])
def test_a_text_that_fills_all_places_can_be_looked_at(kind):
    """64 places, and an end that never comes."""
    never = translator(kind, DecodingConfig(beam=1, max_length=100), ends=-50.0)
    found = never.translate("나는 책을 읽어요.")
    assert len(found.ids) == 63
    assert found.attentions["cross"].shape[2] == 63
    assert never.look("나는 책을 읽어요.").target[-1] == "</s>"


def test_what_a_bart_begins_with_is_forced_unless_it_is_left_to_the_model():
    bart = translator("bart")
    assert bart.translate("나는 책을 읽어요.").ids[0] == bart.special[1].before[0]
    free = translator("bart", DecodingConfig(beam=2, max_length=8, force_begin=False))
    found = free.translate("나는 책을 읽어요.")
    assert found.ids[0] != free.special[1].before[0]
    assert found.attentions["cross"].shape[2] == len(found.ids)
    assert [piece for piece in free.look("나는 책을 읽어요.").target if piece != "</s>"] == [
        piece for piece in found.tokens if piece != "</s>"
    ]


def test_spaces_in_a_row_are_no_words():
    bart = translator("bart")
    for text in ("나는  책을  읽어요.", "나는 책을 읽어요. "):
        found = bart.translate(text)
        assert all(i < 3 for i, _ in found.alignment)
