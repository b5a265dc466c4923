"""Attention by hand against heed.nn.attention, and frozen numbers that anyone can work out."""

import math
from dataclasses import asdict
from itertools import pairwise

import pytest
import torch

from heed.lab.experiments import attention, by_hand
from heed.lab.experiments.attention_results import DICTIONARY


@pytest.fixture(scope="module")
def lab():
    return attention.measure()


def test_a_cold_look_up_is_the_dictionary_and_a_hot_one_the_mean(lab):
    own = lab.look_up
    assert DICTIONARY == {"alpha": 2023, "beta": 2017, "gamma": 2015, "delta": 2010}
    assert own.alpha[-1] == pytest.approx(DICTIONARY["alpha"], abs=1e-9)
    assert own.delta[-1] == pytest.approx(DICTIONARY["delta"], abs=1e-9)
    assert own.halfway[-1] == pytest.approx(2020)  # between 2023 and 2017, where a dictionary has no key
    for values, sign in ((own.alpha, 1), (own.delta, -1)):  # each colder one is nearer, up to rounding
        assert all(sign * (colder - hotter) > -1e-9 for hotter, colder in pairwise(values))
    e = math.e  # at temperature 1 the scores are 1, 0, −1, 0
    expected = [weight / (e + 2 + 1 / e) for weight in (e, 1, 1 / e, 1)]
    assert own.weights[own.temperatures.index(1.0)] == pytest.approx(expected, abs=1e-15)


def test_three_ways_to_the_dot_product(lab):
    for own in lab.similarities:
        assert own.dot == pytest.approx(own.by_angle, abs=1e-14) == pytest.approx(own.by_coordinates)
    found = {own.vector: own for own in lab.similarities}
    assert found[4.0, 2.0].dot == 10 and found[4.0, 2.0].cosine == pytest.approx(1)  # longer, not turned
    assert found[4.0, 2.0].distance == pytest.approx(math.sqrt(5))
    assert found[-1.0, 2.0].dot == found[-1.0, 2.0].cosine == 0  # a right angle
    assert found[-2.0, -1.0].cosine == pytest.approx(-1)


def test_three_words_are_what_a_pencil_gives(lab):
    own = lab.words
    assert own.q == [[2, 1, 2], [0, 2, 1], [1, 2, 2]]
    assert own.k == [[1, 2, 1], [1, 1, 1], [1, 2, 2]]
    assert own.v == [[2, 1, 2], [2, 2, 1], [1, 2, 3]]
    assert own.scores == [[6, 5, 8], [5, 3, 6], [7, 5, 9]]
    assert own.untransposed != own.scores and own.untransposed[0] == [5, 9, 7]
    first = [math.exp(score / math.sqrt(3)) for score in (6, 5, 8)]
    assert own.weights[0] == pytest.approx([power / sum(first) for power in first], abs=1e-15)
    assert own.difference < 1e-14


def test_a_wrong_number_would_show(lab):
    made = attention.build((by_hand.W_Q, by_hand.W_K, by_hand.W_V), by_hand.W_O, heads=1)
    made.out.weight[0, 0] += 1e-6
    x = torch.tensor([by_hand.X], dtype=torch.float64)
    assert attention._largest([(made(x)[0], lab.words.output)]) > 1e-7


def test_eight_heads_of_three_numbers_and_both_masks(lab):
    assert len(lab.heads) == 8 and lab.heads_difference < 1e-13
    assert all(sum(row) == pytest.approx(1) for head in lab.heads for row in head)
    assert lab.masks.difference < 1e-15
    assert lab.masks.after[0] == [1, 0, 0] and lab.masks.after[2] == pytest.approx(lab.masks.weights[2])
    (a, b, _), c = lab.masks.weights[1], lab.masks.after[1]
    assert c == pytest.approx([a / (a + b), b / (a + b), 0])


def test_padding_changes_nothing_if_it_is_masked(lab):
    assert lab.padding.lengths[0] == 5 and lab.padding.lengths[-1] == 512
    assert max(lab.padding.masked) < 1e-12
    assert min(lab.padding.unmasked[1:]) > 1e-3


def test_what_is_shown_is_what_was_measured(lab):
    shown = {table.title: table for table in attention.tables(lab)}
    transposed = shown["Why K is transposed: words are rows in both Q and K, and a product multiplies rows by columns"]
    assert all(row[1] == row[2] for row in transposed.rows)
    weights = shown["Their weights, softmax(q Kᵀ / √3)"].rows[0][1:]
    assert [float(cell) for cell in weights] == pytest.approx(lab.words.weights[0], abs=1e-16)
    panels = attention.figure(lab).axes
    assert panels[0].lines[0].get_ydata().tolist() == [row[0] for row in lab.look_up.weights]
    cells = [panel.images[0].get_array().tolist() for panel in panels if panel.images]
    assert cells[4] == lab.words.weights and cells[7:15] == lab.heads and cells[-1] == lab.masks.before
    assert "by at most" in attention.summary(lab)


def test_the_same_seed_measures_the_same(lab):
    assert asdict(attention.measure()) == asdict(lab)
    torch.manual_seed(1)
    assert attention._heads()[0] != lab.heads
