"""Protected spans come through any translation unchanged."""

import random
import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.text.protect import find
from heed.text.protected import Model, ModelRequest, translate, translate_with

PIECES = ["https://a.example/b?c=1", "me@b.example", "{name}", "{{ x }}", "%s", "%(n)d", "<b>", "</b>", "<br/>", "`f(x)`", "😀", "👩‍👩‍👧",
          "🇰🇷", "${HOME}", "{0:>5}", "1️⃣", "%1$s", "<a href='x y'>"]  # fmt: skip
WORDS = ["house", "the", "나무를", "X1", "Ende.", "42", "(so)", "-"]
TEXTS = st.lists(st.sampled_from(PIECES + 2 * WORDS), max_size=9).map(" ".join)


def loses(texts):
    """A model that drops everything but letters."""
    return ["".join(char for char in text if char.isalpha() or char == " ") for text in texts]


def shuffles(texts):
    draw = random.Random(1)
    return [" ".join(draw.sample(text.split(), len(text.split()))) for text in texts]


def forgets(texts):
    draw = random.Random(2)
    return [" ".join(word for word in text.split() if draw.random() < 0.6) for text in texts]


def repeats(texts):
    return [f"{text} {text}" for text in texts]


def shouts(texts):
    return [text.upper() for text in texts]


def says_nothing(texts):
    return [""] * len(texts)


MODELS = [loses, shuffles, forgets, repeats, shouts, says_nothing]


@given(TEXTS, st.sampled_from(MODELS))
@settings(max_examples=150, deadline=None)
def test_every_span_occurs_as_often_as_in_the_source_whatever_a_model_does(text, model):
    said = translate([text], model)[0]
    assert Counter(one.text for one in find(said)) == Counter(one.text for one in find(text))


@given(st.one_of(TEXTS, st.text(max_size=50)))
@settings(max_examples=100, deadline=None)
def test_what_a_model_leaves_alone_comes_back_to_the_byte(text):
    assert translate([text, text], lambda texts: texts) == [text, text]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("See https://a.example/b_(c)?d=1#e, or (http://b.example/x).", ["https://a.example/b_(c)?d=1#e", "http://b.example/x"]),
        ("https://ko.example.org/wiki/한국에서 보기", ["https://ko.example.org/wiki/한국에서"]),
        ("www.a.example에서 me.you+x@mail.example.com으로", ["www.a.example", "me.you+x@mail.example.com"]),
        ("Hi {name}, {{ user.name }} has %d files in ${HOME} {% if x %}", ["{name}", "{{ user.name }}", "%d", "${HOME}", "{% if x %}"]),
        ("%(count)d of %1$s, 100 % sure, 50% off, 5 %der %5.2f %%", ["%(count)d", "%1$s", "%5.2f", "%%"]),
        ("Run `ls -l` or ``a`b`` <b>now</b><br/> 3 < 4 > 2 <!-- x > y -->", ["`ls -l`", "``a`b``", "<b>", "</b>", "<br/>", "<!-- x > y -->"]),
        ("👩‍👩‍👧 👍🏽 🇰🇷🇩🇪 1️⃣ ❤️ ok", ["👩‍👩‍👧", "👍🏽", "🇰🇷", "🇩🇪", "1️⃣", "❤️"]),
        ("{ not one } 5 @ 3, a@b, http:// nothing", []),
    ],
)  # fmt: skip
def test_protected_spans_are_found_and_words_are_not(text, pieces):
    found = find(text)
    assert [one.text for one in found] == pieces
    assert all(text[one.start : one.end] == one.text for one in found)


def test_numbers_survive_a_model_that_loses_them():
    asked = []

    def model(texts):
        asked.append(list(texts))
        return [re.sub(r"(?<![X0-9])[0-9]+", "", text) for text in texts]

    text = "In 1990 he paid 1,234.56 for 3.5 of 12 and 7 so {n}."
    assert translate([text, "five 5"], model) == ["In 1990 he paid 1,234.56 for 3.5 of  and  so {n}.", "five "]
    assert asked == [
        [text, "five 5"],
        ["In X1 he paid X2 for X3 of 12 and 7 so X4."],
    ]
    assert translate(["He paid 1,234.56 then."], loses) == ["He paid 1,234.56 then"]


def test_a_number_may_be_written_in_another_way():
    calls = []

    def model(texts):
        calls.append(texts)
        return [text.replace("1,234.5", "1.234,5").replace("2024", "２０２４") for text in texts]

    assert translate(["It was 1,234.5 in 2024."], model) == ["It was 1.234,5 in ２０２４."]
    assert len(calls) == 1


def test_kept_names_are_protected():
    assert [one.text for one in find("Heed는 Heeds 아니라 Deep Heed, {Heed}", ["Heed", "Deep Heed"])] == [
        "Heed",
        "Deep Heed",
        "{Heed}",
    ]
    assert translate(["We use Heed daily."], shouts, ["Heed"]) == ["WE USE Heed DAILY."]


