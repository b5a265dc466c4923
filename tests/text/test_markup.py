"""HTML through a translation: every tag comes back once, around the words it was around."""

import html
import random
import re
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heed.text.html_tokenizer import VOID, tokenize
from heed.text.inline import Translated
from heed.text.markup import translate

WORDS = st.lists(
    st.sampled_from(["house", "the", "나무를", "&amp;", "blue,", "Ende.", "42", "it's", "&lt;x&gt;"]),
    min_size=1,
    max_size=4,
)
LEAVES = st.one_of(
    WORDS.map(" ".join),
    st.sampled_from(["<img alt='A cat'>", "<!-- c -->", "<br>", " ", "<sup>[1]</sup>", "<code>f(x)</code>"]),
)
SPACE = st.sampled_from(["", " ", "\n  "])


def _element(inner):
    inline = st.sampled_from(
        ["b", "i", "a href='x'", 'span class="y"', "p", "div", "li title='A tip'", "pre", "span translate=no"]
    )
    return st.tuples(inline, st.lists(st.tuples(inner, SPACE).map("".join), max_size=3)).map(
        lambda pair: f"<{pair[0]}>{''.join(pair[1])}</{pair[0].split()[0]}>"
    )


PAGES = st.lists(st.tuples(st.recursive(LEAVES, _element, max_leaves=8), SPACE).map("".join), max_size=4).map("".join)


def same(texts):
    return texts


def louder(texts):
    return [Translated(text.upper(), [(i, i) for i in range(len(text.split()))]) for text in texts]


def backwards(texts):
    found = []
    for text in texts:
        words = text.upper().split()
        found.append(Translated(" ".join(reversed(words)), [(i, len(words) - 1 - i) for i in range(len(words))]))
    return found


def quoted(texts):
    """With signs before and after each word, of which the source has none."""
    words = [text.split() for text in texts]
    return [Translated(" ".join(f'"{word}"' for word in own), [(i, i) for i in range(len(own))]) for own in words]


def strange(texts):
    """Random words and a random alignment, also to words that do not exist."""
    draw, found = random.Random(len(texts)), []
    for text in texts:
        size = draw.randrange(len(text.split()) + 3)
        links = [(draw.randrange(9), draw.randrange(9)) for _ in range(draw.randrange(9))]
        found.append(Translated(" ".join(draw.choice("PQRS") for _ in range(size)), links))
    return found


def bare(texts):
    return [f"{text.upper()} MORE" for text in texts]


MODELS = [louder, backwards, strange, bare]


def tags(page):
    return [
        re.sub(r"(alt|title)=('[^']*'|\"[^\"]*\")", r"\1", event.raw)
        for event in tokenize(page)
        if event.kind != "text"
    ]


def is_nested(page):
    opened = []
    for event in tokenize(page):
        if event.kind == "open" and event.name not in VOID:
            opened.append(event.name)
        elif event.kind == "close" and (not opened or opened.pop() != event.name):
            return False
    return not opened


@given(PAGES)
@settings(max_examples=100, deadline=None)
def test_what_is_not_changed_comes_back_to_the_byte(page):
    assert translate(page, same) == page


@given(st.text(alphabet="ab <>/&;!-='\"\n가#x", max_size=60))
@settings(max_examples=150, deadline=None)
def test_what_is_no_html_comes_back_to_the_byte_too(page):
    assert "".join(event.raw for event in tokenize(page)) == page
    assert translate(page, same) == page
    translate(page, louder)


@given(PAGES, st.sampled_from(MODELS))
@example("house<b><img alt='A cat'> <i>house<br></i></b>", backwards)
@settings(max_examples=100, deadline=None)
def test_no_tag_is_lost_or_doubled_and_all_are_nested(page, model):
    said = translate(page, model)
    assert Counter(tags(said)) == Counter(tags(page))
    assert is_nested(said) == is_nested(page)


