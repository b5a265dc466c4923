"""The translations of one request: what each model of a route was given."""

import pytest

from heed.service.http.models import TranslatedSentence, TranslationOptions
from heed.service.http.request import RouteTranslator
from heed.text.passages import Passage
from heed.text.protected import ModelRequest


@pytest.mark.parametrize(
    ("models", "source", "given"),
    [(1, "안녕", "안녕"), (2, "안녕", "hello"), (2, "고마워", "고마워")],
)
def test_the_last_model_reads_what_the_one_before_it_wrote(models, source, given):
    def said(text):
        return TranslatedSentence(text, 0.0, [], [(text, 0.0)])

    outputs = {
        ModelRequest("잘 가"): [said("bye"), said("tschüss")],
        ModelRequest("안녕"): [said("hello"), said("hallo")],
    }
    own = RouteTranslator(None, None, [None] * models, TranslationOptions(), outputs)
    assert own._given(Passage(source, 0, len(source), "servus", 0, 6)) == given
