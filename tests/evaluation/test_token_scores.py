"""Scores of entities and of answers, beside the definitions of conlleval and of SQuAD's script."""

import re
import string
from collections import Counter

import numpy as np
import pytest

from heed.evaluation import answering, tagging
from heed.evaluation.classification import differences, intervals

EXPECTED = ["O O B-MISC I-MISC I-MISC O", "B-PER I-PER O", "O", "B-LOC B-LOC"]
FOUND = ["O O B-MISC I-MISC B-MISC O", "B-PER I-PER I-LOC", "B-ORG", "B-LOC I-LOC"]


def split(lines):
    return [line.split() for line in lines]


def test_entities_count_if_all_of_them_is_right():
    counts = tagging.count(split(FOUND), split(EXPECTED))
    assert counts.tolist() == [[0, 2, 1, 5, 6], [1, 2, 1, 2, 3], [0, 1, 0, 0, 1], [0, 1, 2, 1, 2]]
    found = tagging.measure(counts)
    assert found["precision"] == pytest.approx(100 / 6) and found["recall"] == pytest.approx(25)
    assert found["f1"] == pytest.approx(20) and found["accuracy"] == pytest.approx(100 * 8 / 12)
    kinds = tagging.type_scores(split(FOUND), split(EXPECTED))
    assert kinds["PER"] == {"f1": 100, "precision": 100, "recall": 100, "entities": 1}
    assert kinds["LOC"] == {"f1": 0, "precision": 0, "recall": 0, "entities": 2}
    nothing = tagging.measure(tagging.count([["O"]], [["O"]]))
    assert nothing == {"f1": 0, "precision": 0, "recall": 0, "accuracy": 100}


def test_sentences_without_expected_labels_are_refused_and_not_left_out():
    with pytest.raises(ValueError, match="shorter"):
        tagging.count([["O"], ["O"]], [["O"]])


def test_intervals_and_differences_are_those_of_the_sentences():
    same = tagging.count(split(EXPECTED), split(EXPECTED))
    other = tagging.count(split(FOUND), split(EXPECTED))
    assert intervals(tagging.measure, same, same, 50)["f1"] == (100, 100, 100)
    low, high = intervals(tagging.measure, other, other, 50)["f1"][1:]
    assert low <= 20 <= high and low < high
    assert differences(tagging.measure, other, same, other, 200)["f1"].p_value < 0.05
    assert differences(tagging.measure, same, same, other, 50)["f1"] == (0, 1)


def official(found, expected):
    """Exact match and F1 of one pair, as evaluate-v2.0.py has them."""

    def normalize(text):
        text = "".join(ch for ch in text.lower() if ch not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    gold, own = normalize(expected).split(), normalize(found).split()
    same = sum((Counter(gold) & Counter(own)).values())
    if len(gold) == 0 or len(own) == 0:
        return int(normalize(found) == normalize(expected)), int(gold == own)
    if same == 0:
        return int(normalize(found) == normalize(expected)), 0
    precision, recall = same / len(own), same / len(gold)
    return int(normalize(found) == normalize(expected)), 2 * precision * recall / (precision + recall)


TEXTS = [
    "The Cat.",
    "cat",
    "a  cat, an  animal",
    "cats",
    "",
    "the",
    "théâtre",
    "U.S.A",
    "usa",
    "cat cat dog",
    "나는 책을",
    "책을",
]


def test_answers_are_compared_as_squads_script_does():
    for found in TEXTS:
        for expected in TEXTS[:4] + TEXTS[6:]:
            [row] = answering.answer_scores([found], [[expected]])
            assert row.tolist() == pytest.approx(official(found, expected)), (found, expected)
    assert answering.answer_scores(["cat"], [["dog", "the cat"]]).tolist() == [[1, 1]]
    assert answering.answer_scores(["", "cat"], [[], ["the"]]).tolist() == [
        [1, 1],
        [0, 0],
    ]  # articles alone are no answer


def test_questions_with_and_without_answers_are_also_scored_by_themselves():
    scores, answerable = np.array([[1, 1], [0, 0.5], [0, 0]]), np.array([True, True, False])
    assert answering.measure(scores[:2], answerable[:2]) == {"exact": 50, "f1": 75}
    found = answering.measure(scores, answerable)
    assert found == pytest.approx(
        {"exact": 100 / 3, "f1": 50, "exact_HasAns": 50, "f1_HasAns": 75, "exact_NoAns": 0, "f1_NoAns": 0}
    )
    assert answering.measure_both(scores[:2], answerable[:2]).keys() == found.keys()


def test_the_threshold_is_the_best_of_all():
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 30):
        differences_, f1 = random.integers(-3, 4, size) / 2, random.random(size)
        answerable, written = random.random(size) < 0.5, random.random(size) < 0.8
        f1 = np.where(answerable, f1, ~written)  # of a question without an answer, an empty one is right

        def total(limit, own=differences_, f1=f1, answerable=answerable):
            return np.where(own > limit, ~answerable, f1).sum()

        chosen = answering.best_threshold(differences_, f1, answerable, written)
        assert total(chosen) == max(total(limit) for limit in np.arange(-3, 4, 0.25))
    edges = (np.array([True]), 0.5), (np.array([False]), -1.0)  # answer always, or never
    for answerable, limit in edges:
        found = answering.best_threshold(np.array([0.5]), np.array([1.0]) * answerable, answerable, np.array([True]))
        assert found == limit + (1 if limit > 0 else 0.5)
    assert answering.best_threshold(np.zeros(0), np.zeros(0), np.zeros(0, bool), np.zeros(0, bool)) == 0
