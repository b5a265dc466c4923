"""The card of an exported model: how its language is chosen, if there are several."""

import torch

from heed.convert.model_card import target_tags
from tests.helpers import translation_package


def test_a_card_names_the_token_of_each_target_language_once():
    directions = [["ko", "en"], ["en", "ko"], ["de", "en"]]
    said = target_tags(translation_package(torch.nn.Identity(), (None, None), {"directions": directions}))
    assert said == "\nEach source begins with the token of its target language: `>>en<<`, `>>ko<<`.\n"


def test_a_card_of_one_direction_says_nothing_of_tokens():
    for facts in ({}, {"directions": None}, {"directions": []}):
        assert target_tags(translation_package(torch.nn.Identity(), (None, None), facts)) == ""