@given(PAGES)
@settings(max_examples=60, deadline=None)
def test_all_words_of_a_translation_are_there_in_their_order(page):
    shown = []

    def model(texts):
        found = backwards(texts)
        shown.extend(word for one in found for word in one.text.split())
        return found

    for before, after in {
        "pre>": "div>",
        " translate=no": "",
        "code>": "b>",
        "<sup>[1]</sup>": "",
        "&lt;x&gt;": "x",
    }.items():
        page = page.replace(before, after)
    said = translate(page, model, attributes=())
    left = "".join(html.unescape(event.raw) for event in tokenize(said) if event.kind == "text")
    assert re.sub(r"[\s\d&]", "", left) == re.sub(r"[\s\d&]", "", "".join(shown))


@pytest.mark.parametrize(
    ("page", "model", "right"),
    [
        ("<p>Hello <b>blue</b>, world</p>", louder, "<p>HELLO <b>BLUE</b>, WORLD</p>"),
        ("<p>see the <a href=x>blue house</a>.</p>", backwards, "<p><a href=x>HOUSE. BLUE</a> THE SEE</p>"),
        ("one <b>two <i>three</i></b> four", backwards, "FOUR <b><i>THREE</i> TWO</b> ONE"),
        ("<b>all of it</b>", backwards, "<b>IT OF ALL</b>"),
        ("  a note<sup>[1]</sup> here ", backwards, "  HERE NOTE<sup>[1]</sup> A "),
        ("see <img src=x> it", backwards, "<img src=x> IT SEE"),
        ("<img src=x> see it", louder, "<img src=x> SEE IT"),
        ("use <code>f(x)</code>, now", backwards, "NOW <code>f(x)</code>, USE"),
        ("un<b>doing it</b> now", quoted, '<b>"undoing" "it"</b> "now"'),
        ("go to https://a.example/b. Now", louder, "GO TO https://a.example/b. NOW"),
        ("AT&amp;T &lt; 5 &quot;x&quot;", louder, 'AT&amp;T &lt; 5 "X"'),
        ("one<br>two<p>three", louder, "ONE<br>TWO<p>THREE"),
        ("<script>if (a<b) x()</script><style>p{}</style><pre>as is</pre>", louder, "<script>if (a<b) x()</script><style>p{}</style><pre>as is</pre>"),
        ('<div translate="no">left <b>alone</b></div> <i class="a notranslate">me too</i> not me', louder,
         '<div translate="no">left <b>alone</b></div> <i class="a notranslate">me too</i> NOT ME'),
        ("<p>open <b>never closed<p>next</i> one", louder, "<p>OPEN <b>NEVER CLOSED<p>NEXT</i> ONE"),
        ("<!DOCTYPE html><!-- keep <b> --><?x y?>text", louder, "<!DOCTYPE html><!-- keep <b> --><?x y?>TEXT"),
        ("<p>\n   text\n   here\n</p>", louder, "<p>\n   TEXT HERE\n</p>"),
        ("One here. <b>Two there.</b> Three.", louder, "ONE HERE. <b>TWO THERE.</b> THREE."),
        ("a <b>b. C</b> d.", louder, "A <b>B. C</b> D."),
        ("<b></b>empty", louder, "<b></b>EMPTY"),
        ("one <b>two <i>three</b> four</i> five", louder, "ONE <b>TWO <i>THREE</b> FOUR</i> FIVE"),
    ],
)  # fmt: skip
def test_tags_go_where_their_words_went(page, model, right):
    assert translate(page, model) == right


