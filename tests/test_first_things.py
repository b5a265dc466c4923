"""The measure of what people type first into the demo."""

import pytest
from bench import first_things
from bench.first_things import First

from heed.data.synthetic.phrasebook import corpus, talk


@pytest.mark.parametrize(
    "one, other",
    [
        ("I'm a student.", "i am a student"),
        ("Don't worry!", "Do not worry."),
        ("I can't go", "I cannot go."),
        ("What's your name?", "what is your name"),
        ("I’d like a refund.", "I would like a refund"),
        ("It's 3,000 won.", "It is 3000 won"),
        ("Let's go!", "Let us go."),
        ("Thank you, Minsu.", "Thank you Minsu"),
        ("It is two o'clock p.m.", "It is two oclock pm"),
    ],
)
def test_case_punctuation_and_contractions_do_not_count(one, other):
    assert first_things.normalized(one) == first_things.normalized(other)


@pytest.mark.parametrize("one, other", [("My mother's bag", "My mother is bag"), ("Go left.", "Go right.")])
def test_other_words_count(one, other):
    assert first_things.normalized(one) != first_things.normalized(other)


def test_inside_are_texts_whose_words_are_all_known():
    texts = [
        First("a", "안녕하세요!", ("Hello.", "Hi.")),
        First("a", "안녕 로봇", ("Hello, robot.",)),
        First("b", "네", ("Yes.",)),
    ]
    judged = first_things.judge(texts, ["hi", "Hello, robot!", "No."], {"안녕하세요", "안녕", "네"})
    assert [(one.inside, one.right) for one in judged] == [(True, True), (False, True), (True, False)]
    assert first_things.report(judged).splitlines()[-1] == "| all | 1 of 2 (50.0 %) | 2 of 3 (66.7 %) |"


def test_what_is_wrong_is_written_to_read(tmp_path):
    judged = first_things.judge([First("b", "네", ("Yes.", "Yeah."))], ["No."], {"네"})
    first_things.write(tmp_path / "wrong.tsv", judged)
    assert (tmp_path / "wrong.tsv").read_text("utf-8").splitlines()[1] == "b\tyes\t네\tNo.\tYes. | Yeah."


def test_the_list_has_200_texts_with_references(tmp_path):
    texts = first_things.read(first_things.LIST)
    assert len(texts) == len({one.korean for one in texts}) == 200
    (tmp_path / "short.tsv").write_text("greetings\t안녕\n", "utf-8")
    with pytest.raises(
        ValueError, match=r"short.tsv:1: a line has a topic, a Korean text and references, between tabs"
    ):
        first_things.read(tmp_path / "short.tsv")


def test_the_fit_is_measured_on_what_was_seen_and_on_what_was_held_out():
    expressions, held = first_things.fit_sample(40)
    known = {one.korean + "?" * one.asks: one.english for one in talk.EXPRESSIONS}
    assert len({*expressions}) == 40 and all(known[source] == target for source, target in expressions)
    bags = {corpus.split_of([(word, 0) for word in target.rstrip(".?").split()]) for _, target in held}
    assert len({*held}) == 40 and "test" in bags
    assert (expressions, held) == first_things.fit_sample(40)
    assert first_things.matching(["it's hot", "No"], [("더워", "It is hot."), ("네", "Yes.")]) == "1 of 2 (50.0 %)"


def test_the_two_lists_are_read_and_no_text_is_twice_in_one():
    for path in (first_things.LIST, first_things.LIST.with_name("first_things_valid.tsv")):
        texts = [one.korean for one in first_things.read(path)]
        assert len(texts) >= 200 and len({*texts}) == len(texts)
