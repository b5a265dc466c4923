"""SQuAD's JSON, what is wrong in it, and the windows in which contexts are read."""

import json

import numpy as np
import pytest

from heed.data import squad
from heed.data.answers import WindowSizes, answer_rows, collate_answers, question_inputs
from heed.data.squad import Answer, Question, SquadConfig
from heed.vocabularies.labels import Labels
from tests.convert.encoders import vocabulary

KINDS = ("wordpiece", "roberta", "albert", "bigbird")
CONTEXT = "the dog sees a red house, 나는 책을 읽어요. she never finds the street."


def write(path, qas, context=CONTEXT):
    path.write_text(
        json.dumps({"version": "v2.0", "data": [{"paragraphs": [{"context": context, "qas": qas}]}]}), "utf-8"
    )
    return path


def test_both_versions_are_read(tmp_path):
    qas = [
        {"id": "a", "question": "who?", "answers": [{"text": "the dog", "answer_start": 0}]},
        {"id": "b", "question": "why?", "answers": [], "is_impossible": True},
        {"id": "c", "question": "what?"},
    ]
    found = squad.read(write(tmp_path / "x.json", qas))
    assert found[0] == Question("a", "who?", CONTEXT, (Answer("the dog", 0),))
    assert found[1].answers == () and found[1].answered and not found[2].answered
    assert squad.has_unanswerable(found) and not squad.has_unanswerable([found[0], found[2]])


def test_an_answer_that_is_not_where_it_says_is_told_with_its_question():
    assert Question("a", "?", CONTEXT, (Answer("dog", 4),)).misaligned == ""
    says = "question a: its answer is 'dog', but at 5 the context has 'og '"
    assert Question("a", "?", CONTEXT, (Answer("dog", 5),)).misaligned == says
    assert "at -1 the context has" in Question("a", "?", CONTEXT, (Answer("dog", -1),)).misaligned


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda q: [q, q], r"x\.json has two questions with the id a"),
        (lambda q: [{**q, "question": 3}], r"article 1, paragraph 1, question a has no 'question' that is a text"),
        (
            lambda q: [{**q, "answers": [{"text": "x"}]}],
            r"question a has no 'answer_start' that is a number: it is not SQuAD",
        ),
        (lambda q: [{"question": "?"}], r"paragraph 1 has no 'id' that is a text"),
        (lambda q: [], r"x\.json has no questions: it should be SQuAD JSON"),
    ],
)
def test_what_is_not_squads_json_is_told_with_its_place(tmp_path, change, says):
    question = {"id": "a", "question": "who?", "answers": [{"text": "the", "answer_start": 0}]}
    with pytest.raises(ValueError, match=says):
        squad.read(write(tmp_path / "x.json", change(question)))
    (tmp_path / "y.json").write_text("{")
    with pytest.raises(ValueError, match=r"y\.json is not JSON"):
        squad.read(tmp_path / "y.json")


@pytest.mark.parametrize("kind", KINDS)
def test_every_window_tells_where_the_answer_is_or_that_it_is_not_there(kind):
    text, answer = vocabulary(kind), "책을"
    own = Question("a", " who sees?", CONTEXT, (Answer(answer, CONTEXT.index(answer)),))
    [read] = question_inputs([(own.text, own.context)], text, text.special, WindowSizes(32, 6, 8))
    assert len(read.windows) > 1 and not read.cut
    special, inside = text.special, 0
    rows = answer_rows(read, own, special)
    covered = set()
    for (start, end), (ids, (first, last)) in zip(read.windows, rows, strict=True):
        whole = [*special.before, *ids, special.last]
        assert len(whole) <= 32
        assert whole[read.offset(special) : -1] == read.context.ids[start:end]
        covered |= set(range(start, end))
        if first == last == 0:
            continue
        inside += 1
        spans = read.context.spans[start + first - read.offset(special) : start + last - read.offset(special) + 1]
        assert own.context[spans[0][0] : spans[-1][1]] == answer
    assert inside and covered == set(range(len(read.context.ids)))
    sources, targets = zip(*rows, strict=True)
    batch = collate_answers(sources, targets, (special, Labels.special))
    assert np.array_equal(batch.labels, targets) and (batch.segments is not None) == special.segments
    if special.segments:
        assert batch.segments[0].tolist()[: read.offset(special)] == [0] * read.offset(special)
        assert batch.segments[0].sum() == batch.valid[0].sum() - read.offset(special)


def test_a_long_question_is_cut_and_one_that_spells_its_own_end_is_refused():
    text = vocabulary("wordpiece")
    [read] = question_inputs([("who sees a house " * 9, CONTEXT)], text, text.special, WindowSizes(64, 8, 10))
    assert read.cut and len(read.question) == 10
    with pytest.raises(ValueError, match=r"question 1, 'who \[SEP\] sees', contains the token that ends a question"):
        list(question_inputs([("who [SEP] sees", CONTEXT)], text, text.special, WindowSizes()))
    [empty] = question_inputs([("who", "")], text, text.special, WindowSizes())
    assert empty.windows == [(0, 0)] and answer_rows(empty, Question("a", "who", ""), text.special)[0][1] == [0, 0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "data.train is empty: give SQuAD JSON files for question answering"),
        ({"train": ["a.json"], "holdout": 0}, "data.holdout is 0; it must be at least 1 if data.valid is empty"),
    ],
)
def test_a_recipe_without_questions_to_learn_or_to_validate_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        SquadConfig(**settings)
    assert SquadConfig(train=["a.json"], valid=["b.json"], holdout=0).holdout == 0
