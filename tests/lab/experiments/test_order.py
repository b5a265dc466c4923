"""Order: what is the same without positions, and what small translators make of it."""

import re
from dataclasses import replace

import pytest

from heed.lab.experiments import order
from heed.lab.experiments.order_results import DIRECTIONS, POSITIONS
from heed.lab.experiments.role_sentences import role_pairs
from heed.lab.experiments.small_translators import SIZES, train_translator


@pytest.fixture(scope="module")
def few():
    """Minsu and Junho love each other, or do not: a handful of sentences, each with its twin."""
    found = [own for own in role_pairs("plain")["train"] if {"Minsu", "Junho", "love"} <= {*re.findall("Minsu|Junho|love", own.english)}]  # fmt: skip
    assert 2 < len(found) < 12
    return found


@pytest.fixture(scope="module")
def lab(few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "role_pairs", lambda level: {"train": few, "test": few})
        return order.measure(steps=1)


def test_every_sentence_has_its_twin_in_the_same_split():
    for level in ("plain", "polite"):
        found = role_pairs(level)
        assert all(len(own) > 200 for own in found.values())
        for pairs in found.values():
            sources = {own.english for own in pairs}
            assert all(own.twin_english in sources and own.twin_english != own.english for own in pairs)
            assert len({own.english: own.korean for own in pairs}) == len(pairs) == len({own.korean for own in pairs})
    plain = {own.english: own.korean for own in role_pairs("plain")["test"]}
    assert plain["Minsu does not miss Seoyeon."] == "민수는 서연이를 그리워하지 않아."


def test_without_positions_an_order_is_a_set(lab):
    own = lab.outputs
    assert own.none_difference < 1e-13 < 0.1 < own.waves_difference
    assert own.decoder_difference > 0.01  # a decoder sees what came before, and so knows an order
    first, second = own.none
    for one, other in zip(first, second[::-1], strict=True):
        assert one == pytest.approx(other, abs=1e-13)


def test_the_toy_of_the_notes(lab):
    alone, large, waves = lab.toy
    assert alone.first == alone.last == [3, -2, 4] and alone.same_word == pytest.approx(1)
    assert large.first == [1003, -2, 4] and large.last == [3, -2, 1004]
    assert large.same_word < 0.01 and large.same_place > 0.9999  # the place is told, the word is lost
    assert waves.first == [3, -1, 4] and waves.same_word < 1
    assert waves.same_place == pytest.approx(alone.same_place, abs=0.05)


def test_what_the_first_layer_reads_is_the_sum(lab):
    for total, x, position in zip(lab.sum.total, lab.sum.embedding, lab.sum.position, strict=True):
        assert total == pytest.approx([a + b for a, b in zip(x, position, strict=True)])
    assert lab.sum.position[0][:2] == [0, 1] and len(lab.sum.words) == 5


def test_without_positions_twins_are_translated_alike_and_with_them_they_can_be_told_apart(few):
    own, found = few[0], {}
    pairs = [(own.english, own.korean), (own.twin_english, own.twin_korean)]
    for positions in ("none", "sinusoidal"):
        found[positions] = train_translator(pairs, positions, 30, seed=0).translate([source for source, _ in pairs])
    assert found["none"][0] == found["none"][1] in (own.korean, own.twin_korean)
    assert found["sinusoidal"] == [own.korean, own.twin_korean]


def test_the_same_seed_gives_the_same_translator(few):
    pairs = [(own.english, own.korean) for own in few]
    one, two = (train_translator(pairs, "learned", 2, seed=3).model.state_dict() for _ in range(2))
    assert all((weight == two[name]).all() for name, weight in one.items())
    assert one["positions.places.weight"].shape == (SIZES["max_length"], SIZES["dim"])


def test_what_is_shown_is_what_was_measured(lab):
    assert [(own.direction, own.positions) for own in lab.scores] == [(d, p) for d in DIRECTIONS for p in POSITIONS]
    assert all(own.as_twin == 1 for own in lab.scores if (own.direction, own.positions) == ("en-ko", "none"))
    scores = [replace(own, bleu=float(number)) for number, own in enumerate(lab.scores)]
    changed = replace(lab, scores=scores)
    assert "from English 0.0, 1.0, 2.0; from plain Korean 3.0, 4.0, 5.0; from polite Korean 6.0, 7.0, 8.0" in order.summary(changed)  # fmt: skip
    bars = next(panel for panel in order.figure(changed).axes if panel.patches)
    assert [bar.get_width() for bar in bars.patches] == [own.bleu for own in scores]
    table = order.tables(changed)[2]
    assert [row[2] for row in table.rows] == [f"{own.bleu:.1f}" for own in scores]


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="steps is 0; it must be at least 1"):
        order.measure(steps=0)
