"""Placeholders of a translation: each that its source has, and no others."""

import re
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heed.text.insertion import _NUMBER, _foreign_numbers, bounds, place
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


def numbers_by_definition(source, translation, wrong):
    known = {match[0] for match in _NUMBER.finditer(source)}
    matches = [match.span() for match in _NUMBER.finditer(translation) if match[0] not in known]
    return [(start, end) for start, end in matches if all(end <= left or right <= start for left, right in wrong)]


@given(st.text(st.sampled_from("123.% {}a")), st.text(st.sampled_from("123.% {}a")))
@example("", "1{1}2{2a}3 4")
def test_numbers_are_foreign_outside_of_invented_spans(source, translation):
    wrong = [match.span() for match in re.finditer(r"\{\w+\}|2a", translation)]
    assert _foreign_numbers(source, translation, wrong) == numbers_by_definition(source, translation, wrong)


class Position(int):
    """Counts how often one is compared with others."""

    compared = 0

    def __le__(self, other):
        Position.compared += 1
        return int(self) <= int(other)

    def __ge__(self, other):
        Position.compared += 1
        return int(self) >= int(other)


def test_foreign_numbers_are_found_in_linear_time():
    translation = "1 {a} " * 500
    wrong = [(Position(match.start()), Position(match.end())) for match in re.finditer(r"\{a\}", translation)]
    assert len(_foreign_numbers("", translation, wrong)) == 500
    assert 0 < Position.compared <= 3000


@given(st.text(st.sampled_from("a b\n\t.,;:!?\"'”“()[]¿…\u3000")))
@example("")
@example("“ab.” \n")
def test_nothing_goes_before_what_opens_a_translation_nor_after_what_ends_it(text):
    end = re.search(rf"[{re.escape(STOPS + CLOSING)},;:]*\s*$", text).start()
    start = re.match(rf"[{re.escape(OPENING)}]*", text).end()
    assert bounds(text) == (min(start, end), end)
