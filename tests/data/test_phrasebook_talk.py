"""What the phrasebook says beside its grammar: forms of verbs, remarks, vocatives, single words."""

from random import Random

import pytest

from heed.data.synthetic.phrasebook import corpus, patterns, talk, words
from heed.data.synthetic.phrasebook.english_inflection import past
from heed.data.synthetic.phrasebook.patterns import Entry
from heed.data.synthetic.phrasebook.topic_words import TABLES


@pytest.mark.parametrize("verb, right", [("go", "went"), ("study", "studied"), ("move", "moved"), ("clean", "cleaned")])
def test_the_past_of_a_verb(verb, right):
    assert past(verb) == right


def test_an_activity_takes_the_forms_of_its_verb():
    walk = Entry(("산책",), ("take", "a", "walk"), "name")
    assert patterns.english_words(walk, "ed") == ("took", "a", "walk")
    assert patterns.english_words(walk, "ing") == ("taking", "a", "walk")
    assert patterns.english_words(walk, "") == ("take", "a", "walk")


def test_every_activity_has_a_past_that_english_has():
    pasts = {past(entry.english[0]) for slot in ("act", "skill") for entry in TABLES.entries[slot]}
    right = "cleaned cooked did drove exercised graduated got made moved ordered played practiced sang started studied"
    assert pasts == {*right.split(), "swam", "took", "traveled", "went", "worked"}


@pytest.mark.parametrize(
    "stem, level, right",
    [("춥", "polite", {"춥네요"}), ("멀", "formal", {"머네요"}), ("멀", "plain", {"멀다", "머네"})],
)
def test_a_remark_has_its_own_ending(stem, level, right):
    rng = Random(0)
    assert {patterns.remarked(stem, level, rng) for _ in range(40)} == right


def said(monkeypatch, korean, asks, english):
    """The ways in which one set expression is drawn."""
    one = [talk.Expression(korean, asks, english)]
    monkeypatch.setattr(talk, "EXPRESSIONS", one)
    monkeypatch.setattr(talk, "SHORT", one)
    rng = Random(1)
    return [corpus.pair_of(talk.expression_line(rng)) for _ in range(600)]


def test_thanks_are_said_before_the_name_in_english(monkeypatch):
    named = [one for one in said(monkeypatch, "고마워", False, "Thank you.") if "Minsu" in one.target]
    assert {one.target for one in named} == {"Thank you, Minsu."}
    assert {one.source.split()[0].rstrip(",") for one in named} >= {"민수야", "민수", "고마워"}


def test_a_title_before_a_sentence_has_a_comma(monkeypatch):
    called = [one for one in said(monkeypatch, "어디 있어", True, "Where are you?") if "Mom" in one.target]
    assert called and all(one.source.startswith("엄마, 어디") for one in called)  # 엄마 어디 있어? asks where she is
    assert {one.target for one in called} == {"Mom, where are you?"}


def test_a_word_alone_has_one_meaning_and_is_in_train():
    known = dict(talk.WORDS)
    assert known["고양이"] == "cat" and known["대한민국"] == "South Korea"
    assert "배" not in words.WORDS and not known.keys() & talk.STATED  # a boat, or a stomach
    rng = Random(2)
    for _ in range(50):
        line = talk.word_line(rng)
        made = corpus.pair_of(line)
        assert known[made.source.rstrip(".!")].lower() == made.target.rstrip(".").lower()
        assert corpus.split_of_line(line) == "train"


def test_a_pattern_that_says_no_more_than_a_word_is_not_held_out():
    for weekday in ("Monday", "Sunday"):
        assert corpus.split_of([(weekday, 0)]) == "train"
