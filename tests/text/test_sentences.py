"""Sentence splitting."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.text.sentences import spans, split

TEXTS = st.text(alphabet="aB가た1 .!?…。」「\"'()»« \n\t,-“”„\u00a0", max_size=80)
LANGUAGES = st.sampled_from([None, "ko", "en", "de", "fr", "ja", "xx", "en-US"])

SENTENCES = {
    "en": [
        "Mr. Smith went to Washington, D.C.|He paid $3.50.|Really?|Yes!",
        '"Stop!" he said.|"Go."|She left...|Then it ended.',
        "See e.g. Fig. 2 and p. 3.|J. R. R. Tolkien wrote it.|The U.S. Army came at 5 p.m.|The end.",
        "I agree (it was late. He was tired.) and slept.|It was I.|Who knows?",
        "Visit https://a.example/c.html?x=1.|Then write to me@b.example.|Done",
        "Apples, pears etc. are fruit.|We bought apples, pears etc.|Then we left.",
        "Yahoo! is old.|1. is a number.|In 1999.|Nothing happened.",
        "(Really.)|Yes.|He shrugged (twice!).|Then he went.",
        "Wait... what?|No . . .|Never.",
    ],
    "de": [
        "Am 3. Oktober kam Dr. Müller, z.B. um 12 Uhr.|Er ging usw.|Das war 1999.|Dann nichts.",
        "„Komm!“ rief er.|„Geh!“|Sie ging.|Ca. 5 Personen, d.h. alle.",
        "Er wohnt in der Hauptstr. 5 in Wien.|Dort ist es schön.",
        "Siehe Nr. 5 und S. 12.|Es kostet 1.234,56 Euro.|Gut?",
    ],
    "fr": [
        "M. Dupont est là.|Quoi ?|Oui !|Il a dit : « Viens. »|Puis il partit.",
        "C'est l'art. 5 du code.|Mme. Curie, p.ex. une physicienne.|Ah…|Bon.",
    ],
    "ko": [
        "저는 학생입니다.|3.1 운동은 1919. 3. 1. 시작되었다.|정말요?|네!",
        "글쎄... 모르겠어요.|갔다...|왔다.|그는 (정말?) 갔다.|Dr. Kim은 왔다.",
        '"가자!"|그가 말했다.|그는 "가자!" 하고 말했다.|"좋아요." 라고 했다.',
        "가격은 3,000원임.|확인 바람.|www.a.example/b.html 참조.|끝",
    ],
    "ja": [
        "彼は「行く。」と言った。|「本当？」と彼女は聞いた。|はい！|そうです。",
        "円周率は3.14です。|３．１４です。|本当?|はい。|終わり",
    ],
    None: ["यह एक वाक्य है।|यह दूसरा है।|هل أنت هنا؟|نعم.", "Dr. A. B. Cee.|Das ist z.B. so.|That is e.g. This."],
}


@pytest.mark.parametrize(("language", "marked"), [(code, text) for code, texts in SENTENCES.items() for text in texts])
def test_sentences_end_where_readers_end_them(language, marked):
    joint = "" if language == "ja" else " "
    right = marked.split("|")
    assert split(joint.join(right), language) == right


def test_a_blank_line_ends_a_sentence_and_a_line_does_not():
    assert split("A title\n\nOne two\nthree. Four.\n \nFive\u2029Six") == [
        "A title",
        "One two\nthree.",
        "Four.",
        "Five",
        "Six",
    ]


def test_a_bracket_that_is_never_closed_holds_nothing_back():
    assert split("It is sad :( Then it ends. Good.") == ["It is sad :( Then it ends.", "Good."]


@given(TEXTS, LANGUAGES)
@settings(max_examples=150, deadline=None)
def test_sentences_and_the_white_space_between_them_are_the_text(text, language):
    place = 0
    for start, end in spans(text, language):
        assert not text[place:start].strip()
        assert text[start:end] == text[start:end].strip() != ""
        place = end
    assert not text[place:].strip()


@given(TEXTS, LANGUAGES)
@settings(max_examples=60, deadline=None)
def test_what_is_one_sentence_stays_one(text, language):
    for sentence in split(text, language)[:1]:
        assert split(sentence, language) == [sentence] or "\n" in sentence


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "...", "?!", "."])
def test_texts_without_words_are_no_trouble(text):
    assert split(text) == ([text] if text.strip() else [])


@pytest.mark.parametrize("piece", ["(a. ) ", "\n", ". ", '"a." ', "((((a.)", "1. ", "!?", " "])
def test_long_texts_of_odd_kinds_take_no_longer_than_others(piece):
    text = piece * 2_000  # an algorithm of quadratic time would take minutes
    found = spans(text)
    edges = [0, *(edge for span in found for edge in span), len(text)]
    assert edges == sorted(edges)
    assert not "".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)).strip()
