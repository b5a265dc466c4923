"""Tables of labelled texts: columns by number and by name, JSON lines, choices."""

import pytest

from heed.data.tables import QuestionTable, rows, table
from heed.vocabularies.text_parts import SEPARATOR, InputTokens, TextParts, join_parts, split_parts
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def read(made):
    return [line[:2] for line in made]


def test_columns_by_name_and_by_number_and_fields_are_the_same(tmp_path):
    named = write(tmp_path / "a.tsv", "\ufeffid\tsentence1\tsentence2\tscore", "1\tone\ttwo\t3.5", '2\t"x\ty\t0')
    plain = write(tmp_path / "b.tsv", "1\tone\ttwo\t3.5", '2\t"x\ty\t0')
    fields = write(
        tmp_path / "c.jsonl",
        '{"sentence1": "one", "sentence2": "two", "score": 3.5}',
        '{"score": 0, "sentence2": "y", "sentence1": "\\"x"}',
    )
    names, expected = ["sentence1", "sentence2", "score"], [(f"one{SEPARATOR}two", "3.5"), (f'"x{SEPARATOR}y', "0")]
    assert read(table(named, names)) == read(table(plain, [2, 3, 4])) == read(table(fields, names)) == expected
    assert [line.location for line in table(named, names)] == ["a.tsv:2", "a.tsv:3"]


@pytest.mark.parametrize(
    ("name", "lines", "columns", "says"),
    [
        ("a.tsv", ["text\tlabel", "one\t1"], ["text", "score"], "a.tsv has no column 'score'; its header has text, label"),
        ("a.tsv", ["one\t1", "two"], [1, 2], "a.tsv, line 2 has 1 column; 1 and 2 are needed (data.columns, --columns)"),
        ("a.jsonl", ['{"text": "one"}'], ["text", "label"], "a.jsonl, line 1 has no 'label' (data.columns, --columns); it has text"),
        ("a.jsonl", ['["one", 1]'], ["text", "label"], "a.jsonl, line 1 has no 'text' and 'label' (data.columns, --columns); it has no"),
        ("a.jsonl", ['{"text": "one", "label": null}'], ["text", "label"], "a.jsonl, line 1 has no 'label' (data.columns, --columns)"),
        ("a.jsonl", ["{"], ["text", "label"], "a.jsonl, line 1 is not JSON: "),
        ("a.jsonl", ['{"a": ["b"], "c": 1}'], ["a", "c"], "a.jsonl, line 1 has a list, ['b'], which only multiple choice supports"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_with_file_and_line(tmp_path, name, lines, columns, says):
    with pytest.raises(ValueError) as error:
        list(table(write(tmp_path / name, *lines), columns))
    assert str(error.value).startswith(f"{tmp_path}/{says}")


def test_questions_of_several_formats(tmp_path):
    story = write(tmp_path / "story.tsv", "a\tb\tgood\tbad\t1", "c\td\tgood\tbad\t2")
    race = write(
        tmp_path / "race.jsonl", '{"article": "a", "question": "b", "options": ["good", "bad"], "answer": "A"}'
    )
    parts = SEPARATOR.join(["a b", "good", "bad"])
    assert read(QuestionTable(2, first=1)(story, [1, 2, 3, 4, 5]))[0] == (parts, "1")
    assert read(QuestionTable()(race, ["article", "question", "options", "answer"])) == [(parts, "0")]
    plain = write(tmp_path / "plain.tsv", "a\tx\ty\tz\t2")
    assert read(QuestionTable()(plain, [1, 2, 3, 4, 5])) == [(SEPARATOR.join(["a", "x", "y", "z"]), "2")]
    assert [cells for _, cells in rows(race, ["options"])] == [[["good", "bad"]]]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (['{"c": "a", "o": ["x", "y"], "l": 0}', '{"c": "a", "o": ["x", "y", "z"], "l": 0}'],
         "q.jsonl, line 2 has 3 choices, but {}/q.jsonl, line 1 has 2: every question must have the same number"),
        (['{"c": "a", "o": ["x"], "l": 0}'], "q.jsonl, line 1 has 1 choices; a question needs at least two"),
        (['{"c": "a", "o": ["x", "y"], "l": 2}'],
         "q.jsonl, line 1: the answer is '2'; it must be a number from 0 to 1 (task.first_choice) or a letter from A to B"),
    ],
)  # fmt: skip
def test_questions_that_do_not_fit_are_said_with_file_and_line(tmp_path, lines, says):
    with pytest.raises(ValueError) as error:
        list(QuestionTable()(write(tmp_path / "q.jsonl", *lines), ["c", "o", "l"]))
    assert str(error.value) == f"{tmp_path}/{says.format(tmp_path)}"


@pytest.mark.parametrize("delimiter", [(9,), (2, 2)])
def test_parts_come_back_as_they_were_joined(delimiter):
    for parts in ([[1, 3], [4]], [[1]], [[], [1], []], [[2, 1], [1, 2, 3]]):
        assert split_parts(join_parts(parts, delimiter), delimiter) == parts


class Letters(Vocabulary):
    """A vocabulary of letters."""

    special = SpecialTokens(0, 1, 2, 3)

    def __len__(self):
        return 30

    def clean(self, text):
        return text.strip()

    def encode(self, texts):
        return [[ord(letter) - 93 for letter in text] for text in texts]

    def decode(self, ids):
        return "".join(chr(i + 93) for i in ids)

    def pieces(self, ids):
        return [chr(i + 93) for i in ids]

    def key(self):
        return "letters"


def test_a_text_in_parts_stands_between_tokens_that_no_text_can_spell():
    text = TextParts(Letters(), InputTokens(30, 31, 32))
    assert text.encode([f"ab{SEPARATOR}c", "d"]) == [[4, 5, 31, 6], [7]]
    assert (text.special.before, text.special.last, len(text)) == ((30,), 32, 33)
    assert text.pieces([30, 4, 31, 5, 32]) == ["<start>", "a", "<delimiter>", "b", "<extract>"]
    assert text.decode([30, 4, 31, 5, 32]) == "ab"
    assert text.clean(f" a {SEPARATOR} b ") == f"a{SEPARATOR}b" and text.clean(f"a{SEPARATOR} ") == ""
    assert text.key() != Letters().key() == TextParts(Letters()).key()
