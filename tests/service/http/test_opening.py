"""Opening the models of a service: which direction of a multilingual model is meant if none is named."""

from types import SimpleNamespace

import pytest

from heed.service.http.opening import _default, _translator

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


def test_a_model_that_states_no_languages_learns_those_of_the_service():
    own = SimpleNamespace(facts={"languages": {"source": None, "target": None}, "origin": {}}, directions=[])
    served = _translator("opus", own, "ko-en", "opus")
    assert (served.source, served.target) == ("ko", "en")
    assert served.translator.facts == {"languages": {"source": "ko", "target": "en"}, "origin": {}}
