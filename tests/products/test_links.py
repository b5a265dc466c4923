"""Words linked, on maps made by hand."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.products.translator.alignment import WordPooling, agreement, first_words, join_links, links, words_of

SOURCE = ["▁투", "빅", "아", "▁사랑", "해"]
TARGET = ["▁To", "bigs", "▁love", "▁you"]


def test_a_piece_with_a_space_before_it_opens_a_word():
    assert words_of(SOURCE) == [0, 0, 0, 1, 1]
    assert words_of(["▁", "a", "▁b", "c"]) == [0, 0, 1, 1]
    assert words_of(["a", "▁b", "▁c"]) == [0, 1, 2]  # BART opens no text with a space
    assert words_of([]) == []


def test_weights_are_summed_over_a_source_word_and_averaged_over_a_target_word():
    weights = np.array([[0.1, 0.2, 0.3, 0.4, 0.0], [0, 0, 0.5, 0.3, 0.2], [0.25, 0, 0, 0.5, 0.25], [1, 0, 0, 0, 0.0]])
    np.testing.assert_allclose(WordPooling.of(SOURCE, TARGET)(weights), [[0.55, 0.45], [0.25, 0.75], [1, 0]])


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_rows_that_sum_to_one_still_do(data):
    pieces = st.lists(st.sampled_from(["▁a", "b"]), min_size=1, max_size=8).map(lambda rest: ["▁c", *rest])
    source, target = data.draw(pieces), data.draw(pieces)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(source)), len(target))
    table = WordPooling.of(source, target)(weights)
    assert table.shape == (words_of(target)[-1] + 1, words_of(source)[-1] + 1)
    np.testing.assert_allclose(table.sum(axis=1), 1)


def test_the_marks_at_the_end_of_a_word_do_not_speak_for_it():
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.0, 0.1, 0.9]])
    np.testing.assert_allclose(
        WordPooling.of(["▁나는", "▁가", "."], ["▁I", "▁go", "."])(weights), [[0.7, 0.2], [0.1, 0.2]]
    )
    np.testing.assert_allclose(
        WordPooling.of(["▁나는", "▁…", "."], ["▁I", "▁…", "."])(weights), [[0.7, 0.3], [0.05, 0.95]]
    )


def test_each_target_word_is_linked_to_the_source_word_it_looks_at_most():
    assert links(np.array([[0.1, 0.9], [0.6, 0.4], [0.2, 0.8]])) == [(0, 1), (1, 0), (1, 2)]


@pytest.mark.parametrize(
    ("table", "share"),
    [([[0.9, 0.1], [0.2, 0.8]], 1.0), ([[0.9, 0.1], [0.8, 0.2]], 0.5), ([[0.6, 0.4], [0.7, 0.3], [0.1, 0.9]], 2 / 3)],
)
def test_agreement_is_the_share_of_words_that_are_chosen_back(table, share):
    assert agreement(np.array(table)) == pytest.approx(share)


def test_a_part_begins_in_a_word_of_the_text():
    assert first_words("ab cd ef", ["ab", "cd ef"]) == [0, 1]
    assert first_words("ab cdef gh", ["ab cd", "ef", "gh"]) == [0, 1, 2]
    assert first_words("aaaa", ["aa", "a", "a"]) == [0, 0, 0]
    assert first_words("", [""]) == [0]


class Text(NamedTuple):
    """What is read of a translation."""

    source: str
    text: str


def test_the_tag_of_a_split_text_is_its_first_word_alone():
    whole, tag = Text(">>de<< one two. three four five.", "eins zwei drei vier"), ">>de<< "
    parts = [Text(">>de<< one two.", "eins zwei"), Text(">>de<< three four five.", "drei vier")]
    found = [[(0, 0), (1, 0), (2, 1)], [(0, 1), (1, 0), (3, 1)]]
    assert join_links(whole, parts, found, tag) == [(0, 0), (1, 0), (2, 1), (0, 3), (3, 2), (5, 3)]
    untagged = [part._replace(source=part.source.removeprefix(tag)) for part in (whole, *parts)]
    assert join_links(untagged[0], untagged[1:], [[(0, 0), (1, 1)], [(2, 1)]], "") == [(0, 0), (1, 1), (4, 3)]


def test_a_text_that_stands_in_its_own_tag_is_found_behind_it():
    whole, tag = Text(">>de<< de la", "von der"), ">>de<< "
    parts = [Text(">>de<< de", "von"), Text(">>de<< la", "der")]
    assert join_links(whole, parts, [[(1, 0)], [(1, 0)]], tag) == [(1, 0), (2, 1)]
