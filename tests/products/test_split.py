import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.products.translator.split import cut, split, split_texts
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary

TEXTS = st.text(alphabet="ab cd ,.;:!?…。！，、；é나 ", max_size=120)


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.integers(1, 30))
def test_no_character_is_lost_and_every_part_is_within_the_limit(text, limit):
    parts = split(text, len, limit)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < len(part) <= limit for part in parts)


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.integers(1, 30))
def test_every_part_stands_in_the_text_as_it_is(text, limit):
    place = 0
    for part in split(text, len, limit):
        assert part in text[place:]
        place = text.index(part, place) + len(part)


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet="ab cd ,.;:!?… ", max_size=60), st.integers(1, 12))
def test_words_that_fit_are_not_cut(text, limit):
    parts = split(text, lambda part: len(part.split()), limit)
    assert [word for part in parts for word in part.split()] == text.split()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=5), max_size=30), st.integers(5, 20))
def test_parts_without_marks_are_as_full_as_can_be(words, limit):
    parts = split(" ".join(words), len, limit)
    for part, after in itertools.pairwise(parts):
        assert len(f"{part} {after.split()[0]}") > limit


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("One two. Three four! Five?", 100, ["One two. Three four! Five?"]),
        ("One two. Three four! Five?", 18, ["One two.", "Three four!", "Five?"]),
        ("One, two: three; four.", 10, ["One, two:", "three;", "four."]),
        ("One, two three, four", 11, ["One,", "two three,", "four"]),
        ("우리는 간다。너는 안 간다。", 10, ["우리는 간다。", "너는 안 간다。"]),
        ("At 12:30 he had 1,000,000 won, or so", 30, ["At 12:30 he had 1,000,000 won,", "or so"]),
        ("At 12:30 he had 1,000,000 won, or so", 20, ["At 12:30 he had", "1,000,000 won, or so"]),
        ("abcdefgh", 3, ["ab", "cd", "ef", "gh"]),
    ],
)
def test_a_text_is_cut_where_it_hurts_least(text, limit, parts):
    assert split(text, len, limit) == parts


def test_a_character_larger_than_the_limit_is_left_whole():
    assert split("ab", lambda part: 3 * len(part), 2) == ["a", "b"]


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.integers(1, 30))
def test_a_text_is_cut_off_after_the_last_word_that_fits(text, limit):
    found = cut(text, len, limit)
    assert text.startswith(found) and len(found) <= limit
    words = [text[: match.end()] for match in re.finditer(r"\S+", text)]
    fitting = [prefix for prefix in words if len(prefix) <= limit]
    assert found == (text if len(text) <= limit else fitting[-1] if fitting else text[:limit])


def test_at_least_a_character_is_left_of_a_text_that_is_cut_off():
    assert cut("ab", lambda part: 3 * len(part), 2) == "a"


class Letters(Vocabulary):
    """A vocabulary of letters that leaves texts as they are."""

    special = SpecialTokens(0, 1, 2, 3)

    def clean(self, text):
        return text

    def encode(self, texts):
        return [list(map(ord, text)) for text in texts]


def test_space_around_a_text_is_not_part_of_it():
    for texts in ([" ab", "c"], ["ab ", "c"], [" ab", "", "c"]):
        found = split_texts(texts, Letters(), 9)
        assert found.texts == ["ab", "c"] and found.ids == [[97, 98], [99]] and found.owners == [0, len(texts) - 1]
    assert split_texts(["ab", "c"], Letters(), 2).texts == ["a", "b", "c"]