@pytest.mark.parametrize(
    ("page", "right"),
    [
        ("<p>one<br>two <b>three</b><br/>four</p>", "<p>ONE<br>TWO <b>THREE</b><br/>FOUR</p>"),
        ("<p>caf&eacute; &copy; 5&nbsp;km &lt; &#8364;</p>", "<p>CAFÉ © 5&nbsp;KM &lt; €</p>"),
        ("<!-- a --><script>var a = '<b>';</script><style>p{}</style><p>hi</p>", "<!-- a --><script>var a = '<b>';</script><style>p{}</style><p>HI</p>"),
        ("<ul>\r\n  <li>one\r\n    <ul><li>two <i>x</i></li></ul>\r\n</ul>", "<ul>\r\n  <li>ONE\r\n    <ul><li>TWO <i>X</i></li></ul>\r\n</ul>"),
        ("<p dir=rtl>שלום <b>a</b>!</p>\u200f<p>a\u200bb</p>", "<p dir=rtl>שלום <b>A</b>!</p>\u200f<p>A\u200bB</p>"),
        ("<table><tr><td>a <td>b</table>", "<table><tr><td>A <td>B</table>"),
        ("<p>a <b>b <i>c</b> d</i> e", "<p>A <b>B <i>C</b> D</i> E"),
        ("<svg><text>a</text></svg><math><mi>x</mi></math> b", "<svg><text>a</text></svg><math><mi>x</mi></math> B"),
        ("<title>a & b</title><textarea>c</textarea>", "<title>A &amp; B</title><textarea>c</textarea>"),
        ("<script>let x = 1; // never closed <p>a</p>", "<script>let x = 1; // never closed <p>a</p>"),
        ("<p>a</p><![CDATA[b > c]]><?php d ?>", "<p>A</p><![CDATA[b > c]]><?php d ?>"),
        ("a <3 b", "A &lt;3 B"),
    ],
)  # fmt: skip
def test_pages_as_people_have_them(page, right):
    assert translate(page, same) == page
    assert translate(page, louder) == right


def test_a_tag_whose_words_are_apart_goes_around_most_of_them():
    def german(texts):
        assert texts == ["She calls him up now"]
        return [Translated("Sie ruft ihn nun bald an", [(0, 0), (1, 1), (2, 2), (4, 3), (3, 5), (4, 4)])]

    assert translate("She <b>calls him up</b> now", german) == "Sie <b>ruft ihn</b> nun bald an"


def test_a_word_that_goes_with_none_is_where_its_neighbours_are():
    def model(texts):
        return [Translated("die blaue alte Tür da", [(1, 1), (2, 3), (3, 4)])]

    assert translate("the <b>blue door</b> there", model) == "die <b>blaue alte Tür</b> da"


@pytest.mark.parametrize(
    ("page", "right"),
    [
        ('<img alt="A cat" src="a cat">', '<img alt="A CAT" src="a cat">'),
        ("<a title='A &quot;tip&quot;' href=x>y</a>", "<a title='A \"TIP\"' href=x>Y</a>"),
        ("<a title='A cat&#39;s' href=x>y</a>", "<a title='A CAT&#39;S' href=x>Y</a>"),
        ('<a title="A &quot;tip&quot;" href=x>y</a>', '<a title="A &quot;TIP&quot;" href=x>Y</a>'),
        ("<input placeholder=Name value=x><input type=submit value=Send>", '<input placeholder="NAME" value=x><input type=submit value="SEND">'),
        ('<meta name="description" content="About it"><meta name="x" content="y">', '<meta name="description" content="ABOUT IT"><meta name="x" content="y">'),
        ('<p translate=no><img alt="A cat"></p>', '<p translate=no><img alt="A cat"></p>'),
        ('<img alt="">', '<img alt="">'),
    ],
)  # fmt: skip
def test_texts_in_attributes_are_translated_and_others_are_not(page, right):
    assert translate(page, louder) == right
    assert translate(page, louder, attributes=()).replace(">Y<", ">y<") == page


def test_what_is_nested_too_deeply_is_said():
    assert translate("<b>" * 100 + "a" + "</b>" * 100, louder).count("<b>") == 100
    with pytest.raises(ValueError, match="more than 100 nested tags"):
        translate("<b>" * 101 + "a" + "</b>" * 101, louder)


def test_every_text_needs_its_translation():
    with pytest.raises(ValueError, match="0 translations for 1 sentences: the numbers must match"):
        translate("one", lambda texts: [])


def test_all_sentences_of_a_page_are_asked_for_at_once():
    calls = []

    def model(texts):
        calls.append(list(texts))
        return texts

    translate("<p>One. Two.</p><p>Three <b>four</b>.</p><p>5</p>", model)
    assert calls == [["One.", "Two.", "Three four."]]


@pytest.mark.parametrize("piece", ["<b>", "</b>", "<b>a</b> ", "<", "&", "<!--", "<p>a", "<b><i>a</i></b>"])
def test_long_pages_of_odd_kinds_take_no_longer_than_others(piece):
    page = piece * 200
    assert translate(page, same) == page
    assert Counter(tags(translate(page, backwards))) == Counter(tags(page))