def asked(model):
    """A model, and the list of its inputs."""
    calls = []

    def ask(texts):
        calls.append(list(texts))
        return model(texts)

    return ask, calls


def test_a_model_that_keeps_spans_is_called_once():
    model, calls = asked(lambda texts: [text.replace("Hello", "Hallo") for text in texts])
    assert translate(["Hello {name}, good day 😀", "Hello"], model) == ["Hallo {name}, good day 😀", "Hallo"]
    assert calls == [["Hello {name}, good day", "Hello"]]  # a span at the end need not be shown


def test_a_model_that_changes_spans_is_given_aliases():
    model, calls = asked(shouts)
    assert translate(["go to {home} now", "plain"], model) == ["GO TO {home} NOW", "PLAIN"]
    assert calls == [["go to {home} now", "plain"], ["go to X1 now"]]
    model, calls = asked(shouts)
    assert translate(["X1 is {home} now"], model) == ["X1 IS {home} NOW"]
    assert calls[1] == ["X1 is Q1 now"]


def test_what_is_lost_even_as_an_alias_is_put_back_and_the_sentence_is_not_cut():
    model, calls = asked(lambda texts: [text.replace("{a} ", "").replace("X1 ", "") for text in texts])
    assert translate(["one {a} two {b} three"], model) == ["one {a} two {b} three"]
    assert calls == [["one {a} two {b} three"], ["one X1 two X2 three"]]
    repeats, calls = asked(lambda texts: [text.replace("{a}", "{a} {a}").replace("X1", "X1 X1") for text in texts])
    assert translate(["one {a} two {b} three"], repeats) == ["one {a} two {b} three"]
    assert len(calls) == 2


class Searching(Model):
    """A model that writes `words`, with what is required of it after the second if it can spell that."""

    can_require = True

    def __init__(self, words: str, spells=str.isascii, links=()):
        super().__init__()
        self.words, self.spells, self.links = words, spells, links
        self.requests: list[ModelRequest] = []

    def translate(self, requests):
        self.requests += requests
        first, second, *others = self.words.split()
        return [" ".join([first, second, *filter(self.spells, own.required), *others]) for own in requests]

    def align(self, sources, targets):
        return [self.links for _ in sources]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("값은 3,000원이에요.", "3,000"),
        ("이자는 0.3%예요.", "0.3%"),
        ("It cost $1,200 then.", "$1,200"),
        ("{n}개 있어요.", "{n}"),
    ],
)
def test_a_number_stays_in_its_sentence_and_has_its_spaces(text, number):
    model = Searching("It is now.")
    (found,) = translate_with(model, [ModelRequest(text)])
    assert found.text == f"It is {number} now." and found.is_answer
    assert found.request == ModelRequest(text, "", (number,))
    assert {own.text for own in model.requests} == {text}  # never a part of it
    # a model that cannot spell it: it is put before the word that goes with its own
    word = text[: text.index(number)].count(" ")
    cannot = Searching("The price is won.", lambda _: False, [(word, 3)])
    (placed,) = translate_with(cannot, [ModelRequest(text)])
    assert placed.text == f"The price is {number} won." and not placed.is_answer
    assert {own.text.replace("X1", number) for own in cannot.requests} == {text}


def test_a_number_that_the_model_made_up_is_replaced_by_the_one_it_lost():
    assert translate(["It cost 3,000 then."], lambda texts: ["It was 300 then."] * len(texts)) == ["It was 3,000 then."]


def test_a_prefix_stays_at_the_beginning():
    model = Searching("So it goes.", lambda _: False, [(0, 0)])
    (found,) = translate_with(model, [ModelRequest("😀 {n}개 있어요. 😀", "So it")])
    assert found.text == "So it 😀 {n} goes. 😀"
    assert {own.prefix for own in model.requests} == {"So it"}


def test_what_has_no_words_is_not_shown_to_a_model():
    assert translate(["{a} {b}", "42 😀", "", " \n"], lambda texts: pytest.fail(texts)) == [
        "{a} {b}",
        "42 😀",
        "",
        " \n",
    ]


def test_many_spans_take_no_quadratic_time():
    text = " ".join(f"word {{n{i}}}" for i in range(300)) + " end"
    said = translate([text], loses)[0]
    assert [one.text for one in find(said)] == [f"{{n{i}}}" for i in range(300)]


@pytest.mark.parametrize("piece", ["`", "<!--", "{", "a@", "http://", "%(", "<a ", "👩‍", "("])
def test_long_texts_of_odd_kinds_take_no_longer_than_others(piece):
    text = piece * 5000  # an algorithm of quadratic time would take minutes
    found = find(text)
    assert all(one.text == text[one.start : one.end] for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
