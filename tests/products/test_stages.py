"""The stages of a translation: which texts are translated in one piece."""

from types import SimpleNamespace

import pytest

from heed.products.translator.split import source_size
from heed.products.translator.stages import fitting
from heed.vocabularies.vocabulary import SpecialTokens


class Letters:
    """A vocabulary of letters, with tokens before each text."""

    def __init__(self, before):
        self.special = SpecialTokens(0, 1, 2, 3, before=before)

    def clean(self, text):
        return text.strip()

    def encode(self, texts):
        return [list(map(ord, text)) for text in texts]


@pytest.mark.parametrize("before", [(), (7,), (7, 8)])
def test_a_text_fits_if_it_and_its_special_tokens_have_room(before):
    source, target = Letters(before), Letters(())
    translator = SimpleNamespace(source=source, special=(source.special, target.special), max_source=6)
    texts = ["", " ", *("x" * n for n in range(1, 8)), "  xxx "]
    fits = [bool(source.clean(text)) and source_size(source.clean(text), source) <= 6 for text in texts]
    assert fitting(translator, texts) == fits and 0 < sum(fits) < 7
