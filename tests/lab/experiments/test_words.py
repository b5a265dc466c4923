"""The lab of words: ratios, analogies and the next word, against what can be worked out by hand."""

import numpy as np
import pytest
import torch

from heed.data.synthetic import world
from heed.data.vectors.word_text import read_words
from heed.lab.experiments import next_words, word_spaces, words
from heed.training.word_vectors import Trained


@pytest.fixture(scope="module")
def small():
    return words.measure(sentences=5000, dim=8, epochs=1, heard=320)


def test_a_probability_is_a_share_of_the_pairs():
    text = read_words(["ice is solid", "ice is water water", "steam is gas"], cut="spaces")
    assert word_spaces.probabilities(text, 1, "ice") == {"is": 1.0}
    assert word_spaces.probabilities(text, 3, "ice") == pytest.approx({"is": 2 / 5, "solid": 1 / 5, "water": 2 / 5})
    half = word_spaces.probabilities(text, 2, "ice", by_distance=True)  # is 2, solid 1/2, water 1/2
    assert half == pytest.approx({"is": 2 / 3, "solid": 1 / 6, "water": 1 / 6})


def test_counted_ratios_are_near_the_rules():
    text = read_words(world.sentences(30_000, seed=5), cut="spaces")
    for own in word_spaces.count_ratios(text, 5):
        assert own.ratio == pytest.approx(own.rule, rel=0.4)
        assert own.ratio == own.ice / own.steam


def test_a_glove_that_fits_its_counts_has_their_ratios():
    text = read_words(["ice solid gas", "steam gas", "steam solid gas gas"], cut="spaces")
    size = len(text.words)
    counts = np.full((size, size), 1e-9)
    for i, j, x in zip(*word_spaces.cooccurrences(text, 5, by_distance=True), strict=True):
        counts[i, j] = x
    log = np.log(counts)  # log X = w w̃ with w̃ = 1 and w = log X
    fitted = Trained((log + np.eye(size)).astype(float), [], np.eye(size), np.zeros((2, size)))
    for word in ("solid", "gas"):
        counted, learned = word_spaces.glove_ratio(text, 5, fitted, word)
        assert learned == pytest.approx(counted)


def test_vectors_of_rank_and_gender_solve_all_analogies():
    rows = {}
    for at, (man, woman) in enumerate(world.PEOPLE):
        rows[man], rows[woman] = np.eye(12)[at] + 0.4 * np.eye(12)[10], np.eye(12)[at] + 0.4 * np.eye(12)[11]
    others = [w for q in word_spaces.questions().values() for four in q for w in four] + list(word_spaces.NEAR)
    names = list(dict.fromkeys([*rows, *others]))
    rng = np.random.default_rng(0)
    matrix = np.stack([rows.get(name, 9 * rng.normal(size=12)) for name in names]).astype(np.float32)
    space = word_spaces.describe(names, Trained(matrix, []))
    assert space.analogies["man and woman"] == (42, 42)
    assert space.queen[0][0] == "queen"
    assert space.analogies["capital and country"][1] == 56 and space.analogies["verb and past"][1] == 90


def test_ngrams_back_off_and_add_a_hundredth():
    model = next_words.Ngrams([["a", "b", "c"], ["a", "b", "d"], ["a", "b", "c"]], 3)
    size = 5  # a b c d </s>
    seen = model.next_words(["a", "b"])
    assert seen["c"] == pytest.approx((2 + 0.01) / (3 + 0.01 * size))
    assert seen["a"] == pytest.approx(0.01 / (3 + 0.01 * size))
    assert sum(seen.values()) == pytest.approx(1)
    assert model.next_words(["d", "b"]) == model.next_words(["c", "b"])  # never seen: b alone
    assert model.next_words(["d", "b"])["c"] == pytest.approx((2 + 0.01) / (3 + 0.01 * size))
    assert model.next_words(["z"])["a"] == pytest.approx((3 + 0.01) / (12 + 0.01 * size))  # no context at all


@pytest.mark.parametrize("name", ["RNN", "Transformer"])
def test_a_network_learns_who_opened_what(name):
    text = [["the", who, "opened", what] for who, what in (("cats", "eyes"), ("shops", "doors"))] * 4
    model = next_words.build(name, sorted({word for line in text for word in line}), 32, 0)
    assert model.learn(text, 80, 0, 16, 2e-2) < 0.25  # ln 2 / 5 = 0.14 a word: who opens cannot be known
    for line in text[:2]:
        answers = model.next_words(line[:3])
        assert max(answers, key=answers.get) == line[3]
        assert sum(answers.values()) == pytest.approx(1, abs=1e-5)


def test_padding_is_no_target():
    model = next_words.build("Transformer", ["a", "b"], 8, 0)
    short, padded = torch.tensor([[0, 1, 0]]), torch.tensor([[0, 1, 0, -1, -1]])
    one, other = model._loss(model.model, short), model._loss(model.model, padded)
    assert one.count == other.count == 2
    assert one.nll.item() == pytest.approx(other.nll.item(), rel=1e-5)


def test_everything_is_measured_said_and_drawn(small):
    assert [own.word for own in small.ratios] == list(word_spaces.PROBES)
    assert set(small.spaces) == {"skip-gram", "GloVe", "fastText"}
    titles = [table.title for table in words.tables(small)]
    assert titles[-2:] == [f"{prompt} ___" for prompt in words.PROMPTS]
    assert [row[0] for row in words.tables(small)[0].rows][:3] == ["P(k | ice)", "P(k | steam)", "ratio"]
    bars = [bar for bar in words.figure(small).axes[0].patches]
    assert [bar.get_height() + 1 for bar in bars[4:8]] == pytest.approx([own.ratio for own in small.ratios])
    for blank in small.blanks:
        assert all(len(own) >= 5 and sum(own.values()) <= 1 + 1e-6 for own in blank.models.values())
    assert f"{small.spaces['skip-gram'].analogies['man and woman'][0]} of 42 analogies" in words.summary(small)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="sentences is 10; it must be at least 5000"):
        words.measure(sentences=10)
    with pytest.raises(ValueError, match="dim is 7; it must be even"):
        words.measure(dim=7)
