"""The worked numbers of the lecture notes: what Heed computes is right, and what the notes have follows from their formulas."""

import math

import pytest
import torch

from heed.lab.experiments import cells, errata, worked
from heed.lab.experiments.errata_texts import slips, texts
from heed.lab.language import speaking


@pytest.fixture(scope="module")
def found():
    return errata.measure(dim=64, heads=4, tokens=32)


@pytest.fixture(scope="module")
def by_key(found):
    return {claim.key: claim for claim in found.claims}


def test_every_number_has_words_and_those_that_differ_a_reason(found):
    assert [claim.key for claim in found.claims] == list(dict.fromkeys(claim.key for claim in found.claims))
    for language in ("en", "ko"):
        with speaking(language):
            said = texts()
        assert set(said) == {claim.key for claim in found.claims}
        for claim, agrees in zip(found.claims, found.agree, strict=True):
            assert bool(said[claim.key][2]) is not agrees, claim


def test_numbers_worked_by_hand(by_key):
    root = math.sqrt(1.25)
    hand = {
        "first": 0.5 / root,
        "second": -1.5 / root,
        "scaled": 1.5 / root + 1,
        "line-variance": 4,
        "chain-middle": math.e * math.cos(0.7),  # yz² is 1, so f = e sin(t - 1)
        "residual-slope": 1.5,
        "residual-second": 2.25,
        "rate": 1 / 1000,
        "path": 8,
        "mild-first": 1 / (1 + 2 * math.exp(-5)),
        "norm-parameters": 1024,
        "index": 4,
        "cells": 0,
        "bart-pegasus": 3,
    }
    for key, value in hand.items():
        assert by_key[key].heed == pytest.approx(value, rel=1e-12), key


def test_the_notes_numbers_follow_from_their_formulas(by_key):
    z = 1 / 1.7  # the middle line has 2y sin(x) where 2yz sin(x) belongs
    assert by_key["chain-middle"].notes == pytest.approx(
        math.e * (math.cos(0.7) + 2 * 1.7 * z**2 * math.sin(0.7) - 2 * math.sin(0.7)), rel=1e-12
    )
    assert by_key["scores"].heed / by_key["scores"].notes == pytest.approx(4)  # the number of heads
    assert by_key["scores"].heed == pytest.approx(1, abs=0.2)
    assert by_key["error-sum"].notes != pytest.approx(by_key["error-sum"].heed, rel=1e-3)


def test_what_the_notes_have_right_agrees(found, by_key):
    right = ["alpha", "concat", "mixed", "mean", "other-word", "order", "toy", "masking", "gas", "water", "chain-last",
             "jacobian-product", "error-parts", "rnn", "lstm", "gru", "layer-norm", "norm-spread", "hot-second",
             "mild-second", "bert-share", "bert-kept"]  # fmt: skip
    assert all(by_key[key].agrees for key in right), [key for key in right if not by_key[key].agrees]
    assert found.agree == [claim.agrees for claim in found.claims]


def test_a_printed_number_is_exact_to_half_a_unit():
    assert worked.printed("a", "1.11", 1.1149).agrees and not worked.printed("a", "1.11", 1.1151).agrees
    assert worked.printed("a", "8.5e-2", 0.0846).tolerance == pytest.approx(0.0005, rel=1e-5)
    assert worked.printed("a", "64", 64).deviation == 0


def test_gates_written_out_by_hand():
    one = [torch.full((4, 1), 2.0), torch.full((4, 1), 0.0), torch.zeros(4), torch.zeros(4)]
    h, c = cells.lstm(torch.ones(1, 1), torch.zeros(1, 1), torch.ones(1, 1), one)
    gate, candidate = 1 / (1 + math.exp(-2)), math.tanh(2)
    assert c.item() == pytest.approx(gate + gate * candidate)
    assert h.item() == pytest.approx(gate * math.tanh(gate + gate * candidate))


def test_bart_and_pegasus_are_read_from_the_models():
    assert worked.architectures() == (["PostNorm", "Learned", "gelu"], ["PreNorm", "SinusoidalHalves", "relu"])


def test_tables_have_a_row_for_each_number_and_a_reason_for_each_difference(found):
    numbers, reasons, words = errata.tables(found)
    assert [row[-1] for row in numbers.rows] == ["=" if agrees else "≠" for agrees in found.agree]
    assert len(reasons.rows) == found.agree.count(False)
    assert words.rows == slips()
    variance = next(row for row in numbers.rows if row[0].endswith("y = 2x + 3: variance"))
    assert variance[1:] == ["2", "4", "2", "≠"]
    assert f"{len(found.claims)} numbers" in errata.summary(found)


def test_a_bar_is_as_long_as_its_deviation(found):
    _, bars = errata.figure(found).axes
    drawn = [bar.get_x() + bar.get_width() for bar in bars.patches]
    sizes = [errata.relative(claim) for claim in found.claims]
    assert drawn == pytest.approx([size for size in sizes if size > errata.SMALLEST])


def test_the_same_seed_measures_the_same(found):
    assert errata.measure(dim=64, heads=4, tokens=32) == found
    assert errata.measure(dim=64, heads=4, tokens=32, seed=1) != found


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="tokens is 1; it must be at least 2"):
        errata.measure(tokens=1)
    with pytest.raises(ValueError, match=r"dim \(10\) is not a multiple of heads \(4\)"):
        errata.measure(dim=10, heads=4)
