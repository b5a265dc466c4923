"""Minimum Bayes risk against a double loop over sacreBLEU's own sentence scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from heed.evaluation.mbr import UTILITIES, expected_utilities, mbr_order

PLAIN = {"chrf": CHRF().sentence_score, "bleu": BLEU(effective_order=True).sentence_score}
TEXTS = [
    "A man sleeps.",
    "A man is sleeping.",
    "A man is asleep",
    "",
    "x",
    "A man sleeps.",
    "나는 책을 읽어요.",
    "12,5 %",
]
sentences = st.lists(st.sampled_from(["a", "man", "sleeps", "is", "책을", "sleeping.", ","]), max_size=7).map(" ".join)


def plain(texts, utility):
    return np.array([[PLAIN[utility](one, [other]).score for other in texts] for one in texts]).reshape(len(texts), -1)


@pytest.mark.parametrize("utility", UTILITIES)
def test_each_two_texts_score_as_sacrebleu_says(utility):
    np.testing.assert_allclose(UTILITIES[utility](TEXTS), plain(TEXTS, utility), rtol=0, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(sentences, min_size=1, max_size=6), st.sampled_from(sorted(UTILITIES)))
def test_the_expected_utility_is_the_mean_over_all(texts, utility):
    np.testing.assert_allclose(UTILITIES[utility](texts), plain(texts, utility), rtol=0, atol=1e-9)
    np.testing.assert_allclose(expected_utilities(texts, utility), plain(texts, utility).mean(axis=1), atol=1e-8)


def test_the_most_alike_is_first_and_a_text_that_occurs_again_last():
    texts = ["Two cats.", "A man sleeps.", "A man sleeps.", "A man is sleeping."]
    assert mbr_order(texts, [-1.0, -3.0, -2.0, -4.0], "chrf") == [2, 3, 0, 1]


def test_the_score_decides_among_equals():
    assert mbr_order(["ab", "cd", "ef"], [-3.0, -1.0, -2.0], "chrf") == [1, 2, 0]
    assert mbr_order([], [], "bleu") == []
