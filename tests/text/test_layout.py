"""Plain text as a skeleton of layout and its sentences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.text.layout import Break, Line, Segment, Skeleton, _continues, fill, take_apart, translate

LINES = st.sampled_from(
    ["", " ", "\t", "- one. Two.", "1) Ein Satz", "word", "> quoted", "a\tb\t 3", "가. 첫째. 둘째", "-----", "12:30", "# Head", "\ufeffx",
     "this is a line that is long enough to have been wrapped by a program", "lower and so on, and so", "東京都は日本の首都",
     "Ends here. Begins here", "  indented  ", "trans-", "lation.", "(", "… !", "a  b", "[x] done", "\u00a0nbsp\u00a0"]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\u2028", "\v", " \n"])
TEXTS = st.one_of(st.lists(st.tuples(LINES, ENDS)).map(lambda rows: "".join(map("".join, rows))), st.text(max_size=60))


@given(TEXTS, st.sampled_from([None, "ko", "en", "ja"]))
@settings(max_examples=150, deadline=None)
def test_what_is_not_changed_comes_back_to_the_byte(text, language):
    skeleton = take_apart(text, language)
    assert fill(skeleton, skeleton.texts) == text
    assert all(
        segment.text.strip() == segment.text and len(segment.text.splitlines()) == 1 for segment in skeleton.segments
    )


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_the_layout_stays_whatever_the_translations(text):
    skeleton = take_apart(text)
    said = ["x " * 40 + "x"] * len(skeleton.segments)
    filled = fill(skeleton, said)
    assert len(filled.splitlines()) == len(text.splitlines())
    assert [line for line in filled.splitlines() if not line.strip()] == [
        line for line in text.splitlines() if not line.strip()
    ]


def test_marks_tabs_and_lines_stay_and_sentences_are_translated():
    text = "# Title\n\n  - one. Two!\n1) three\tfour\t 5\n\n-----\n12:30\n가. 넷. 다섯.\n  six  \r\n"
    right = "# <Title>\n\n  - <one>. <Two>!\n1) <three>\t<four>\t 5\n\n-----\n12:30\n가. <넷>. <다섯>.\n  <six>  \r\n"

    def angles(texts):
        return [f"<{text.rstrip('.!')}>{text[len(text.rstrip('.!')) :]}" for text in texts]

    assert translate(text, angles) == right


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("가.", ["가."]),
        ("  > 사.\n", ["사."]),
        ("1. 자.\n\n나는 학생이다.", ["자.", "나는 학생이다."]),
        ("가.\n사.", ["가.", "사."]),
        ("가.\n사과를 먹는다.", ["사과를 먹는다."]),
        ("a)\nan apple", ["an apple"]),
        ("가. 사과", ["사과"]),
        ("1.\n[x]\n", []),
    ],
)
def test_a_letter_is_a_mark_only_where_it_marks_something(text, said):
    skeleton = take_apart(text, "ko")
    assert skeleton.texts == said
    assert fill(skeleton, said) == text


def test_lines_that_were_wrapped_are_one_sentence_and_are_wrapped_again():
    text = "A paragraph that was wrapped by a mail program, since its\nlines are long, and goes on. Then it ends\nthere.\nThe next.\n"
    skeleton = take_apart(text)
    assert skeleton.texts == [
        "A paragraph that was wrapped by a mail program, since its lines are long, and goes on.",
        "Then it ends there.",
        "The next.",
    ]
    filled = fill(skeleton, ["하나 둘 셋 넷 다섯 여섯 일곱 여덟 아홉.", "그리고 끝.", "다음."])
    assert filled == "하나 둘 셋 넷 다섯 여섯 일곱\n여덟 아홉. 그리고\n끝.\n다음.\n"
    assert fill(skeleton, ["하나.", "끝.", "다음."]) == "하나. 끝.\n다음.\n"  # no gap for the line breaks


@pytest.mark.parametrize(
    "text",
    [
        "  Leading.\r\n\r\n\t- tab item\r\n   2) two\r\n      - deeper\r\n\r\n\r\nEnd",
        "\u200f\u200eשלום a עולם.\r\n\ufeff\u200b b\u200b \r\n",
        "* one\n\n  two in it\n\n      three\n\n1. a\n   a) b\n      (1) c\n",
        "a\tb\t\tc\r\n\t\td\n",
        "a\vb\fc\x85d\u2028e\u2029f",
        "- [ ] a\n- [x] b\n> > c\n> d\n",
    ],
)
def test_nothing_but_the_words_is_changed(text):
    assert translate(text, lambda texts: texts) == text
    assert translate(text, lambda texts: [own.upper() for own in texts]).lower() == text.lower()


def test_items_of_a_list_are_not_put_together():
    assert take_apart("- one thing\n- two things\n  and more\n").texts == ["one thing", "two things and more"]


def test_quoted_mail_keeps_its_marks():
    text = "> a line that is long enough to have been wrapped by a mail\n> program.\n> > deeper\n"
    skeleton = take_apart(text)
    assert skeleton.segments[0] == Segment(
        "a line that is long enough to have been wrapped by a mail program.", (Break(57, " ", "\n> "),)
    )
    assert skeleton.texts[1:] == ["deeper"]


def test_japanese_is_put_together_without_spaces():
    line = "東京都は日本の首都であり人口は約千四百万人で世界最大級の都市圏を形成して"
    skeleton = take_apart(f"{line}\nいる。\n終わり。")
    assert skeleton.texts == [f"{line}いる。", "終わり。"]
    assert fill(skeleton, ["Tokyo is the capital of Japan and large.", "End."]).splitlines() == [
        "Tokyo is the capital of Japan and", "large.", "End.",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n", "42", " - ", "😀 …", "---\n***"])
def test_a_text_without_words_is_all_layout(text):
    skeleton = take_apart(text)
    assert (skeleton.segments, skeleton.between) == ((), (text,))
    assert translate(text, lambda texts: pytest.fail("nothing to translate")) == text


@pytest.mark.parametrize(
    "piece",
    [
        "a line that goes on and on until somebody cuts it\n",
        "x\n",
        "\t",
        "東" * 40 + "\n",
        " " * 20 + "x" + "\ufeff ",
        "a. B.\n",
    ],
)
def test_long_texts_of_odd_kinds_take_no_longer_than_others(piece):
    text = piece * 500
    assert translate(text, lambda texts: texts) == text


def test_each_sentence_needs_its_translation():
    with pytest.raises(ValueError, match="1 translations for 2 sentences: the numbers must match"):
        fill(take_apart("One. Two."), ["Eins."])


def test_an_end_of_line_in_a_translation_is_a_space():
    assert translate("One.\nTwo.", lambda texts: ["a\nb", "c\r\nd"]) == "a b\nc d"


def test_two_line_breaks_do_not_meet_in_one_gap():
    segment = Segment("one two three", (Break(3, " ", "\n"), Break(7, " ", "\r\n")))
    skeleton = Skeleton(("", ""), (segment,))
    assert fill(skeleton, ["a b"]) == "a\nb", "there is a gap for the first alone"
    assert fill(skeleton, ["a b c"]) == "a\nb\r\nc"
    assert fill(skeleton, ["a bbbbbbbbbbbbbbbbbbbbbbbbbbb c"]) == "a\nbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\nc"


@pytest.mark.parametrize(
    "text",
    [
        "Long enough to have been wrapped by a program (\n) and so on",
        "東京都は日本の首都であり、とても大きい。\n東京都は日本の首都であり、とても大きい\n東京",
    ],
)
def test_a_line_break_between_sentences_is_written_once(text):
    assert translate(text, lambda texts: texts) == text


@pytest.mark.parametrize(
    ("before", "lead", "content", "goes_on"),
    [
        ("", "", "and on", True),
        ("> ", "> ", "and on", True),
        ("", "> ", "and on", False),
        ("> ", ">> ", "and on", False),
        ("- ", "- ", "and on", False),
        ("", "", "and\ton", False),
    ],
)
def test_a_line_with_a_mark_of_its_own_begins_anew(before, lead, content, goes_on):
    assert _continues(Line(before, "a line of words " * 4 + "x", "\n"), Line(lead, content, "\n"), 65) is goes_on
