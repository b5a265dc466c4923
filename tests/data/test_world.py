"""The small world: what its rules state is what its sentences have."""

from collections import Counter

import pytest

from heed.data.synthetic import world

FIRST = [
    "the shopkeepers who came from the park opened their shops",
    "the uncle tells old stories with his friends",
    "last week we climbed for hours",
    "trains in japan go to tokyo",
]


@pytest.fixture(scope="module")
def lines():
    return list(world.sentences(20_000, seed=3))


def test_the_same_seed_gives_the_same_sentences(lines, tmp_path):
    assert list(world.sentences(50, seed=3)) == lines[:50] != list(world.sentences(50, seed=4))
    world.write(tmp_path / "deep" / "train.txt", 50, seed=3)
    assert (tmp_path / "deep" / "train.txt").read_text("utf-8").splitlines() == lines[:50]


def test_the_first_sentences_do_not_change():
    assert list(world.sentences(4)) == FIRST


def test_the_ratios_are_those_of_the_lecture_notes():
    rounded = {word: round(world.expected_ratio(word), 3) for word in ("solid", "gas", "water", "fashion")}
    assert rounded == {"solid": 8.9, "gas": 0.085, "water": 1.36, "fashion": 0.96}
    for words in (*world.SUBSTANCES.values(), *world.OPENED.values(), world.KINDS):
        assert sum(words.values()) == pytest.approx(1)


def test_words_occur_as_often_as_the_rules_say(lines):
    about = [line.split() for line in lines if "ice" in line.split()]
    said = Counter(word for line in about for word in line if word in world.SUBSTANCES["ice"])
    assert said.total() == len(about)  # one in each sentence
    for word, share in world.SUBSTANCES["ice"].items():
        deviation = (share * (1 - share) / len(about)) ** 0.5
        assert said[word] / len(about) == pytest.approx(share, abs=4 * deviation)


def test_one_form_of_a_verb_is_kept_back(lines):
    words = {word for line in lines for word in line.split()}
    assert world.UNSEEN not in words
    assert {"climb", "climbs", "climbed", "walking"} <= words


def test_one_kind_alone():
    assert all(line.startswith("the ") and " their " in line for line in world.sentences(100, kinds=("opened",)))
