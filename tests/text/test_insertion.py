"""Placeholders of a translation: each that its source has, and no others."""

import re
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heed.text.insertion import bounds, place
from heed.text.sentences import CLOSING, OPENING, STOPS


class Span(NamedTuple):
    start: int
    end: int
    text: str


def find(text):
    return [Span(*match.span(), match[0]) for match in re.finditer(r"\{\w+\}", text)]


@pytest.mark.parametrize(
    ("source", "translation", "links", "right"),
    [
        ("see {a} now", "jetzt {a} sehen", [], "jetzt {a} sehen"),
        ("see {a} now", "jetzt sehen", [(0, 1), (1, 1), (2, 0)], "jetzt {a} sehen"),
        ("see {a} now", "jetzt {b} {a} sehen", [], "jetzt {a} sehen"),
        ("see {a} now", "jetzt {a} sehen {a}", [], "jetzt {a} sehen"),
        ("{a} or {a}", "{a} oder", [(1, 1)], "{a} oder {a}"),
        ("see {a} now", "jetzt {b} sehen", [(0, 2), (1, 2), (2, 0)], "jetzt {a} sehen"),
        ("see now", "jetzt {b} sehen", [], "jetzt sehen"),
    ],
)
def test_what_is_lost_is_put_where_it_belongs_and_what_is_invented_goes(source, translation, links, right):
    assert place(source, find(source), translation, links, find) == right


@given(st.text(st.sampled_from("a b\n\t.,;:!?\"'”“()[]¿…\u3000")))
@example("")
@example("“ab.” \n")
def test_nothing_goes_before_what_opens_a_translation_nor_after_what_ends_it(text):
    end = re.search(rf"[{re.escape(STOPS + CLOSING)},;:]*\s*$", text).start()
    start = re.match(rf"[{re.escape(OPENING)}]*", text).end()
    assert bounds(text) == (min(start, end), end)
