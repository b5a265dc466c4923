"""Opening the models of a service: which direction of a multilingual model is meant if none is named."""

from types import SimpleNamespace

import pytest

from heed.service.http.opening import _default

PAIRS = [("de", "fr"), ("de", "en"), ("ko", "fr"), ("en", "ko")]


@pytest.mark.parametrize(
    ("languages", "pairs", "chosen"),
    [
        (None, PAIRS, ("de", "en")),
        ({}, PAIRS[:1], ("de", "fr")),
        ({"source": "ko"}, PAIRS, ("ko", "fr")),
        ({"target": "ko"}, PAIRS, ("en", "ko")),
        ({"source": "de", "target": "fr"}, PAIRS, ("de", "fr")),
        ({"source": "xx"}, PAIRS, ("de", "en")),
    ],
)
def test_the_default_direction_is_the_one_stated_or_one_with_english(languages, pairs, chosen):
    assert _default(SimpleNamespace(facts={"languages": languages}, directions=pairs)) == chosen
