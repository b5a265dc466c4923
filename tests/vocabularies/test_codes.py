"""Control codes: an unknown one is refused with those that are near, or with some that there are."""

from types import SimpleNamespace

import pytest

from heed.vocabularies.codes import code_id, code_ids, codes_of, some_codes

BOOKS = SimpleNamespace(codes={"Books": 5, "Links": 6, "Reviews": 7})


def test_a_code_has_its_id_and_none_has_none():
    assert code_ids(BOOKS, ["Links", None, "Books"]) == [6, None, 5]
    assert codes_of(SimpleNamespace()) == {}


@pytest.mark.parametrize(
    ("vocabulary", "words"),
    [
        (BOOKS, "the model has no control code 'book'; did you mean Books?"),
        (SimpleNamespace(codes={"Horror": 1, "Law": 2}), "the model has no control code 'book'; it has Horror, Law"),
        (SimpleNamespace(), "the control code is 'book', but the model has no control codes: leave it out"),
    ],
)
def test_an_unknown_code_is_refused_with_what_there_is(vocabulary, words):
    with pytest.raises(ValueError, match=words):
        code_id(vocabulary, "book")


def test_of_many_codes_eight_are_listed_and_the_rest_is_counted():
    assert some_codes(dict.fromkeys("hgfedcba", 0)) == "a, b, c, d, e, f, g, h"
    assert some_codes(dict.fromkeys("jihgfedcba", 0)) == "a, b, c, d, e, f, g, h and 2 more"
